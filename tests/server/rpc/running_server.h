// A real gRPC server on a free port of this host, over stores in memory, and stubs that talk to it.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.grpc.pb.h"
#include "chainfleet/v1/predict.grpc.pb.h"
#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/base/clock.h"
#include "core/base/per_tenant.h"
#include "core/base/thread_pool.h"
#include "core/metrics/metrics.h"
#include "core/store/blob_store/file_blob_store.h"
#include "core/wire/grpc_status.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/adapters/evaluation_store.h"
#include "server/control/coordinator.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/held_reply.h"
#include "server/rpc/selection_query.h"
#include "tests/server/rpc/given_tokens.h"
#include "tests/support/memory_blob_store.h"
#include "tests/support/recording_store.h"

namespace chainfleet {

// The answer of an asynchronous call, waited for.
template <typename T>
class Waited {
 public:
  std::function<void(T)> Take() {
    return [shared = shared_](T value) {
      MutexLock lock(&shared->mutex);
      EXPECT_FALSE(shared->value.has_value()) << "answered twice";
      shared->value = std::move(value);
      shared->changed.SignalAll();
    };
  }
  // Fails the test after 20 s.
  std::optional<T> Get() {
    MutexLock lock(&shared_->mutex);
    while (!shared_->value) {
      if (shared_->changed.WaitWithTimeout(&shared_->mutex, absl::Seconds(20))) break;
    }
    EXPECT_TRUE(shared_->value.has_value()) << "no answer";
    return shared_->value;
  }

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::optional<T> value;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// Blocks the calls of a state store until it is destroyed.
class HeldStore {
 public:
  explicit HeldStore(RecordingStore* store) {
    store->BeforeEachCall([first = std::make_shared<std::atomic_flag>(), reached = reached_.Take(), open = open_] {
      if (!first->test_and_set()) reached(true);
      open->Get();
    });
  }
  ~HeldStore() { open_->Take()(true); }
  // Waits for the first call.
  void AwaitCall() { reached_.Get(); }

 private:
  Waited<bool> reached_;
  const std::shared_ptr<Waited<bool>> open_ = std::make_shared<Waited<bool>>();
};

// The system's clock, whose calendar a test may put forward.
class CalendarClock final : public Clock {
 public:
  void PutForward(absl::Duration by) { ahead_s_ += absl::ToInt64Seconds(by); }
  absl::Duration Monotonic() const override { return system_.Monotonic(); }
  absl::Time Wall() const override { return system_.Wall() + absl::Seconds(ahead_s_.load()); }

 private:
  const SystemClock system_;
  std::atomic<int64_t> ahead_s_ = 0;
};

// Workers see Fold(kShardIds, shard_id).
inline constexpr RngKey kShardIds = {8};

class RunningServer : public ::testing::Test {
 protected:
  explicit RunningServer(GivenTokens tokens = {}, bool allow_modules = true,
                         const PerTenant<int64_t>& tenant_calls = 4096, const TenantLimits& tenant_limits = {},
                         int64_t changes_at_once = limits::kChangesAtOnce);
  ~RunningServer() override;

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  // Another server over the same parts.
  absl::StatusOr<std::unique_ptr<GrpcServer>> StartOn(const std::string& address);

  // Calls, with a deadline. Request and response are deduced from the stub's method.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }
  void SendToken(grpc::ClientContext* context) const {
    if (!proof_.empty()) context->AddMetadata(kWorkerProofHeader, proof_);
    if (!token_.empty()) context->AddMetadata("authorization", "Bearer " + token_);
  }
  static void SetDeadline(grpc::ClientContext* context, double seconds = 20);
  // Until those of all commits that were answered are there.
  void WaitForDiagnostics() {
    Waited<bool> done;
    computing_.Schedule([take = done.Take()] { take(true); });
    done.Get();
  }

  // The first grant. A new fleet is left to settle before it gets work, so the first answers may have none.
  static Grant Granted(const std::function<absl::StatusOr<SynchronizeReply>()>& synchronize);

  // The first draw of the next chain that waits for a worker, which goes on holding it, or with `ends_as` its last.
  void CommitADraw(std::optional<ChainState> ends_as = std::nullopt);
  static inline const std::string kDrawBytes = "ten bytes!";  // bytes of that draw's object, which is not stored
  // Commits the first draw of a chain that the worker of CommitADraw holds under this epoch.
  void CommitFirstDraw(const ChainId& chain, int64_t lease_epoch, std::optional<ChainState> ends_as = std::nullopt);

  // The data set "digits": 100 images of 1 x 2 x 2 in three classes.
  void PutDigits(const std::string& tenant = kDefaultTenant, const std::string& name = "digits");

  absl::StatusOr<v1::Job> CreateJob(const v1::JobSpec& spec, const std::string& request_id = "");
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  absl::StatusOr<v1::Job> SetIntent(const std::string& name, v1::Job::Intent intent);
  // Reads a stream of chunks to its end.
  static absl::StatusOr<std::string> ReadAll(std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader);

  std::string token_;  // token of Call; empty: none
  std::string proof_;  // serialised WorkerProof of Call; empty: none
  CalendarClock clock_;
  std::unique_ptr<ThreadPool> threads_ = std::make_unique<ThreadPool>(4);
  MemoryDatabase database_{"store"};
  const std::unique_ptr<RecordingStore> state_ = std::make_unique<RecordingStore>(database_.Open());
  MemoryBlobStore blobs_;
  MetricsRegistry registry_{"server"};
  ServerMetrics metrics_{&registry_};
  InferenceStatistics statistics_;
  DatasetRoots dataset_roots_;
  const FairBudget upload_budget_{limits::kMaxUploadsBytes};
  const FairBudget object_budget_{limits::kMaxObjectUploadsBytes};
  const ByteBudget reply_budget_{kMaxHeldReplyBytes};
  DatasetReads dataset_reads_{threads_.get(), 1};
  ObjectChecks object_checks_{threads_.get(), 2};
  Strand computing_{threads_.get()};
  TraceTable traces_{&computing_};
  FinalFindings findings_{threads_.get(), state_.get(), &traces_};
  Coordinator coordinator_;
  const std::string folder_;
  const WorkerAdmission admission_;
  Authenticator auth_;
  GarbageCollector garbage_;
  const std::unique_ptr<AuditLog> audit_;
  const std::unique_ptr<FileBlobStore> backup_copies_;
  Catalog& content_ = coordinator_.catalog();
  Versions& versions_ = coordinator_.versions();
  Dispatcher& dispatcher_ = coordinator_.dispatcher();
  const ServiceParts parts_;
  ShardStreams shards_{threads_.get(), kShardIds};
  DispatcherDrawCatalog catalog_{parts_};
  ShardQueue queue_{&clock_, threads_.get(), &shards_};
  PredictRouter router_{&clock_, threads_.get(), &catalog_, &queue_};
  Batcher batcher_{&clock_, threads_.get(), &router_, &statistics_, BatchLimits{}};
  Evaluator evaluator_{threads_.get(), &catalog_, &blobs_, &queue_};
  EvaluationStore evaluation_log_{&coordinator_.writer(), state_.get(), coordinator_.events()};
  EvaluationOperations evaluations_{&clock_,          threads_.get(),         &evaluator_,
                                    &evaluation_log_, ProtoEvaluationCodec(), RngKey{7}};
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  std::unique_ptr<v1::PredictService::Stub> predictions_;
};

// A job on an analytic potential: nothing else is needed to run it.
v1::JobSpec GaussianJob(const std::string& name, int chains = 1);

// One on "digits".
v1::JobSpec SoftmaxJob(const std::string& name, int chains = 1);

// One with the data set "digits" and the job "softmax" on it.
class ServerWithJob : public RunningServer {
 protected:
  void SetUp() override {
    PutDigits();
    const auto job = CreateJob(SoftmaxJob("softmax"));
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = job->id();
  }

  std::string job_;  // its id
};

}  // namespace chainfleet
