#include "tests/sim/chaos.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {

Chaos::Chaos(World* world) : world_(world), site_(world->site()), dice_(site_.dice) {
  static const std::vector<Fault> kAll = {
      &Chaos::KillWorker,   &Chaos::StopWorker,        &Chaos::HangWorker, &Chaos::DrainWorker, &Chaos::CutWorkerOff,
      &Chaos::TroubleLines, &Chaos::KillServer,        &Chaos::StopServer, &Chaos::LosePower,   &Chaos::DieOnDisk,
      &Chaos::FailCommit,   &Chaos::StartSecondServer, &Chaos::FillStore,  &Chaos::LoseBucket,  &Chaos::JumpClock};
  for (const Fault& fault : kAll) {
    if (dice_.OneIn(2)) kinds_.push_back(fault);
  }
  if (kinds_.empty()) kinds_.push_back(dice_.Pick(kAll));
  pace_ = dice_.Between(absl::Milliseconds(500), absl::Seconds(6));
  site_.disk.BeforeEachChange([this] {
    if (site_.faults.die_at_disk_change == 0 || --site_.faults.die_at_disk_change > 0) return;
    site_.Note("the coordinator dies at a change to its disk");
    for (ServerNode* server : world_->LiveServers()) server->process().Kill();
  });
}

void Chaos::Begin(absl::Duration length) {
  site_.loop.ScheduleAfter(length, [this] { End(); });
  Strike();
}

void Chaos::Strike() {
  site_.loop.ScheduleAfter(dice_.Between(absl::ZeroDuration(), 2 * pace_), [this] {
    if (over_) return;
    (this->*dice_.Pick(kinds_))();
    Strike();
  });
}

void Chaos::End() {
  site_.Note("the chaos is over");
  over_ = true;
  world_->Heal();
}

template <typename Then>
void Chaos::AfterAWhile(Then then) {
  const absl::Duration longest = dice_.OneIn(2) ? absl::Seconds(3) : 3 * site_.lease_ttl;
  site_.loop.ScheduleAfter(dice_.Between(absl::Milliseconds(50), longest), [this, then] {
    if (!over_) then();
  });
}

void Chaos::KillWorker() {
  WorkerNode* const worker = world_->AnyWorker();
  if (worker == nullptr) return;
  site_.Note("kill " + worker->process().name());
  worker->process().Kill();
  ++losses_;
}

void Chaos::Stop(Process* process) {
  site_.Note("stop " + process->name());
  process->Stop();
  ++losses_;
  AfterAWhile([this, process] {
    site_.Note("continue " + process->name());
    process->Continue();
  });
}

void Chaos::StopWorker() {
  if (WorkerNode* const worker = world_->AnyWorker()) Stop(&worker->process());
}

void Chaos::HangWorker() {
  WorkerNode* const worker = world_->AnyWorker();
  if (worker == nullptr) return;
  site_.Note("hang " + worker->process().name());
  worker->Hang(dice_.OneIn(3) ? absl::Minutes(6) : absl::Seconds(20));
  ++losses_;
}

void Chaos::DrainWorker() {
  WorkerNode* const worker = world_->AnyWorker();
  if (worker == nullptr) return;
  if (worker->draining()) return;
  site_.Note("drain " + worker->process().name());
  worker->Drain();
  ++losses_;  // it may end undrained
}

void Chaos::CutWorkerOff() {
  WorkerNode* const worker = world_->AnyWorker();
  if (worker == nullptr) return;
  site_.Note("cut off " + worker->process().name());
  worker->line().Partition(true);
  ++losses_;
  AfterAWhile([this, worker] {
    site_.Note("join " + worker->process().name());
    worker->line().Partition(false);
  });
}

void Chaos::TroubleLines() {
  const auto some = [this] { return dice_.OneIn(2) ? 0.0 : 0.01 * static_cast<double>(dice_.Between(1, 30)); };
  site_.Note("trouble on the lines");
  world_->SetFaults({.drop_request = some(),
                     .drop_reply = some(),
                     .duplicate = some(),
                     .max_delay = dice_.Between(absl::Milliseconds(1), absl::Seconds(2)),
                     .max_lateness = dice_.OneIn(2) ? absl::Seconds(1) : absl::Minutes(1)});
  ++losses_;
}

void Chaos::KillServer() {
  ServerNode* const server = world_->AnyServer();
  if (server == nullptr) return;
  site_.Note("kill " + server->process().name());
  server->process().Kill();
}

void Chaos::StopServer() {
  if (ServerNode* const server = world_->AnyServer()) Stop(&server->process());
}

// The leading server believes that it leads until the store rejects its next change.
void Chaos::StartSecondServer() {
  if (world_->num_addresses() < 2) return;
  const std::vector<ServerNode*>& servers = world_->servers();
  const bool first = servers[0] != nullptr && servers[0]->process().alive();
  site_.Note("a second coordinator takes over");
  world_->StartServer(first ? 1 : 0);
}

void Chaos::LosePower() {
  if (site_.objects_in_bucket) return;
  site_.Note("the coordinator's host loses power");
  world_->LosePower();
}

void Chaos::DieOnDisk() { site_.faults.die_at_disk_change = dice_.Between(1, 40); }

void Chaos::FailCommit() { site_.faults.next_commit = static_cast<StoreFaults::NextCommit>(dice_.Between(1, 4)); }

void Chaos::FillStore() {
  const bool state = dice_.OneIn(2), disk = !state || dice_.OneIn(2);
  site_.Note(absl::StrCat("no space", state ? " for the state" : "", disk ? " for objects" : ""));
  site_.faults.state_full = state;
  site_.disk.SetFull(disk);
  AfterAWhile([this] {
    site_.Note("there is space again");
    site_.faults.state_full = false;
    site_.disk.SetFull(false);
  });
}

void Chaos::LoseBucket() {
  if (!site_.objects_in_bucket) return;
  site_.Note("the bucket does not answer");
  site_.faults.bucket_away = true;
  AfterAWhile([this] {
    site_.Note("the bucket answers again");
    site_.faults.bucket_away = false;
  });
}

void Chaos::JumpClock() {
  const auto jump = [this](Process& process) {
    const absl::Duration by = dice_.Between(-absl::Hours(30), absl::Hours(30));
    site_.Note(absl::StrCat("the calendar of ", process.name(), " jumps by ", absl::FormatDuration(by)));
    process.JumpWall(by);
  };
  for (ServerNode* server : world_->LiveServers()) jump(server->process());
  for (WorkerNode* worker : world_->LiveWorkers()) jump(worker->process());
}

}  // namespace chainfleet
