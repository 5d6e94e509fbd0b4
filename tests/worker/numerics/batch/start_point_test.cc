// Starts at weights that a file brings.
#include "worker/numerics/batch/start_point.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/store/draw_codec/safetensors.h"
#include "worker/numerics/models/model_file.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

// Collects tensors for a file; keeps their bytes.
class Weights {
 public:
  template <typename T>
  Weights& Add(const std::string& name, TensorType type, std::vector<int64_t> shape, const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    kept_.push_back(std::make_unique<std::string>(reinterpret_cast<const char*>(values.data()), bytes));
    tensors_.push_back({name, type, std::move(shape), kept_.back()->data(), static_cast<int64_t>(bytes)});
    return *this;
  }
  std::string File() const { return WriteSafetensors(tensors_, {}); }

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
  std::vector<TensorView> tensors_;
};

class StartPoint : public ::testing::Test {
 protected:
  const Layout layout_{{{.name = "0.weight", .shape = {2, 3}, .offset = 0, .fan_in = 3},
                        {.name = "0.bias", .shape = {2}, .offset = 6, .fan_in = 3},
                        {.name = "likelihood.log_variance", .shape = {1}, .offset = 8, .initial = 0.5f}}};
  InitSpec init_{.weights = {"map-0", "map-1"}};
  // A flag of one byte before them: the numbers of a file need not be aligned.
  std::string File() {
    return Weights()
        .Add<uint8_t>("flag", TensorType::kBool, {1}, {1})
        .Add<double>("0.weight", TensorType::kFloat64, {2, 3}, {1, 2, 3, 4, 5, 0.1})
        .Add<uint16_t>("0.bias", TensorType::kFloat16, {2}, {0x3c00, 0xc200})  // 1 and -3
        .File();
  }
  std::string Refusal(const std::string* weights) {
    return std::string(StartOfChain(layout_, init_, 1, RngKey{7}, weights).status().message());
  }
};

TEST_F(StartPoint, IsThatOfTheFileByName) {
  const std::string file = File();
  const auto start = StartOfChain(layout_, init_, 0, RngKey{7}, &file);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(*start, (std::vector<float>{1, 2, 3, 4, 5, 0.1f, 1, -3, 0.5f}));
}

TEST_F(StartPoint, ReadsBrainFloats) {
  const std::string file = Weights()
                               .Add<float>("0.weight", TensorType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})
                               .Add<uint16_t>("0.bias", TensorType::kBfloat16, {2}, {0x3f80, 0xc040})  // 1 and -3
                               .Add<float>("likelihood.log_variance", TensorType::kFloat32, {1}, {-2})
                               .File();
  EXPECT_EQ(*StartOfChain(layout_, init_, 0, RngKey{7}, &file), (std::vector<float>{1, 2, 3, 4, 5, 6, 1, -3, -2}));
}

TEST_F(StartPoint, HasNoiseOfItsOwnInEachChain) {
  const std::string file = File();
  init_.perturb = 0.25;
  const auto one = StartOfChain(layout_, init_, 0, RngKey{7}, &file),
             same = StartOfChain(layout_, init_, 0, RngKey{7}, &file),
             other = StartOfChain(layout_, init_, 2, RngKey{8}, &file);
  EXPECT_EQ(*one, *same);
  EXPECT_NE(*one, *other);
  for (size_t p = 0; p < one->size(); ++p) EXPECT_LT(std::abs((*one)[p] - (*other)[p]), 3);
}

TEST_F(StartPoint, NamesTheFileThatDoesNotFit) {
  EXPECT_EQ(Refusal(nullptr), "init.weights: model map-1: the chain comes without the file");
  const std::string part = Weights().Add<float>("0.bias", TensorType::kFloat32, {2}, {1, 2}).File(), damaged = "none";
  EXPECT_EQ(Refusal(&part), "init.weights: model map-1: the file lacks 0.weight of the network");
  EXPECT_THAT(Refusal(&damaged), HasSubstr("init.weights: model map-1: not a valid safetensors file"));
  const std::string infinite = Weights()
                                   .Add<double>("0.weight", TensorType::kFloat64, {2, 3}, {1, 2, 3, 4, 5, 1e300})
                                   .Add<float>("0.bias", TensorType::kFloat32, {2}, {1, 2})
                                   .File();
  EXPECT_THAT(Refusal(&infinite), HasSubstr("0.weight has a value that is not finite as a float32"));
}

TEST_F(StartPoint, HasNoConstantsOfItsOwn) {
  ModelFile model{ExportedModel{.tensors = {at::tensor({1.f, 2.f}), at::tensor({0.1f, 3.f}), at::tensor({7})}}};
  ExportedProgram& program = std::get<ExportedModel>(model.content).program;
  for (const char* name : {"0.bias", "1.running_mean", "1.num_batches_tracked"}) {
    ExportedTensor& tensor = program.tensors.emplace_back();
    tensor.name = name;
  }
  const auto why = [&](uint16_t mean) {
    const std::string file = Weights()
                                 .Add<float>("0.weight", TensorType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})
                                 .Add<float>("0.bias", TensorType::kFloat32, {2}, {8, 9})
                                 .Add<uint16_t>("1.running_mean", TensorType::kBfloat16, {2}, {mean, 0x4040})
                                 .Add<int64_t>("1.num_batches_tracked", TensorType::kInt64, {}, {8})
                                 .File();
    return std::string(StartOfChain(layout_, init_, 1, RngKey{7}, &file, &model).status().message());
  };
  EXPECT_EQ(why(0x3dcd), "") << "0.1, rounded";
  EXPECT_THAT(why(0x3dce), HasSubstr("init.weights: model map-1: the file has other values of 1.running_mean"));
  const auto of_draws = [&](float mean) {
    const std::string file = Weights()
                                 .Add<float>("theta/0.weight", TensorType::kFloat32, {2, 2, 3}, std::vector<float>(12))
                                 .Add<float>("theta/0.bias", TensorType::kFloat32, {2, 2}, {8, 9, 8, 9})
                                 .Add<float>("theta/1.running_mean", TensorType::kFloat32, {2, 2}, {mean, 3, 0.1f, 3})
                                 .File();
    return std::string(StartOfChain(layout_, init_, 1, RngKey{7}, &file, &model).status().message());
  };
  EXPECT_EQ(of_draws(0.1f), "");
  EXPECT_THAT(of_draws(0.2f), HasSubstr("other values of 1.running_mean")) << "in the first draw";
  program.statistics = {1};
  EXPECT_EQ(why(0x3dce), "") << "in training mode each draw has its own";
}

TEST_F(StartPoint, IsThatOfTheModelsFile) {
  std::vector<ParameterShape> parameters = layout_.parameters();
  parameters[1].stored = std::shared_ptr<const float>(new float[2]{7, -8}, std::default_delete<const float[]>());
  const auto start = StartOfChain(Layout(parameters), {.model = true}, 0, RngKey{7}),
             random = StartOfChain(layout_, {}, 0, RngKey{7});
  EXPECT_EQ(std::vector<float>(start->begin() + 6, start->begin() + 8), (std::vector<float>{7, -8}));
  EXPECT_EQ(std::vector<float>(start->begin(), start->begin() + 6),
            std::vector<float>(random->begin(), random->begin() + 6));
  EXPECT_EQ((*start)[8], 0.5f);
  parameters[1].stored = std::shared_ptr<const float>(new float[2]{7, NAN}, std::default_delete<const float[]>());
  EXPECT_THAT(std::string(StartOfChain(Layout(parameters), {.model = true}, 0, RngKey{7}).status().message()),
              HasSubstr("init.model: 0.bias has a value that is not finite"));
}

class ImportedChain : public StartPoint {
 protected:
  Weights File() {
    return std::move(
        Weights()
            .Add<float>("theta/0.weight", TensorType::kFloat32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6})
            .Add<float>("theta/0.bias", TensorType::kFloat32, {2, 2}, {7, 8, -7, -8})
            .Add<float>("theta/1.running_mean", TensorType::kFloat32, {2, 1}, {0.5f, 0.25f}));
  }
  absl::StatusOr<StoredDraws> Read(const std::string& file, const SamplerSpec& sampler = {SgdSpec()}) {
    return StoredDraws::Read(&file, {.sampler = sampler}, tensors_, 2);
  }
  std::string WhyNot(const std::string& file, const SamplerSpec& sampler = {SgdSpec()}) {
    return std::string(Read(file, sampler).status().message());
  }
  std::vector<ParameterShape> tensors_ = [this] {
    std::vector<ParameterShape> tensors = layout_.parameters();
    tensors.push_back({.name = "1.running_mean", .shape = {1}});
    return tensors;
  }();
};

TEST_F(ImportedChain, HasTheDrawsOfItsFileAndStartsAtTheLast) {
  const std::string file = File().Add<double>("weights", TensorType::kFloat64, {2}, {3, 0.5}).File();
  const auto draws = Read(file);
  ASSERT_TRUE(draws.ok()) << draws.status();
  EXPECT_EQ(draws->size(), 2);
  EXPECT_TRUE(draws->Keeps(2));
  EXPECT_FALSE(draws->Keeps(3));
  Draw draw{.step = 2, .theta = {std::vector<float>(10, 9)}};
  draws->Replace({DrawKind::kTheta}, tensors_, &draw);
  EXPECT_EQ(draw.weight, 0.5);
  EXPECT_EQ(draw.theta[0], (std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8, 9, 0.25f}))
      << "the file has no variance";
  EXPECT_EQ(*StartOfChain(layout_, init_, 0, RngKey{7}, &file),
            (std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8, 0.5f}));
  const std::string state = StartPoint::File();
  EXPECT_EQ(Read(state)->size(), 0);
}

TEST_F(ImportedChain, RefusesDrawsThatItCannotGive) {
  const std::string both = File().Add<float>("theta_a/0.bias", TensorType::kFloat32, {2, 2}, {1, 2, 3, 4}).File();
  EXPECT_THAT(WhyNot(both, {EmcmcSpec()}), HasSubstr("the file lacks theta_a/0.weight: export"));
  EXPECT_THAT(WhyNot(both, {RandomWalkSpec()}), HasSubstr("not a Metropolis one"));
  EXPECT_THAT(std::string(StoredDraws::Read(&both, {.sampler = {SgdSpec()}}, tensors_, 1).status().message()),
              HasSubstr("has 2 draws, the job 1 steps: set num_steps to the draws"));
  EXPECT_TRUE(StoredDraws::Read(&both, {.sampler = {SwagSpec()}}, tensors_, 1).ok()) << "averaged, not one a step";
  EXPECT_THAT(WhyNot(File().Add<double>("weights", TensorType::kFloat64, {2}, {1, 2}).File(), {SwagSpec()}),
              HasSubstr("has draws of different weights, which swag does not know: export the job without --weighted"));
  EXPECT_EQ(WhyNot(File().Add<double>("weights", TensorType::kFloat64, {2}, {2, 2}).File(), {SwaSpec()}), "");
  const std::string few =
      File().Add<float>("theta/likelihood.log_variance", TensorType::kFloat32, {2, 2}, {1, 2, 3, 4}).File();
  EXPECT_THAT(WhyNot(few), HasSubstr("with other shapes than 2 draws of this network: export the job again"));
  for (const double weight : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(WhyNot(File().Add<double>("weights", TensorType::kFloat64, {2}, {1, weight}).File()),
                HasSubstr("has weights that are not one number"));
  }
  EXPECT_THAT(WhyNot(File().Add<double>("weights", TensorType::kFloat64, {1}, {1}).File()),
              HasSubstr("has weights that are not one number"));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      WhyNot(File().Add<float>("theta/likelihood.log_variance", TensorType::kFloat32, {2, 1}, {1, infinite}).File()),
      HasSubstr("not finite"));
}

}  // namespace
}  // namespace chainfleet
