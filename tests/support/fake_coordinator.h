// A small coordinator for tests of the worker: the lease and commit rules of the protocol over maps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// Not thread-safe: for one loop. Replies run on the executor. Leases do not expire by time; tests fence by hand.
class FakeCoordinator final : public CoordinatorPort {
 public:
  explicit FakeCoordinator(Executor* executor) : executor_(executor) {}

  struct Chain {
    std::shared_ptr<const JobPlan> plan;
    ChainState state = ChainState::kPending;
    int64_t epoch = 0;
    bool listed = false;  // the worker has named this epoch
    ChainProgress progress;
    std::vector<Segment> segments;
    std::string reason;
    int attempts = 0;  // leases since the last commit that ended without a commit
  };

  std::map<ChainId, Chain> chains;
  std::map<std::string, std::string> blobs;
  std::vector<ProgressCommit> commits;  // accepted commits
  std::vector<ReleasedChain> released;
  std::vector<SynchronizeRequest> requests;
  std::map<ChainId, StopOrder::How> stop_orders;  // sent until the worker no longer lists the chain
  std::set<ChainId> keep_none;                    // listed, but not renewed
  int64_t generation = 1;
  std::string store_incarnation = "store";
  absl::Duration lease_ttl = limits::kLeaseTtl;
  absl::Duration next_sync_in = limits::kSyncInterval;
  bool grants_enabled = true;
  bool drain = false;             // an operator drains the worker
  bool holds = false;             // only AnswerHeld answers Synchronize
  int max_commits_in_flight = 0;  // largest number for one chain so far

  // Answers to the next calls of each kind in place of the rules, oldest first; OK lets a call pass.
  std::deque<absl::Status> sync_failures, put_failures, commit_failures, get_failures;

  void AddChains(std::shared_ptr<const JobPlan> plan, int32_t count) {
    for (int32_t i = 0; i < count; ++i) chains[{plan->job, i}].plan = plan;
  }

  // Grants the chain to another worker, so the epoch rises.
  void FenceByGrantElsewhere(const ChainId& chain) {
    ++chains.at(chain).epoch;
    chains.at(chain).listed = true;
    stop_orders[chain] = StopOrder::How::kFenced;
  }

  // Answers the oldest held call.
  void AnswerHeld(absl::StatusOr<SynchronizeReply> reply) {
    executor_->Schedule([done = std::move(held_.front()), reply = std::move(reply)] { done(reply); });
    held_.pop_front();
  }

  void Synchronize(const SynchronizeRequest& request, absl::Duration, Done<SynchronizeReply> done) override {
    requests.push_back(request);
    if (holds) return held_.push_back(std::move(done));
    Answer<SynchronizeReply>(&sync_failures, std::move(done), [this, request] { return Reply(request); });
  }

  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override {
    max_commits_in_flight = std::max(max_commits_in_flight, ++in_flight_[commit.chain]);
    Answer<CommitReply>(
        &commit_failures,
        [this, commit, done = std::move(done)](absl::StatusOr<CommitReply> reply) {
          --in_flight_[commit.chain];
          done(std::move(reply));
        },
        [this, commit] { return Commit(commit); });
  }

  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override {
    Answer<bool>(&put_failures, std::move(done), [this, chain, lease_epoch, ref, bytes]() -> absl::StatusOr<bool> {
      if (chains.at(chain).epoch != lease_epoch) return Fenced();
      if (static_cast<int64_t>(bytes->size()) != ref.size_bytes) return absl::DataLossError("size");
      blobs.emplace(ref.name, *bytes);
      return true;
    });
  }

  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override {
    using Bytes = std::shared_ptr<const std::string>;
    Answer<Bytes>(&get_failures, std::move(done), [this, ref]() -> absl::StatusOr<Bytes> {
      const auto it = blobs.find(ref.name);
      if (it == blobs.end()) return absl::NotFoundError(ref.name);
      return std::make_shared<const std::string>(it->second);
    });
  }

 private:
  static absl::Status Fenced() {
    return WithReason(absl::FailedPreconditionError("the lease epoch is not current"), "LEASE_FENCED");
  }

  template <typename T, typename Rule>
  void Answer(std::deque<absl::Status>* failures, Done<T> done, Rule rule) {
    executor_->Schedule([failures, done = std::move(done), rule] {
      if (!failures->empty()) {
        const absl::Status status = failures->front();
        failures->pop_front();
        if (!status.ok()) return done(status);
      }
      done(absl::StatusOr<T>(rule()));
    });
  }

  SynchronizeReply Reply(const SynchronizeRequest& request) {
    SynchronizeReply reply;
    reply.generation = generation;
    reply.store_incarnation = store_incarnation;
    reply.next_sync_in = next_sync_in;
    reply.lease_ttl = lease_ttl;
    reply.drain = drain;
    for (const ReleasedChain& release : request.released) {
      Chain& chain = chains.at(release.chain);
      if (chain.epoch == release.lease_epoch && chain.state == ChainState::kLeased) {
        chain.attempts += release.why != ReleasedChain::Why::kStore;
        const bool spent = release.why == ReleasedChain::Why::kInvalid ||  // another worker would fail, too
                           chain.attempts >= limits::kMaxAttemptsWithoutProgress;
        chain.state = spent ? ChainState::kFailed : ChainState::kPending;
        chain.reason = release.reason;
        released.push_back(release);
      }
    }
    int32_t slots = 0;
    for (const DeviceReport& device : request.devices) slots += device.chain_slots;
    std::set<ChainId> listed;
    for (const HeldChain& held : request.chains) {
      listed.insert(held.chain);
      --slots;
      Chain& chain = chains.at(held.chain);
      const auto order = stop_orders.find(held.chain);
      if (order != stop_orders.end()) {
        reply.stop.push_back({held.chain, held.lease_epoch, order->second});
        if (order->second == StopOrder::How::kHandBack) reply.keep.push_back(held.chain);
      } else if (chain.epoch != held.lease_epoch || IsFinal(chain.state)) {
        reply.stop.push_back({held.chain, held.lease_epoch, StopOrder::How::kFenced});
      } else if (!keep_none.contains(held.chain)) {
        chain.listed = true;
        reply.keep.push_back(held.chain);
      }
    }
    std::erase_if(stop_orders, [&listed](const auto& order) { return !listed.contains(order.first); });
    for (auto& [id, chain] : chains) Grant(id, &chain, request.draining || listed.contains(id), &slots, &reply);
    return reply;
  }

  void Grant(const ChainId& id, Chain* chain, bool taken, int32_t* slots, SynchronizeReply* reply) {
    const bool repeat = chain->state == ChainState::kLeased && !chain->listed;
    const bool grant = chain->state == ChainState::kPending && grants_enabled && *slots > 0;
    if (taken || (!repeat && !grant)) return;
    if (grant) {
      chain->state = ChainState::kLeased;
      chain->listed = false;
      ++chain->epoch;
    }
    --*slots;
    reply->grants.push_back({id, chain->epoch, chain->plan, chain->progress});
  }

  absl::StatusOr<CommitReply> Commit(const ProgressCommit& commit) {
    Chain& chain = chains.at(commit.chain);
    ChainProgress& progress = chain.progress;
    if (commit.segment) {
      for (const Segment& segment : chain.segments) {
        if (segment.first_index == commit.segment->first_index && segment.digest == commit.segment->digest) {
          return CommitReply{true};
        }
      }
      if (!blobs.contains(commit.segment->object.name)) return Missing();
    }
    if (commit.resume_point.object && !blobs.contains(commit.resume_point.object->name)) return Missing();
    if (chain.epoch != commit.lease_epoch) return Fenced();
    if (IsFinal(chain.state)) return WithReason(absl::FailedPreconditionError("final"), "CHAIN_FINAL");
    const bool continues = !commit.segment || (commit.segment->first_index == progress.num_draws &&
                                               commit.segment->parent_digest == progress.last_digest);
    if (!continues || commit.resume_point.step <= progress.step) {
      return WithReason(absl::AbortedError("not the next step of the path"), "PATH_CONFLICT");
    }
    progress.step = commit.resume_point.step;
    progress.resume_point = commit.resume_point;
    if (commit.segment) {
      progress.num_draws += commit.segment->num_draws();
      progress.last_digest = commit.segment->digest;
      chain.segments.push_back(*commit.segment);
    }
    chain.state = commit.ends_as.value_or(ChainState::kLeased);
    chain.reason = commit.reason;
    chain.attempts = 0;
    commits.push_back(commit);
    return CommitReply{false};
  }

  static absl::Status Missing() { return WithReason(absl::FailedPreconditionError("no such object"), "BLOB_MISSING"); }

  Executor* const executor_;
  std::map<ChainId, int> in_flight_;
  std::deque<Done<SynchronizeReply>> held_;
};

}  // namespace chainfleet
