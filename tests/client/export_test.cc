#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.grpc.pb.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_file.h"
#include "client/cli/verbs/verbs.h"
#include "core/formats/npz.h"
#include "core/store/draw_codec/segment_codec.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Lists and returns the test's objects, including damaged ones.
class FakeDraws final : public v1::JobService::Service {
 public:
  grpc::Status ListSegments(grpc::ServerContext*, const v1::ListSegmentsRequest*,
                            v1::ListSegmentsResponse* reply) override {
    for (const v1::SegmentRecord& record : records) *reply->add_segments() = record;
    return grpc::Status::OK;
  }
  grpc::Status ReadSegment(grpc::ServerContext*, const v1::ReadSegmentRequest* request,
                           grpc::ServerWriter<v1::Chunk>* writer) override {
    ++reads[request->object()];
    if (gone.contains(request->object())) {
      return ToGrpc(WithReason(absl::NotFoundError("the draws were deleted"), "DRAWS_DELETED"));
    }
    if (lost.contains(request->object())) {
      return ToGrpc(WithReason(absl::DataLossError("the object is gone from the store"), "OBJECT_MISSING"));
    }
    v1::Chunk chunk;
    chunk.set_data(objects[request->object()]);
    writer->Write(chunk);
    return grpc::Status::OK;
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*, v1::Job* reply) override {
    *reply = job;
    reply->set_id("toy-abcdef");
    reply->mutable_inputs()->add_shape(1);
    reply->mutable_inputs()->mutable_normalisation()->add_mean(72.9);
    reply->mutable_inputs()->mutable_normalisation()->add_stddev(90);
    return grpc::Status::OK;
  }
  grpc::Status GetTraces(grpc::ServerContext*, const v1::GetTracesRequest*, v1::Traces* reply) override {
    *reply = traces;
    return grpc::Status::OK;
  }

  v1::Job job;
  v1::Traces traces;
  std::vector<v1::SegmentRecord> records;
  std::map<std::string, std::string> objects;
  std::map<std::string, int> reads;
  std::set<std::string> gone;  // deleted after they were listed
  std::set<std::string> lost;  // lost by the store
};

// A chain of five segments of one draw each, "object0" to "object4".
class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 5; ++i) AddDraw(0, 1);
    std::filesystem::remove(output_);
  }

  // Returns the chain's next draw in a segment of its own: (index, 2).
  void AddDraw(int32_t chain, double weight) {
    const auto i = static_cast<int64_t>(next_[chain]++);
    const std::string parent = i == 0 ? FirstParentDigest() : service_.records.back().segment().digest();
    Segment said{.first_index = i, .kinds = {DrawKind::kTheta}, .parent_digest = parent};
    const std::string bytes =
        EncodeSegment({"toy-abcdef", chain}, {{10 * (i + 1), weight, {{1.0f * static_cast<float>(i), 2.0f}}}},
                      {{"w", {2}, 0}}, &said);
    const std::string name = "object" + std::to_string(service_.records.size());
    service_.objects[name] = bytes;
    v1::SegmentRecord& record = service_.records.emplace_back();
    record.mutable_chain()->set_job("toy-abcdef");
    record.mutable_chain()->set_index(chain);
    v1::Segment* segment = record.mutable_segment();
    segment->mutable_object()->set_name(name);
    segment->mutable_object()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    segment->mutable_object()->set_sha256(Sha256Hex(bytes));
    segment->set_first_index(i);
    segment->add_steps(10 * (i + 1));
    segment->add_weights(weight);
    segment->set_parent_digest(parent);
    segment->set_digest(said.digest);
  }

  void Damage(int i) { service_.objects["object" + std::to_string(i)].back() ^= 1; }

  int Export(const std::string& more = "") { return Run("--format npz --output " + output_ + " " + more); }

  // Returns the exit code; out_ and err_ have the output.
  int Run(const std::string& options) {
    CLI::App program;
    Invocation run;
    AddExport(&program, &run);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    program.parse("export toy --address " + server_.address() + " " + options);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    failure_ = std::string(run.status.message());
    return ExitCodeOf(run.status);
  }

  std::string BytesOfFile(const std::string& more = "") const {
    std::ifstream file(output_ + more, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  Array ArrayInFile(const std::string& name) const { return ReadNpz(BytesOfFile(), {name})->at(name); }
  template <typename T>
  std::vector<T> ValuesInFile(const std::string& name) const {
    const std::string bytes = ArrayInFile(name).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  int64_t DrawsInFile() const { return ArrayInFile("theta/w").shape[1]; }

  std::map<int32_t, int> next_;
  FakeDraws service_;
  LoopbackServer server_{&service_};
  const std::string output_ = ::testing::TempDir() + "export_test-" + std::to_string(::getpid()) + ".npz";
  std::string out_, err_, failure_;
};

TEST_F(ExportTest, WritesAllDrawsWithoutAWarning) {
  EXPECT_EQ(Export(), kExitOk);
  EXPECT_EQ(DrawsInFile(), 5);
  EXPECT_THAT(out_, HasSubstr("5 draws of toy-abcdef"));
  EXPECT_EQ(err_, "");
}

// "A plain mean is biased and nothing says so": a draw held for three steps counts three times.
TEST_F(ExportTest, RepeatsDrawsByTheirWeightsAndFillsShorterChains) {
  AddDraw(3, 1);
  AddDraw(3, 3);
  ASSERT_EQ(Export(), kExitOk);
  EXPECT_THAT(out_, HasSubstr("7 draws of toy-abcdef, repeated by weight to 9,"));
  EXPECT_THAT(ArrayInFile("theta/w").shape, ElementsAre(2, 5, 2));
  const std::vector<float> w = ValuesInFile<float>("theta/w");
  EXPECT_THAT(std::vector<float>(w.begin(), w.begin() + 18),
              ElementsAre(0, 2, 1, 2, 2, 2, 3, 2, 4, 2, 0, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_TRUE(std::isnan(w[18]) && std::isnan(w[19])) << "the second chain is shorter";
  EXPECT_THAT(ValuesInFile<int64_t>("step"), ElementsAre(10, 20, 30, 40, 50, 10, 20, 20, 20, -1));
  EXPECT_THAT(ValuesInFile<int32_t>("chain"), ElementsAre(0, 3));
  EXPECT_THAT(ValuesInFile<int64_t>("draws"), ElementsAre(5, 4));
  EXPECT_THAT(ValuesInFile<double>("input_mean"), ElementsAre(72.9));
  EXPECT_THAT(ValuesInFile<double>("input_stddev"), ElementsAre(90));
  EXPECT_THAT(BytesOfFile(), HasSubstr("\"weighted\": false"));
}

TEST_F(ExportTest, KeepsWeightsApartWhenAskedTo) {
  AddDraw(3, 2.5);
  EXPECT_EQ(Export(), kExitFailed) << "half a draw is no draw";
  EXPECT_THAT(failure_, HasSubstr("--weighted"));
  ASSERT_EQ(Export("--weighted --chains 3"), kExitOk);
  EXPECT_THAT(ArrayInFile("theta/w").shape, ElementsAre(1, 1, 2));
  EXPECT_THAT(ValuesInFile<double>("weight"), ElementsAre(2.5));
  EXPECT_THAT(BytesOfFile(), HasSubstr("\"weighted\": true"));
  EXPECT_EQ(Export("--chains 1"), kExitFailed);
}

TEST_F(ExportTest, LeavesMarkedAndDeletedDrawsOutAndSaysWhich) {
  service_.records[1].set_corrupt(true);
  service_.records[3].set_deleted(true);
  Damage(1);
  EXPECT_EQ(Export(), kExitOk);
  EXPECT_EQ(DrawsInFile(), 3);
  EXPECT_THAT(out_, HasSubstr("3 of 5 draws of toy-abcdef"));
  EXPECT_EQ(err_,
            "warning: chain 0, 1 draws from 1 left out: marked corrupt\n"
            "warning: 1 draws were deleted and are left out\n");
}

// One lost object must not keep the other draws from a user.
TEST_F(ExportTest, LeavesDrawsOutWhoseObjectsAreGone) {
  service_.lost = {"object1", "object4"};
  EXPECT_EQ(Export(), kExitOk);
  EXPECT_EQ(DrawsInFile(), 3);
  EXPECT_THAT(out_, HasSubstr("3 of 5 draws of toy-abcdef"));
  EXPECT_THAT(err_, AllOf(HasSubstr("1 draws from 1 left out: the object is gone from the store\n"),
                          HasSubstr("1 draws from 4 left out: the object is gone from the store\n")));
}

TEST_F(ExportTest, GoesOnWhenDrawsAreDeletedMeanwhile) {
  service_.records[0].set_deleted(true);
  service_.gone = {"object1", "object3"};
  EXPECT_EQ(Export(), kExitOk);
  EXPECT_EQ(DrawsInFile(), 2);
  EXPECT_THAT(out_, HasSubstr("2 of 5 draws of toy-abcdef"));
  EXPECT_EQ(err_, "warning: 3 draws were deleted and are left out\n");
  EXPECT_EQ(service_.reads["object2"], 1);
}

TEST_F(ExportTest, FailsOnANewlyDamagedObjectUnlessToldToSkipIt) {
  Damage(2);
  EXPECT_EQ(Export(), kExitDataLoss);
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(ExportTest, SkipsNewlyDamagedObjectsWhenToldToAndReadsTheOthersOnce) {
  service_.records[1].set_corrupt(true);
  Damage(2);
  Damage(4);
  EXPECT_EQ(Export("--skip-corrupt"), kExitOk);
  EXPECT_EQ(DrawsInFile(), 2);
  EXPECT_THAT(out_, HasSubstr("2 of 5 draws"));
  EXPECT_THAT(err_, AllOf(HasSubstr("draws from 2 left out"), HasSubstr("draws from 4 left out"),
                          Not(HasSubstr("draws from 3"))));
  EXPECT_EQ(service_.reads["object0"], 1);
  EXPECT_EQ(service_.reads["object3"], 1);
}

TEST_F(ExportTest, SkippingDoesNotHideABrokenChainOfRecords) {
  service_.records[3].mutable_segment()->set_parent_digest(FirstParentDigest());
  EXPECT_EQ(Export("--skip-corrupt"), kExitDataLoss);
}

TEST_F(ExportTest, WritesOnlyTheTracesOfTheChosenChainsAndPoint) {
  *service_.job.mutable_spec() = ParseJobFile("job.yaml", R"(
name: toy
model: {potential: {gaussian: {dimension: 2}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 10
sweep: {temperature: [1, 0.1]}
)")
                                     ->spec;
  service_.traces.set_quantity("energy");
  for (int32_t chain = 0; chain < 4; ++chain) {
    v1::Traces::Chain* const of = service_.traces.add_chains();
    of->set_chain(chain);
    of->set_point(chain / 2);
    of->add_steps(10);
    of->add_values(0.5);
  }
  const std::string traces = "--traces " + output_ + ".csv ";
  ASSERT_EQ(Run(traces), kExitOk) << failure_;
  EXPECT_EQ(BytesOfFile(".csv"), "chain,point,step,energy\n0,0,10,0.5\n1,0,10,0.5\n2,1,10,0.5\n3,1,10,0.5\n");
  ASSERT_EQ(Run(traces + "--chains 0,3"), kExitOk) << failure_;
  EXPECT_EQ(BytesOfFile(".csv"), "chain,point,step,energy\n0,0,10,0.5\n3,1,10,0.5\n");
  ASSERT_EQ(Run(traces + "--point temperature=0.1"), kExitOk) << failure_;
  EXPECT_EQ(BytesOfFile(".csv"), "chain,point,step,energy\n2,1,10,0.5\n3,1,10,0.5\n");
  EXPECT_EQ(Run(traces + "--point 1 --chains 0"), kExitNotFound);
  EXPECT_EQ(failure_, "job toy-abcdef has no traced values of chain 0 at point 1");
}

TEST_F(ExportTest, RefusesOptionsOfDrawsForTraces) {
  for (const std::string option : {"--weighted", "--skip-corrupt"}) {
    EXPECT_EQ(Run("--traces " + output_ + ".csv " + option), kExitUsage);
    EXPECT_EQ(failure_, "--weighted and --skip-corrupt are for npz, zarr and safetensors");
  }
}

TEST_F(ExportTest, SaysWhyAJobHasNoDraws) {
  service_.records.clear();
  service_.job.set_state(v1::Job::RUNNING);
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(failure_, HasSubstr("no committed draws yet: wait for them, `chainfleet watch toy-abcdef`"));
  service_.job.set_state(v1::Job::CANCELLED);
  Export();
  EXPECT_THAT(failure_, AllOf(HasSubstr("ended CANCELLED without"), Not(HasSubstr("yet"))));
  service_.job.set_state(v1::Job::FAILED);
  service_.job.add_chains()->set_state(v1::DIVERGED);
  service_.job.mutable_chains(0)->set_reason("energy is not finite");
  Export();
  EXPECT_THAT(failure_,
              AllOf(HasSubstr("ended FAILED without"), HasSubstr("chain 0 DIVERGED: energy is not finite; submit")));
}

TEST_F(ExportTest, WritesNoFileWhenNoDrawIsReadable) {
  for (v1::SegmentRecord& record : service_.records) record.set_corrupt(true);
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_FALSE(std::filesystem::exists(output_));
}

}  // namespace
}  // namespace chainfleet
