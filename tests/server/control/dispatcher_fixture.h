// A Dispatcher with fake time, hand-run tasks and workers without torch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/control/coordinator.h"
#include "server/control/sessions.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_database.h"

namespace chainfleet {

inline DigestHex DigestOf(int64_t n) {
  const std::string digits = std::to_string(n);
  return std::string(64 - digits.size(), 'a') + digits;
}

inline JobSpec SmallSpec(const std::string& name, int chains) {
  JobSpec spec;
  spec.name = name;
  spec.model.kind = GaussianPotential{2, 1.0};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 1000;
  spec.chains = chains;
  return spec;
}

// The memory of a worker, which becomes its next report.
struct FakeWorker {
  explicit FakeWorker(std::string worker_id, int32_t chain_slots = 4)
      : id(std::move(worker_id)), incarnation(id + "-1"), slots(chain_slots) {}

  struct Held {
    int64_t epoch = 0;
    ChainProgress progress;
  };
  std::string id, incarnation;
  int32_t slots;
  int64_t memory_bytes = int64_t{1} << 30;
  int64_t chain_bytes = 0;  // measured bytes of each of its chains
  uint64_t seq = 0;
  int32_t protocol_version = kProtocolVersion;
  bool draining = false;
  bool heeds_drain = true;  // false: the worker is older than the drain order
  std::string store_incarnation;
  std::string names_begin_with;  // the store incarnation of the last reply
  std::map<ChainId, Held> chains;
  std::vector<ReleasedChain> released;
  std::map<ChainId, StopOrder::How> stops;  // from the last reply

  void Restart() {
    incarnation += "+";
    seq = 0;
    draining = false;
    chains.clear();
  }
  SynchronizeRequest Request() {
    SynchronizeRequest request;
    request.protocol_version = protocol_version;
    request.worker = id;
    request.incarnation = incarnation;
    request.seq = ++seq;
    request.host = "host-of-" + id;
    request.store_incarnation = store_incarnation;
    request.devices = {{"cpu", memory_bytes, slots}};
    for (const auto& [chain, held] : chains) {
      request.chains.push_back({chain, held.epoch, held.progress.step, {.device_bytes = chain_bytes}});
    }
    request.released = std::exchange(released, {});
    request.draining = draining;
    return request;
  }
  void Take(const SynchronizeReply& reply) {
    stops.clear();
    names_begin_with = reply.store_incarnation;
    draining = draining || (reply.drain && heeds_drain);
    for (const Grant& grant : reply.grants) chains[grant.chain] = {grant.lease_epoch, grant.progress};
    for (const StopOrder& stop : reply.stop) {
      stops[stop.chain] = stop.how;
      if (stop.how != StopOrder::How::kHandBack) chains.erase(stop.chain);
    }
  }
  static DigestHex DrawDigest(int64_t step) { return DigestOf(200'000 + step); }
  // Returns a commit `steps` further, with one draw. As in production, the digest depends only on the path.
  ProgressCommit NextCommit(const ChainId& chain, int64_t steps = 10) const {
    const Held& held = chains.at(chain);
    const int64_t step = held.progress.step + steps;
    ProgressCommit commit;
    commit.chain = chain;
    commit.lease_epoch = held.epoch;
    commit.resume_point = {step, "state", std::nullopt, Sha256Hex("state")};
    Segment segment;
    segment.first_index = held.progress.num_draws;
    segment.steps = {step};
    segment.weights = {1};
    segment.kinds = {DrawKind::kTheta};
    segment.digest = DrawDigest(step);
    segment.object = {SegmentObjectName(names_begin_with, chain, held.epoch, segment.digest), 10, DigestOf(1)};
    segment.parent_digest = held.progress.last_digest;
    commit.segment = segment;
    commit.stats.energy = static_cast<double>(step);
    commit.stats.step_size = 0.1;
    return commit;
  }
  // Returns the commit with this worker's identity.
  ProgressCommit Made(ProgressCommit commit) const {
    commit.author.worker = id;
    commit.incarnation = incarnation;
    return commit;
  }
  void Took(const ProgressCommit& commit) {
    ChainProgress& progress = chains.at(commit.chain).progress;
    progress.step = commit.resume_point.step;
    if (commit.segment) {
      ++progress.num_draws;
      progress.last_digest = commit.segment->digest;
    }
    if (commit.ends_as) chains.erase(commit.chain);
  }
};

class DispatcherTest : public testing::Test {
 protected:
  // Stores the answer when the executor has run.
  template <typename T>
  struct Answer {
    std::shared_ptr<std::optional<absl::StatusOr<T>>> value = std::make_shared<std::optional<absl::StatusOr<T>>>();
    Reply<T> reply() const {
      return [value = value](absl::StatusOr<T> answer) {
        EXPECT_FALSE(value->has_value()) << "answered twice";
        *value = std::move(answer);
      };
    }
    bool has() const { return value->has_value(); }
    absl::StatusOr<T> get() const { return has() ? **value : absl::UnknownError("no answer yet"); }
  };

  DispatcherTest() { Start(); }

  void Start() {
    store_ = database_.Open();
    StartOn(store_.get());
  }
  void StartOn(StateStore* store) {
    coordinator_.reset();
    DispatcherOptions options;
    options.id_key = RngKey{42};
    options.observer = observer_;
    options.traces = &traces_;
    options.on_job_end = [this](const JobView& job, KeepFindings keep) {
      if (on_job_end_) on_job_end_(job, std::move(keep));
    };
    options.check_resume_point = [this](const std::string& tenant, const ApplyResult& granted) {
      return check_resume_point_ ? check_resume_point_(tenant, granted) : absl::OkStatus();
    };
    options.free_bytes = [this] { return free_bytes_; };
    options.on_store_lost = [this](const absl::Status& status) { lost_ = status; };
    Begin(store, options);
  }
  void Begin(StateStore* store, const DispatcherOptions& options) {
    coordinator_ = std::make_unique<Coordinator>(&clock_, &executor_, store, store->Load().value(), options);
    writer_ = &coordinator_->writer();
    catalog_ = &coordinator_->catalog();
    versions_ = &coordinator_->versions();
    dispatcher_ = &coordinator_->dispatcher();
  }

  template <typename T, typename Call>
  absl::StatusOr<T> Wait(Call call) {
    Answer<T> answer;
    call(answer.reply());
    EXPECT_FALSE(answer.has()) << "answered inside the call";
    executor_.RunUntilIdle();
    return answer.get();
  }
  absl::StatusOr<JobView> TryCreate(const JobSpec& spec, const std::string& request_id = "") {
    return Wait<JobView>([&](auto done) { dispatcher_->CreateJob(kDefaultTenant, spec, request_id, false, done); });
  }
  std::string Create(const std::string& name, int chains) { return TryCreate(SmallSpec(name, chains)).value().id; }
  // Returns the id of a job name, or the argument if there is no such job.
  std::string IdOf(const std::string& name) { return dispatcher_->ResolveJob(kDefaultTenant, name).value_or(name); }
  absl::StatusOr<JobView> SetIntent(const std::string& name, JobIntent intent) {
    return Wait<JobView>([&](auto done) { dispatcher_->SetIntent(IdOf(name), intent, done); });
  }
  absl::StatusOr<Version> Pin(const std::string& name, int64_t number, bool refresh) {
    return Wait<Version>([&](auto done) { versions_->Pin(IdOf(name), number, refresh, done); });
  }

  Answer<SynchronizeReply> Send(FakeWorker* worker) {
    Answer<SynchronizeReply> answer;
    dispatcher_->Synchronize(worker->Request(), answer.reply());
    executor_.RunUntilIdle();
    return answer;
  }
  // Makes a whole call, held for as long as the server likes; the worker applies the reply.
  SynchronizeReply Sync(FakeWorker* worker) {
    const Answer<SynchronizeReply> answer = Send(worker);
    if (!answer.has()) executor_.RunFor(limits::kSyncInterval / 2);
    EXPECT_TRUE(answer.get().ok()) << answer.get().status();
    if (!answer.get().ok()) return {};
    worker->Take(*answer.get());
    return *answer.get();
  }
  absl::StatusOr<CommitReply> Commit(const FakeWorker& worker, const ProgressCommit& commit) {
    return Wait<CommitReply>([&](auto done) { dispatcher_->CommitProgress(worker.Made(commit), done); });
  }
  // Commits one more draw.
  void Advance(FakeWorker* worker, const ChainId& chain, std::optional<ChainState> ends_as = std::nullopt) {
    ProgressCommit commit = worker->NextCommit(chain);
    commit.ends_as = ends_as;
    const auto reply = Commit(*worker, commit);
    ASSERT_TRUE(reply.ok()) << reply.status();
    worker->Took(commit);
  }
  void GiveBack(FakeWorker* worker, const ChainId& chain, ReleasedChain::Why why, const std::string& reason = "") {
    worker->released.push_back({chain, worker->chains.at(chain).epoch, why, reason});
    worker->chains.erase(chain);
  }
  ChainView Chain(const ChainId& chain) {
    return dispatcher_->GetJob(chain.job).value().chains.at(static_cast<size_t>(chain.index));
  }
  // Creates a job of one chain that `worker` holds and has listed.
  ChainId LeaseOne(FakeWorker* worker) {
    const ChainId chain{Create("job", 1), 0};
    Sync(worker);
    EXPECT_TRUE(worker->chains.contains(chain));
    Sync(worker);
    return chain;
  }

  static inline const absl::Duration kTermAndGrace = limits::kLeaseTtl + limits::kLeaseGrace;
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  MemoryDatabase database_{"incarnation-1"};
  std::unique_ptr<StateStore> store_;
  TraceTable traces_{&executor_};
  std::unique_ptr<Coordinator> coordinator_;
  StateWriter* writer_ = nullptr;  // the coordinator's parts
  Catalog* catalog_ = nullptr;
  Versions* versions_ = nullptr;
  Dispatcher* dispatcher_ = nullptr;
  absl::Status lost_;
  std::optional<int64_t> free_bytes_;
  std::function<void(const JobView&, KeepFindings)> on_job_end_;
  std::function<absl::Status(const std::string&, const ApplyResult&)> check_resume_point_;
  ControlObserver* observer_ = nullptr;  // for dispatchers that Start makes
};

}  // namespace chainfleet
