#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {

// As worker/rpc/server_lines: uses one address, and the next one after UNAVAILABLE.
class World::Line final : public CoordinatorPort {
 public:
  explicit Line(World* world) : world_(world) {}

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override {
    Call<SynchronizeReply>(
        [&](ServerNode* server, auto reply) { server->Synchronize(request, deadline, std::move(reply)); },
        std::move(done));
  }
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override {
    Call<CommitReply>([&](ServerNode* server, auto reply) { server->CommitProgress(commit, std::move(reply)); },
                      std::move(done));
  }
  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override {
    Call<bool>(
        [&](ServerNode* server, auto reply) { server->PutBlob(chain, lease_epoch, ref, bytes, std::move(reply)); },
        std::move(done));
  }
  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override {
    Call<std::shared_ptr<const std::string>>(
        [&](ServerNode* server, auto reply) { server->GetBlob(ref, std::move(reply)); }, std::move(done));
  }

 private:
  template <typename T, typename Send>
  void Call(const Send& send, Done<T> done) {
    const size_t address = address_;
    ServerNode* const server = world_->servers_[address];
    const auto ended = [this, address, done = std::move(done)](absl::StatusOr<T> reply) {
      if (absl::IsUnavailable(reply.status()) && address_ == address) {
        address_ = (address + 1) % world_->servers_.size();
      }
      done(std::move(reply));
    };
    // After a while the probes of a connection notice that the server does not answer.
    const bool probed = server != nullptr && server->process().stopped() && world_->site_->dice.OneIn(4);
    if (server != nullptr && server->process().alive() && !probed) return send(server, Done<T>(ended));
    world_->site_->loop.Schedule([ended] { ended(absl::UnavailableError("nobody is at this address")); });
  }

  World* const world_;
  size_t address_ = 0;
};

World::World(Site* site) : site_(site) {
  Dice& dice = site->dice;
  site->objects_in_bucket = dice.OneIn(2);
  site->lease_ttl = dice.Pick<absl::Duration>({absl::Seconds(6), absl::Seconds(15)});
  site->collect_every = dice.Between(absl::Seconds(3), absl::Seconds(60));
  site->longest_call = dice.Between(absl::Seconds(5), absl::Seconds(45));
  servers_.resize(site->objects_in_bucket && !dice.OneIn(4) ? 2 : 1);
  StartServer(0);
  machines_.resize(static_cast<size_t>(dice.Between(1, 4)));
  for (size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = machines_[i];
    machine.name = absl::StrCat("w", i);
    machine.device = {.step = dice.Between(absl::Milliseconds(20), absl::Milliseconds(500)),
                      .slots = static_cast<int32_t>(dice.Between(1, 6)),
                      .max_chains = static_cast<size_t>(dice.OneIn(3) ? dice.Between(1, 2) : 6),
                      .upload_bytes = dice.OneIn(3) ? 1000 : limits::kUploadQueueBytes};
    machine.line = std::make_unique<Line>(this);
    StartWorker(&machine);
  }
  Supervise();
}

World::~World() { site_->loop.DropAll(); }

std::vector<ServerNode*> World::LiveServers() const {
  std::vector<ServerNode*> live;
  std::ranges::copy_if(servers_, std::back_inserter(live),
                       [](ServerNode* server) { return server != nullptr && server->process().alive(); });
  return live;
}

std::vector<WorkerNode*> World::LiveWorkers() const {
  std::vector<WorkerNode*> live;
  for (const Machine& machine : machines_) {
    if (machine.worker->process().alive()) live.push_back(machine.worker);
  }
  return live;
}

ServerNode* World::AnyServer() const {
  const std::vector<ServerNode*> live = LiveServers();
  return live.empty() ? nullptr : site_->dice.Pick(live);
}

WorkerNode* World::AnyWorker() const {
  const std::vector<WorkerNode*> live = LiveWorkers();
  return live.empty() ? nullptr : site_->dice.Pick(live);
}

void World::StartServer(int address) {
  const size_t slot = static_cast<size_t>(address);
  if (servers_[slot] != nullptr) servers_[slot]->process().Kill();
  const bool yielding = std::exchange(site_->yielding, true);  // a start is one event
  all_servers_.push_back(std::make_unique<ServerNode>(site_, absl::StrCat("server-", ++servers_started_)));
  site_->yielding = yielding;
  servers_[slot] = all_servers_.back().get();
}

void World::StartWorker(Machine* machine) {
  all_workers_.push_back(
      std::make_unique<WorkerNode>(site_, machine->line.get(), machine->name, ++machine->processes, machine->device));
  machine->worker = all_workers_.back().get();
  machine->worker->line().SetFaults(faults_);
}

absl::Duration World::RestartDelay() {
  if (calm_) return absl::ZeroDuration();
  const absl::Duration longest = site_->dice.OneIn(3) ? 3 * site_->lease_ttl : absl::Seconds(3);
  return site_->dice.Between(absl::Milliseconds(100), longest);
}

// Restarts processes as systemd would. Starts no second coordinator while one lives, because it stands by.
void World::Supervise() {
  for (Machine& machine : machines_) {
    if (machine.starting || machine.worker->process().alive()) continue;
    machine.starting = true;
    site_->loop.ScheduleAfter(RestartDelay(), [this, &machine] {
      machine.starting = false;
      StartWorker(&machine);
    });
  }
  if (LiveServers().empty() && !std::exchange(server_starting_, true)) {
    site_->loop.ScheduleAfter(RestartDelay(), [this] {
      server_starting_ = false;
      if (LiveServers().empty()) StartServer(static_cast<int>(site_->dice.Between(0, num_addresses() - 1)));
    });
  }
  site_->loop.ScheduleAfter(absl::Milliseconds(500), [this] { Supervise(); });
}

void World::LosePower() {
  for (ServerNode* server : LiveServers()) server->process().Kill();
  site_->disk.LosePower();
  site_->power_was_lost = true;
}

void World::SetFaults(const PortFaults& faults) {
  faults_ = faults;
  for (WorkerNode* worker : LiveWorkers()) worker->line().SetFaults(faults);
}

void World::Heal() {
  calm_ = true;
  site_->faults = {};
  site_->disk.SetFull(false);
  SetFaults({.max_delay = absl::Milliseconds(2)});
  for (const auto& server : all_servers_) server->process().Continue();
  for (const auto& worker : all_workers_) {
    worker->process().Continue();
    worker->line().Partition(false);
    worker->Hang(absl::ZeroDuration());
  }
}

}  // namespace chainfleet
