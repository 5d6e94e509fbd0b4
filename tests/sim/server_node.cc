#include "tests/sim/server_node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/store/blob_store/file_blob_store.h"

namespace chainfleet {

ServerNode::ServerNode(Site* site, const std::string& name)
    : site_(site), process_(name, &site->time, &site->loop, &site->dice) {
  const absl::Status status = Open();
  site_->Note(absl::StrCat(name, " starts: ", status.ToString()));
  if (!status.ok()) process_.Kill();
}

absl::Status ServerNode::Open() {
  BlobStore* objects = &site_->bucket;
  if (!site_->objects_in_bucket) {
    files_ = site_->disk.Mount([this] { return process_.alive(); });
    CHAINFLEET_ASSIGN_OR_RETURN(folder_, FileBlobStore::Open(files_.get(), "/data/blobs"));
    objects = folder_.get();
  }
  state_ = std::make_unique<SimulatedStateStore>(site_, &process_);
  blobs_ = std::make_unique<SimulatedBlobStore>(site_, &process_, objects);
  CHAINFLEET_ASSIGN_OR_RETURN(StoredState stored, state_->Load());
  DispatcherOptions options{.lease_ttl = site_->lease_ttl,
                            .sync_interval = site_->lease_ttl / 3,
                            .lease_grace = site_->lease_ttl / 3,
                            .id_key = RngKey{site_->dice.Next()},
                            .observer = &site_->orders,
                            .on_store_lost = [this](const absl::Status& status) { Lose(status); }};
  coordinator_ = std::make_unique<Coordinator>(&process_, &process_, state_.get(), std::move(stored), options);
  StateWriter* const writer = &coordinator_->writer();
  objects_ = std::make_unique<ChainObjects>(state_.get(), blobs_.get(), writer, dispatcher());
  collector_ = std::make_unique<GarbageCollector>(&process_, state_.get(), writer, blobs_.get());
  CHAINFLEET_RETURN_IF_ERROR(collector_->Recover());
  collector_->Start(site_->collect_every);
  verifier_ = std::make_unique<DrawVerifier>(&process_, state_.get(), writer, blobs_.get());
  verifier_->Start(site_->collect_every);
  retention_ = std::make_unique<RetentionKeeper>(&process_, &process_, state_.get(), coordinator_.get(),
                                                 site_->longest_call, nullptr);
  retention_->Start(limits::kUpkeepInterval);
  KeepLead();
  return absl::OkStatus();
}

void ServerNode::Lose(const absl::Status& status) {
  if (!process_.alive()) return;
  ++site_->refusals[ReasonOf(status)];
  site_->Note(absl::StrCat(process_.name(), " ends: ", status.ToString()));
  process_.Kill();
}

// As server/election: a former leader notices at its next renewal at the latest.
void ServerNode::KeepLead() {
  process_.ScheduleAfter(absl::Seconds(2), [this] {
    const auto renewed = state_->Apply({}, process_.Wall());
    if (!renewed.ok()) return Lose(renewed.status());
    KeepLead();
  });
}

void ServerNode::Synchronize(const SynchronizeRequest& request, absl::Duration, Done<SynchronizeReply> done) {
  process_.Schedule([this, request, done = Living(std::move(done))] { dispatcher().Synchronize(request, done); });
}

void ServerNode::CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) {
  const auto acknowledge = Living<CommitReply>([this, commit, done = std::move(done)](auto reply) {
    if (reply.ok()) Acknowledge(commit);
    NoteRefusal(reply.status());
    done(std::move(reply));
  });
  process_.Schedule([this, commit = ProgressCommit(commit), acknowledge]() mutable {
    if (objects_->MustPrepare(commit)) {
      if (const absl::Status status = objects_->Prepare(&commit); !status.ok()) return acknowledge(status);
    }
    dispatcher().CommitProgress(commit, acknowledge);
  });
}

void ServerNode::NoteRefusal(const absl::Status& status) {
  if (status.ok() || !process_.alive()) return;
  ++site_->refusals[ReasonOf(status)];
  site_->Note(absl::StrCat(process_.name(), " refuses: ", status.ToString()));
}

void ServerNode::Acknowledge(const ProgressCommit& commit) {
  site_->history.Add(commit.chain, {.kind = History::Event::Kind::kAcknowledged,
                                    .lease_epoch = commit.lease_epoch,
                                    .holder = commit.incarnation,
                                    .step = commit.resume_point.step,
                                    .first_index = commit.segment ? commit.segment->first_index : 0,
                                    .digest = commit.segment ? commit.segment->digest : ""});
}

void ServerNode::PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                         std::shared_ptr<const std::string> bytes, Done<bool> done) {
  process_.Schedule([this, chain, lease_epoch, ref, bytes, done = Living(std::move(done))] {
    if (const absl::Status admitted = objects_->Admit(chain, lease_epoch, ref); !admitted.ok()) {
      NoteRefusal(admitted);
      return done(admitted);
    }
    process_.Schedule([this, ref, bytes, done] {
      const absl::Status stored = objects_->Put(ref, *bytes);
      NoteRefusal(stored);
      if (!stored.ok()) return done(stored);
      done(true);
    });
  });
}

void ServerNode::GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) {
  process_.Schedule([this, ref, done = Living(std::move(done))] {
    absl::StatusOr<std::string> bytes = blobs_->Get(ref.name);
    if (!bytes.ok()) return done(bytes.status());
    done(std::make_shared<const std::string>(*std::move(bytes)));
  });
}

}  // namespace chainfleet
