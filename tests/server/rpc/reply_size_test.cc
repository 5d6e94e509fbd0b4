// "Every reply that grows with data is a stream or is paged; a test walks all RPCs with the largest allowed content."
#include "server/rpc/reply_size.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "chainfleet/v1/access.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "chainfleet/v1/worker.pb.h"
#include "core/base/content_limits.h"
#include "core/wire/field_wire.h"
#include "core/wire/types_wire.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/job_render.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
const std::string kLongName(253, 'w'), kJobId = std::string(63, 'j') + "-aaaaaa";

ChainStats FullStats() {
  RunReport report;
  RunReport::Fields(report, [](const char*, auto& value) { value = 1; });
  return {1, 1, 1, 1, 1, MetropolisStats{1, 1, 1, 1, 1}, report, kHuge};
}

// 4,096 chains that failed with the longest reason, 256 stopped points, the longest spec.
JobView LargestJob() {
  auto plan = std::make_shared<JobPlan>();
  plan->job = kJobId;
  plan->spec.model.kind =
      GaussianPotential{.dimension = 512, .precision = {}, .covariance = std::vector<double>(512 * 512, 0.1)};
  plan->spec.init.theta.assign((limits::kMaxSpecBytes - 9 * 512 * 512) / 9, 0.1);
  plan->spec.schedule.kind = ConstantSchedule{0.1};
  plan->spec.num_steps = limits::kMaxStepsPerChain;
  for (int i = 0; i < limits::kMaxSweepPoints; ++i) plan->spec.sweep.temperature.push_back(0.1 + i / 3.0);
  plan->spec.chains = limits::kMaxChainsPerJob / limits::kMaxSweepPoints;
  JobView view;
  view.id = kJobId;
  view.plan = plan;
  view.num_draws = view.step = view.total_steps = kHuge;
  for (int32_t i = 0; i < limits::kMaxChainsPerJob; ++i) {
    view.chains.push_back({{kJobId, i},
                           ChainState::kFailed,
                           kHuge,
                           kHuge,
                           kHuge,
                           FullStats(),
                           kLongName,
                           kHuge,
                           6,
                           std::string(1023, 'x')});
  }
  for (int32_t i = 0; i < limits::kMaxSweepPoints; ++i) view.stopped[i] = std::string(128, 'y');
  for (int i = 0; i < 32; ++i) view.aliases.push_back(std::string(63, 'a'));
  return view;
}

v1::Job WholeJob() {
  v1::Job job = RenderJob(LargestJob());
  std::vector<Diagnostic> diagnostics;
  for (int32_t point = 0; point < limits::kMaxSweepPoints; ++point) {
    for (int i = 0; i < 8; ++i) {  // as many quantities as fit with this number of points
      diagnostics.push_back({point, std::string(32, 'q'), 16, 1000, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1});
    }
  }
  RenderDiagnostics(diagnostics, &job);
  return job;
}

Dataset LargestDataset() {
  Dataset dataset;
  dataset.name = std::string(63, 'd');
  dataset.input_shape = {limits::kMaxChannels};
  dataset.shared_with.assign(limits::kMaxTenantsSharedWith, std::string(63, 't'));
  dataset.normalisation.mean.assign(limits::kMaxChannels, 0.1);
  dataset.normalisation.stddev.assign(limits::kMaxChannels, 0.1);
  return dataset;
}

WorkerView LargestWorker() {
  WorkerView worker;
  worker.id = worker.host = worker.metrics_address = kLongName;
  for (int i = 0; i < 64; ++i) worker.device += kLongName + ", ";
  return worker;
}

// A page ends before kPageBytes, or after its first item.
int64_t PageOf(const google::protobuf::Message& item) {
  return std::max(limits::kPageBytes, static_cast<int64_t>(item.ByteSizeLong()));
}

v1::Traces LargestTraces() {
  // All of a job's values are of one quantity or more; the energy is always one of two.
  std::vector<TracedChain> chains;
  for (int64_t i = 0; i < TraceTable::kMostValuesOfQuantity / 1000; ++i) {
    chains.push_back({static_cast<int32_t>(i), 255, std::vector<int64_t>(1000, limits::kMaxStepsPerChain / 1000),
                      std::vector<double>(1000, 0.1)});
  }
  return RenderTraces("energy", chains, std::vector<std::string>(kMostTraceQuantities, std::string(63, 'q')));
}

// More events than a job keeps, with more text than an event keeps.
v1::ListEventsResponse LargestEvents() {
  const SystemClock clock;
  EventLog log(&clock, 1);
  log.Open(kJobId, /*restored=*/true);
  const std::string text(limits::kMaxEventBytes, 'x');
  for (int i = 0; i < 2 * limits::kMaxJobEvents; ++i) {
    log.Add(LogLevel::kWarning, "lease ended",
            {{"job", kJobId}, {"chain", 4095}, {"worker", kLongName}, {"reason", text}});
  }
  return RenderEvents(log.After(kJobId, 0));
}

v1::Evaluation LargestEvaluation() {
  v1::Evaluation evaluation;
  for (int32_t i = 0; i < 2048; ++i) {
    Flatness flatness;
    flatness.chain = {kJobId, i};
    flatness.fisher_ranks.assign(256, int64_t{1} << 40);
    flatness.fisher_values.assign(256, 0.1);
    flatness.line_positions = flatness.random_line = flatness.anchor_line = std::vector<double>(21, 0.1);
    *evaluation.add_flatness() = Written<v1::Flatness>(flatness);
  }
  v1::Scores scores;
  for (int i = 0; i < 1000; ++i) {
    v1::ReliabilityBin* bin = scores.add_reliability();
    bin->set_upper(0.1), bin->set_count(kHuge), bin->set_mean_confidence(0.1), bin->set_accuracy(0.1);
  }
  for (int i = 0; i < 8; ++i) *evaluation.add_scores() = scores;
  for (int i = 0; i < 60; ++i) *evaluation.add_corrupted()->mutable_scores() = scores;
  return evaluation;
}

using Size = std::function<int64_t()>;
const Size kFixed = [] { return 0; };                            // no part of it grows
const Size kChunks = [] { return limits::kChunkBytes + 1024; };  // a stream of pieces
const Size kCut = [] { return limits::kMaxMessageBytes; };       // refused earlier, with the number of rows that fits

template <typename Message>
Size SizeOf(Message (*make)()) {
  return [make] { return static_cast<int64_t>(make().ByteSizeLong()); };
}

std::map<std::string, Size> Replies() {
  const Size job = SizeOf(&WholeJob), evaluation = SizeOf(&LargestEvaluation);
  const auto page = [](auto item) { return Size([item] { return PageOf(item()); }); };
  return {
      {"AccessService.CreateToken", kFixed},
      {"AccessService.ListTokens", kFixed},
      {"AccessService.RevokeToken", kFixed},
      {"AccessService.ListAudit", kFixed},
      {"AccessService.Backup", kFixed},
      {"AccessService.ReadObject", kChunks},
      {"AccessService.Restore", kFixed},
      {"JobService.CreateJob", job},
      {"JobService.GetJob", job},
      {"JobService.ListJobs", page([] { return RenderListedJob(LargestJob()); })},
      {"JobService.WatchJob", job},
      {"JobService.ListEvents", SizeOf(&LargestEvents)},
      {"JobService.SetIntent", job},
      {"JobService.ScaleJob", job},
      {"JobService.ListSegments", kChunks},  // ListPage in job_service.cc; e2e.Export has the long ones
      {"JobService.GetTraces", SizeOf(&LargestTraces)},
      {"JobService.ReadSegment", kChunks},
      {"JobService.CreateSnapshot", kFixed},
      {"JobService.ListSnapshots", kFixed},
      {"JobService.DeleteSnapshot", kFixed},
      {"JobService.SetAlias", kFixed},
      {"JobService.ListAliases", kFixed},
      {"JobService.DeleteAlias", kFixed},
      {"JobService.PutDataset", [] { return static_cast<int64_t>(RenderDataset(LargestDataset()).ByteSizeLong()); }},
      {"JobService.ListDatasets", page([] { return RenderDataset(LargestDataset()); })},
      {"JobService.ReadRows", kCut},
      {"JobService.DeleteDataset", kFixed},
      {"JobService.ShareDataset", [] { return static_cast<int64_t>(RenderDataset(LargestDataset()).ByteSizeLong()); }},
      {"JobService.PutModel", kFixed},
      {"JobService.ListModels", kFixed},
      {"JobService.DeleteModel", kFixed},
      {"JobService.ShareModel", kFixed},
      {"JobService.ListWorkers", page([] { return RenderWorker(LargestWorker(), true); })},
      {"JobService.DrainWorker",
       [] { return static_cast<int64_t>(RenderWorker(LargestWorker(), true).ByteSizeLong()); }},
      {"JobService.GetServerInfo", kFixed},
      {"PredictService.Predict", kCut},
      {"PredictService.Evaluate", evaluation},
      {"PredictService.StartEvaluation", evaluation},
      {"PredictService.GetEvaluation", evaluation},
      {"PredictService.ListEvaluations", page(&LargestEvaluation)},
      {"PredictService.CancelEvaluation", evaluation},
      {"WorkerService.Join", [] { return int64_t{4096}; }},  // a certificate of two names
      {"WorkerService.Synchronize", [] { return limits::kPageBytes + limits::kMaxSpecBytes; }},  // grants by pieces
      {"WorkerService.CommitProgress", kFixed},
      {"WorkerService.PutBlob", kFixed},
      {"WorkerService.SignUpload", kFixed},
      {"WorkerService.GetBlob", kChunks},
      {"WorkerService.ServeShards", kChunks},
      {"GRPCInferenceService.ServerLive", kFixed},
      {"GRPCInferenceService.ServerReady", kFixed},
      {"GRPCInferenceService.ModelReady", kFixed},
      {"GRPCInferenceService.ServerMetadata", kFixed},
      {"GRPCInferenceService.ModelMetadata", [] { return 2 * 25 * limits::kMaxChannels; }},  // x.mean, x.stddev
      {"GRPCInferenceService.ModelInfer", kCut},
      {"GRPCInferenceService.ModelStreamInfer", kCut},
      {"GRPCInferenceService.ModelConfig", kFixed},
      {"GRPCInferenceService.ModelStatistics", [] { return limits::kPageBytes + limits::kMiB; }},
      // a name, a version, a state and a reason for each job that a tenant may have by default, and each alias
      {"GRPCInferenceService.RepositoryIndex", [] { return int64_t{256} * (10'000 + limits::kMaxAliases); }},
  };
}

TEST(ReplySize, TheLargestReplyOfEveryMethodFitsAMessage) {
  std::map<std::string, Size> replies = Replies();
  for (const auto* method : ContractMethods()) {
    const std::string name = method->service()->name() + "." + method->name();
    const auto reply = replies.extract(name);
    ASSERT_FALSE(reply.empty()) << name << ": say what its largest reply is";
    EXPECT_LE(reply.mapped()(), limits::kMaxMessageBytes) << name;
  }
  EXPECT_TRUE(replies.empty()) << replies.begin()->first << " is no method";
}

TEST(ReplySize, BeyondItTheCallEndsWithAReason) {
  v1::Chunk chunk;
  chunk.set_data(std::string(limits::kMaxMessageBytes, 'x'));
  const absl::Status refused = CheckReplySize(chunk);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(ReasonOf(refused), "REPLY_TOO_LARGE");
  chunk.set_data(std::string(limits::kMaxMessageBytes - 8, 'x'));
  EXPECT_TRUE(CheckReplySize(chunk).ok());
}

class WorkerPages : public RunningServer {};

TEST_F(WorkerPages, ListEveryWorkerOnce) {
  for (int i = 0; i < 25; ++i) {
    SynchronizeRequest request;
    request.protocol_version = kProtocolVersion;
    request.worker = request.incarnation = absl::StrCat("w", i);
    request.seq = 1;
    Waited<absl::StatusOr<SynchronizeReply>> reply;
    dispatcher_.Synchronize(request, reply.Take());
  }
  std::vector<std::string> ids;
  v1::ListWorkersRequest request;
  request.set_page_size(10);
  std::vector<int> sizes;
  do {
    const auto page = Call(*jobs_, &v1::JobService::Stub::ListWorkers, request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Worker& worker : page->workers()) ids.push_back(worker.id());
    sizes.push_back(page->workers_size());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(sizes, testing::ElementsAre(10, 10, 5));
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 25u);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ListWorkers, v1::ListWorkersRequest())->workers_size(), 25);
  request.set_page_token("nonsense");
  EXPECT_TRUE(absl::IsInvalidArgument(Call(*jobs_, &v1::JobService::Stub::ListWorkers, request).status()));
}

}  // namespace
}  // namespace chainfleet
