#include "client/cli/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/formats/exported_program.h"
#include "core/store/draw_codec/weights_file.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

// A folder with files of float32 tensors that hold one number.
class MembersTest : public ::testing::Test {
 protected:
  using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

  MembersTest() : folder_(absl::StrCat(::testing::TempDir(), "/members-", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~MembersTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const Shapes& shapes, float value = 0) {
    std::vector<std::string> bytes;
    std::vector<TensorView> tensors;
    for (const auto& [tensor, shape] : shapes) {
      const std::vector<float> values(static_cast<size_t>(NumValues(shape)), value);
      bytes.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      tensors.push_back({tensor, TensorType::kFloat32, shape, nullptr, std::ssize(bytes.back())});
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = bytes[i].data();
    const std::string path = absl::StrCat(folder_, "/", name, ".safetensors");
    std::ofstream(path, std::ios::binary) << WriteSafetensors(tensors, {});
    return path;
  }
  static std::string Network(const std::string& name) {
    return absl::StrCat(CHAINFLEET_DATA, "/exported/", name, ".pt2");
  }
  static std::string Refusal(const std::string& network, const std::vector<std::string>& weights, size_t most = 256) {
    const auto members = ReadMembers(Network(network), weights, most);
    EXPECT_TRUE(absl::IsInvalidArgument(members.status())) << members.status();
    return std::string(members.status().message());
  }

  const std::string folder_;
  const Shapes state_ = {{"weight", {1, 1}}, {"bias", {1}}};
};

TEST_F(MembersTest, AFolderOfAnExportIsItsChainsWithTheirDraws) {
  const Shapes five = {{"theta/weight", {5, 1, 1}}, {"theta_a/weight", {5, 1, 1}}};
  const std::string second = Write("chain-0002", five);
  const std::string first = Write("chain-0000", {{"theta/weight", {3, 1, 1}}, {"theta_a/weight", {3, 1, 1}}});
  const auto members = ReadMembers(Network("line"), {folder_}, 256);
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->chains.size(), 2u);
  EXPECT_EQ(members->chains[0].paths, std::vector<std::string>{first});
  EXPECT_EQ(members->chains[1].paths, std::vector<std::string>{second});
  EXPECT_EQ(members->num_draws, 5);
  EXPECT_TRUE(members->has_anchor);
  EXPECT_EQ(FileOf(members->chains[0])->content, std::nullopt) << "sent from the disk";
}

TEST_F(MembersTest, MoreNetworksThanChainsAreDrawsOfChains) {
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(Write(absl::StrCat(i), state_, static_cast<float>(i)));
  EXPECT_EQ(ReadMembers(Network("line"), files, 5)->chains.size(), 5u);
  const auto members = ReadMembers(Network("line"), files, 2);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->num_draws, 3);
  ASSERT_EQ(members->chains.size(), 2u);
  EXPECT_EQ(members->chains[1].paths.size(), 2u);
  const std::string bytes = *FileOf(members->chains[0])->content;
  const Safetensors stacked = ReadWeights(bytes).value();
  const Safetensors last = DrawIn(stacked, DrawKind::kTheta, 2);
  EXPECT_EQ(last.Find("weight")->shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(*reinterpret_cast<const float*>(last.Find("bias")->data), 2);
}

TEST_F(MembersTest, NamesOfAllChainsFitIntoAJob) {
  EXPECT_EQ(MostChains("abcd"), 256u);
  EXPECT_EQ(MostChains(std::string(60, 'a')), 32u);
}

TEST_F(MembersTest, BatchNormInTrainingModeIsKeptWithEachNetwork) {
  const auto members = ReadMembers(Network("train_norm"), {Write("a", {{"1.running_mean", {4}}}, 7)}, 256);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_TRUE(members->has_statistics);
  const std::string bytes = *FileOf(members->chains[0])->content;
  EXPECT_EQ(ReadWeights(bytes)->Find("theta/1.running_mean")->shape, (std::vector<int64_t>{1, 4}));
}

TEST_F(MembersTest, OtherBuffersAreComparedByValue) {
  EXPECT_THAT(Refusal("conv", {Write("other", {{"1.running_mean", {4}}}, 7)}),
              HasSubstr("other.safetensors: has another 1.running_mean than the .pt2 file"));
  const ByteSource source =
      ByteSource::InFile(Network("conv"), static_cast<int64_t>(std::filesystem::file_size(Network("conv"))));
  const ExportedProgram network = ReadExportedProgram(source).value();
  std::vector<std::string> values(network.tensors.size());
  std::vector<TensorView> same;
  ASSERT_TRUE(ReadExportedTensors(source, network, [&](const ExportedTensor& tensor) {
                std::string& here = values[static_cast<size_t>(&tensor - network.tensors.data())];
                here.resize(static_cast<size_t>(NumValues(tensor.shape) * SizeOf(tensor.type)));
                return std::span<char>(here);
              }).ok());
  for (size_t i = 0; i < values.size(); ++i) {
    const ExportedTensor& tensor = network.tensors[i];
    if (tensor.type != ExportedType::kFloat) continue;
    same.push_back({tensor.name, TensorType::kFloat32, tensor.shape, values[i].data(), std::ssize(values[i])});
  }
  const std::string path = folder_ + "/same.safetensors";
  std::ofstream(path, std::ios::binary) << WriteSafetensors(same, {});
  EXPECT_TRUE(ReadMembers(Network("conv"), {path}, 256).ok());
}

TEST_F(MembersTest, RefusalsNameTheFileAndSayWhatToDo) {
  const std::string state = Write("state", state_), drawn = Write("drawn", {{"theta/bias", {2, 1}}});
  std::ofstream(folder_ + "/junk") << "junk";
  EXPECT_THAT(Refusal("line", {folder_ + "/junk"}), HasSubstr("junk: not a valid safetensors file"));
  EXPECT_THAT(Refusal("none", {state}), HasSubstr("none.pt2: cannot be read"));
  EXPECT_THAT(Refusal("line", {state, Write("a", {{"theta/bias", {2, 1}}, {"theta_a/bias", {2, 1}}})}),
              HasSubstr("import them as two jobs"));
  EXPECT_THAT(Refusal("line", {Write("b", {{"theta_a/bias", {2, 1}}})}), HasSubstr("export a job with theta"));
  EXPECT_THAT(Refusal("line", {Write("c", {{"theta/bias", {2, 1}}, {"theta/weight", {3, 1, 1}}})}),
              HasSubstr("different numbers of draws"));
  EXPECT_THAT(Refusal("line", {Write("d", {{"theta/bias", {0, 1}}, {"x", {1}}})}), HasSubstr("has no draws"));
  EXPECT_THAT(Refusal("line", {drawn, drawn}, 1), HasSubstr("give a shorter NAME"));
  EXPECT_THAT(Refusal("line", std::vector<std::string>(4097, state)), HasSubstr("more than 4096"));
  std::filesystem::create_directory(folder_ + "/empty");
  EXPECT_THAT(Refusal("line", {folder_ + "/empty"}), HasSubstr("has no .safetensors files"));
  const auto members = ReadMembers(Network("line"), {state, Write("e", {{"weight", {1, 1}}})}, 1);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_THAT(std::string(FileOf(members->chains[0]).status().message()), HasSubstr("or lack it: import networks"));
}

}  // namespace
}  // namespace chainfleet
