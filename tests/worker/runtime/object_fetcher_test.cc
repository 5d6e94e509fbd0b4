#include "worker/runtime/object_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "core/store/draw_codec/safetensors.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/exported_files.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/manual_executor.h"
#include "worker/runtime/chain_loader.h"

namespace chainfleet {
namespace {

class ObjectFetcherTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCoordinator server_{&executor_};
  const std::string bytes_ = "the bytes";
  const BlobRef ref_{"store/a", 9, Sha256Hex(bytes_)};
  absl::StatusOr<std::shared_ptr<const std::string>> result_ = absl::UnknownError("not called");

  void SetUp() override { server_.blobs[ref_.name] = bytes_; }
  void Fetch(ObjectFetcher* fetcher, bool on_disk) {
    result_ = absl::UnknownError("not called");
    fetcher->Fetch(ref_, on_disk, [this](auto result) { result_ = std::move(result); });
    EXPECT_TRUE(absl::IsUnknown(result_.status()));
    executor_.RunFor(absl::Minutes(1));
  }
};

TEST_F(ObjectFetcherTest, ReturnsBytesThatMatchTheirDigest) {
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  Fetch(&fetcher, false);
  ASSERT_TRUE(result_.ok()) << result_.status();
  EXPECT_EQ(**result_, bytes_);
}

TEST_F(ObjectFetcherTest, ReportsBytesThatDoNotAsDataLoss) {
  server_.blobs[ref_.name][3] ^= 1;
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  Fetch(&fetcher, false);
  EXPECT_TRUE(absl::IsDataLoss(result_.status())) << result_.status();
}

TEST_F(ObjectFetcherTest, RepeatsThroughAShortOutage) {
  server_.get_failures.assign(3, absl::UnavailableError("down"));
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  Fetch(&fetcher, false);
  EXPECT_TRUE(result_.ok()) << result_.status();
}

TEST_F(ObjectFetcherTest, GivesUpAfterItsAttempts) {
  server_.get_failures.assign(limits::kUploadAttempts + 5, absl::UnavailableError("down"));
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  Fetch(&fetcher, false);
  EXPECT_TRUE(absl::IsUnavailable(result_.status())) << result_.status();
  EXPECT_EQ(server_.get_failures.size(), 5u);
}

TEST_F(ObjectFetcherTest, KeepsOnDiskWhatItMayAndChecksItAgain) {
  char folder[] = "/tmp/object_fetcher_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  {
    ObjectFetcher fetcher(&server_, &executor_, RngKey{1}, {RealFileSystem(), folder});
    Fetch(&fetcher, true);
    ASSERT_TRUE(result_.ok()) << result_.status();
  }
  server_.blobs.clear();
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1}, {RealFileSystem(), folder});
  Fetch(&fetcher, true);
  ASSERT_TRUE(result_.ok()) << result_.status();
  EXPECT_EQ(**result_, bytes_);
  // A damaged file is as good as none.
  ASSERT_TRUE(RealFileSystem()->WriteSynced(std::string(folder) + "/" + ref_.sha256, "the bytez").ok());
  Fetch(&fetcher, true);
  EXPECT_TRUE(absl::IsNotFound(result_.status())) << result_.status();
  std::filesystem::remove_all(folder);
}

TEST_F(ObjectFetcherTest, AWriteThatFailsTakesNoRoomOfTheDiskCache) {
  std::string folder = ::testing::TempDir() + "object_fetcher_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/" + ref_.sha256;
  std::ofstream(folder + "/other").flush();
  std::filesystem::resize_file(folder + "/other", limits::kDiskCacheBytes - ref_.size_bytes);  // all a hole
  std::filesystem::create_directories(file + "/in_the_way");
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1}, {RealFileSystem(), folder});
  Fetch(&fetcher, true);
  EXPECT_TRUE(result_.ok()) << result_.status();
  std::filesystem::remove_all(file);
  Fetch(&fetcher, true);
  EXPECT_EQ(RealFileSystem()->Read(file).value_or("not written"), bytes_);
  std::filesystem::remove_all(folder);
}

// Two rows of one float and one target, 16 bytes. What is not kept is fetched again, and is gone by then.
TEST_F(ObjectFetcherTest, TargetsOfBothSortsCountAgainstTheMemoryOfDataSets) {
  const char zeros[8] = {};
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  for (const Targets& targets : {Targets(Classes{1}), Targets(Numbers())}) {
    const bool labels = std::holds_alternative<Classes>(targets);
    const std::string shard = WriteSafetensors(
        {{"inputs", TensorType::kFloat32, {2, 1}, zeros, 8},
         {labels ? "labels" : "targets", labels ? TensorType::kInt32 : TensorType::kFloat32, {2}, zeros, 8}},
        {});
    Dataset dataset{.input_type = InputType::kFloat32, .input_shape = {1}, .num_rows = 2, .targets = targets};
    dataset.shards = {{0, 2, {"shard", static_cast<int64_t>(shard.size()), Sha256Hex(shard)}}};
    for (const int64_t room : {15, 16}) {
      InputCache cache(&fetcher, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }}, room);
      int loads = 0;
      const auto get = [&] {
        cache.GetDataset(dataset, [&](const auto& resident) { loads += resident.ok(); });
        executor_.RunFor(absl::Minutes(1));
      };
      server_.blobs["shard"] = shard;
      get();
      server_.blobs.erase("shard");
      get();
      EXPECT_EQ(loads, room < 16 ? 1 : 2) << (labels ? "labels" : "numbers") << " in " << room << " bytes";
    }
  }
}

// The disk cache has the file once it was fetched.
TEST_F(ObjectFetcherTest, ReadsANetworkOnceForAllWithAndWithoutADisk) {
  const std::string file = ReadExportedData("mlp.pt2");
  const BlobRef ref{"network", std::ssize(file), Sha256Hex(file)};
  char folder[] = "/tmp/networks-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  for (const DiskCache& disk : {DiskCache{}, DiskCache{RealFileSystem(), folder}}) {
    ObjectFetcher fetcher(&server_, &executor_, RngKey{1}, disk);
    EXPECT_EQ(fetcher.PathOnDisk(ref), "");
    InputCache cache(&fetcher, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }});
    server_.blobs[ref.name] = file;
    std::vector<std::shared_ptr<const ModelFile>> got;
    for (int i = 0; i < 2; ++i) {
      cache.GetModel(ref, [&](const auto& model) { got.push_back(model.ok() ? *model : nullptr); });
      executor_.RunFor(absl::Minutes(1));
      server_.blobs.erase(ref.name);
    }
    EXPECT_EQ(fetcher.PathOnDisk(ref), disk.files == nullptr ? "" : std::string(folder) + "/" + ref.sha256);
    ASSERT_NE(got[0], nullptr);
    EXPECT_EQ(got[0], got[1]);
    const ExportedModel& exported = std::get<ExportedModel>(got[0]->content);
    EXPECT_EQ(exported.tensors.size(), exported.program.tensors.size());
    EXPECT_EQ(got[0]->size_bytes(), 435 * static_cast<int64_t>(sizeof(float)));
  }
  std::filesystem::remove_all(folder);
}

// A chain that goes on needs its file only if its draws are in there.
TEST_F(ObjectFetcherTest, LoadsTheFileOfAChainThatGoesOnIfItHoldsItsDraws) {
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  InputCache inputs(&fetcher, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }});
  ChainLoader loader(&fetcher, &inputs, &executor_);
  for (const bool holds : {true, false}) {
    auto plan = std::make_shared<JobPlan>();
    const TensorSignature tensor = {holds ? "theta/bias" : "bias", "float32", {3, 2}};
    plan->weights = {{.name = "other"},
                     {.name = "file", .object = ref_, .signature = NetworkSignature{.parameters = {tensor}}}};
    LeasedChain chain;
    chain.grant.chain = {"job-a", 3};
    chain.grant.plan = plan;
    chain.grant.progress.step = 1;
    chain.grant.progress.resume_point = ResumePoint{.step = 1, .inline_bytes = "state", .sha256 = Sha256Hex("state")};
    EXPECT_EQ(HoldsDraws(chain.grant), holds);
    absl::StatusOr<LoadedChain> loaded = absl::UnknownError("not called");
    loader.Load(chain, [&](auto result) { loaded = std::move(result); });
    executor_.RunFor(absl::Minutes(1));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->resume_point, "state");
    ASSERT_EQ(loaded->weights != nullptr, holds);
    EXPECT_TRUE(!holds || *loaded->weights == bytes_);
  }
}

TEST_F(ObjectFetcherTest, LoadsNoResumePointThatIsNotTheOneOfTheChainsStep) {
  ObjectFetcher fetcher(&server_, &executor_, RngKey{1});
  InputCache inputs(&fetcher, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }});
  ChainLoader loader(&fetcher, &inputs, &executor_);
  LeasedChain chain;
  chain.grant.chain = {"job-a", 3};
  chain.grant.plan = std::make_shared<JobPlan>();
  chain.grant.progress.step = 20;
  std::optional<ResumePoint>& point = chain.grant.progress.resume_point;
  const auto load = [&] {
    absl::StatusOr<LoadedChain> loaded = absl::UnknownError("not called");
    loader.Load(chain, [&](auto result) { loaded = std::move(result); });
    executor_.RunFor(absl::Minutes(1));
    return loaded;
  };
  const auto expect_loss = [&](const std::string& what) {
    const absl::Status status = load().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), ::testing::HasSubstr("chain job-a/3: the resume point " + what));
  };
  expect_loss("is missing, the chain is at step 20");
  const ResumePoint older{.step = 10, .inline_bytes = "state", .sha256 = Sha256Hex("state")};
  point = older;
  expect_loss("is of step 10, the chain is at step 20");
  point = ResumePoint{.step = 20, .inline_bytes = "state", .sha256 = Sha256Hex("other state")};
  expect_loss("does not match its digest");
  point = ResumePoint{.step = 20, .object = ref_, .sha256 = Sha256Hex("other bytes")};
  expect_loss("does not match its digest");
  point->sha256 = ref_.sha256;
  EXPECT_EQ(load()->resume_point, bytes_);
  chain.grant.progress.step = 0;
  point = older;
  expect_loss("is of step 10, the chain is at step 0");
  point.reset();
  EXPECT_EQ(load()->resume_point, std::nullopt) << "a chain before its first commit has none";
}

}  // namespace
}  // namespace chainfleet
