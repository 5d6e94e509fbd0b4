#include "tests/sim/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/domain/sweep_points.h"
#include "core/store/blob_store/file_blob_store.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/sim/chaos.h"
#include "tests/sim/history_checker.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"
#include "tests/support/memory_database.h"
#include "tests/support/rows_in_memory.h"

namespace chainfleet {
namespace {

// The time from the end of the faults to the end of every job: some leases, delayed attempts, a purge, and the work.
constexpr absl::Duration kProgressBound = absl::Minutes(15);

constexpr absl::Duration kLongestTtl = absl::Minutes(1);  // longest TTL of the workload's jobs

class Simulation {
 public:
  Simulation(uint64_t seed, Site::OpenState open, const std::function<void(const std::string&)>& trace)
      : site_(seed, std::move(open), trace), world_(&site_), workload_(&world_), chaos_(&world_) {}

  SimulationReport Run() {
    const absl::Duration length = site_.dice.Between(absl::ZeroDuration(), absl::Minutes(2));
    workload_.Begin();
    chaos_.Begin(length);
    site_.loop.RunFor(length);
    const absl::Duration bound = site_.time.Monotonic() + kProgressBound;
    while (!AllEnded() && site_.time.Monotonic() < bound) site_.loop.RunFor(absl::Seconds(1));
    // Draws expire, wait for their readers, and are deleted.
    site_.loop.RunFor(kLongestTtl + 2 * site_.longest_call + 3 * limits::kUpkeepInterval);
    site_.loop.RunFor(2 * site_.collect_every + absl::Seconds(10));
    JudgeEnds();
    JudgeStores();
    Count();
    return std::move(report_);
  }

 private:
  void Complain(const std::string& what) { report_.complaints.push_back(what); }

  std::map<std::string, StoredJob> StoredJobs() {
    std::map<std::string, StoredJob> jobs;
    StoredState state = site_.reader->Load().value();
    for (StoredJob& job : state.jobs) jobs.emplace(job.row.id, std::move(job));
    return jobs;
  }

  bool AllEnded() {
    if (!workload_.answered()) return false;
    for (const auto& [id, job] : StoredJobs()) {
      if (job.row.intent == JobIntent::kDelete) return false;
      for (const ChainRow& chain : job.chains) {
        if (!IsFinal(chain.state)) return false;
      }
    }
    return true;
  }

  void JudgeEnds() {
    std::map<std::string, StoredJob> stored = StoredJobs();
    for (const Workload::Job& job : workload_.jobs()) {
      const auto found = stored.find(job.id);
      if (found == stored.end()) {
        if (job.intent != JobIntent::kDelete)
          Complain(absl::StrCat("job ", job.request_id, " ", job.id, " is not there"));
        continue;
      }
      const JobIntent intent = found->second.row.intent;
      if (job.intent > JobIntent::kPause && intent < job.intent) {
        Complain(absl::StrCat("job ", job.id, " was to ", ToString(job.intent), " and is to ", ToString(intent)));
      }
      JudgeExtent(job, found->second);
      for (const ChainRow& chain : found->second.chains) JudgeEnd(job, found->second.row, chain);
      stored.erase(found);
    }
    for (const auto& [id, job] : stored) Complain("job " + id + " was created twice");
    for (const std::string& wrong : workload_.WrongVersions(site_.reader.get())) Complain(wrong);
    for (const std::string& wrong : workload_.WrongRetention(site_.reader.get())) Complain(wrong);
    for (const std::string& missed : workload_.missed()) Complain(missed);
    const bool by_calendar = std::ranges::any_of(
        workload_.jobs(), [](const Workload::Job& job) { return job.spec.retention.ttl_seconds.has_value(); });
    if (!by_calendar && site_.reader->LastExpired().value() > 0) Complain("objects of tombstones were never released");
  }

  // Users got the chains that the server promised, and each stopped point had enough draws.
  void JudgeExtent(const Workload::Job& job, const StoredJob& stored) {
    const JobSpec& spec = stored.row.plan->spec;
    if (spec.chains < job.chains || static_cast<int32_t>(stored.chains.size()) != NumChains(spec)) {
      Complain(absl::StrCat("job ", job.id, " was to have ", job.chains, " chains, it has ", stored.chains.size()));
    }
    for (const auto& [point, why] : stored.row.stopped) {
      int64_t draws = 0;
      for (const ChainRow& chain : stored.chains) draws += PointOf(spec, chain.id.index) == point ? chain.num_draws : 0;
      if (draws >= job.spec.until.max_draws.value_or(draws + 1)) continue;
      Complain(absl::StrCat("job ", job.id, " was stopped with ", draws, " draws: ", why));
    }
  }

  void JudgeEnd(const Workload::Job& job, const JobRow& row, const ChainRow& chain) {
    ++report_.ends[ToString(chain.state)];
    const bool stopped = job.wished(JobIntent::kFinish) || job.wished(JobIntent::kCancel);
    // Only if a chain lost its lease this many times.
    const bool may_fail =
        std::min<int64_t>(chaos_.num_losses(), chain.lease_epoch) >= limits::kMaxAttemptsWithoutProgress;
    const bool early = chain.state == ChainState::kSucceeded && !chain.reason.empty();
    const bool had_enough = row.stopped.contains(PointOf(row.plan->spec, chain.id.index));
    if (early && !had_enough && !job.spec.scheduling.success_chains) {
      Complain(absl::StrCat("chain ", ToString(chain.id), " was needed and has ended at step ", chain.step));
    }
    const bool expected = early || chain.state == job.calm_end() ||
                          (chain.state == ChainState::kCancelled && stopped) ||
                          (chain.state == ChainState::kFailed && may_fail);
    if (expected) return;
    Complain(absl::StrCat("chain ", ToString(chain.id), " ends ", ToString(chain.state), " at step ", chain.step, ", ",
                          ToString(job.intent), ": ", chain.reason));
  }

  // Checks first for objects that should not exist, then, on a disk that lost power, for objects that are missing.
  void JudgeStores() {
    std::unique_ptr<FileSystem> files = site_.disk.Mount([] { return true; });
    std::unique_ptr<BlobStore> folder;
    BlobStore* objects = &site_.bucket;
    if (!site_.objects_in_bucket) {
      folder = FileBlobStore::Open(files.get(), "/data/blobs").value();
      objects = folder.get();
    }
    HistoryChecker checker(site_.reader.get(), objects,
                           [this](const ChainId& chain) { return workload_.CalmPathOf(chain); });
    if (!site_.power_was_lost) {  // a power loss may restore deleted files
      for (const std::string& name : checker.FindGarbage())
        Complain(name + " is referred to by nothing and still there");
    }
    site_.disk.LosePower();
    for (std::string& complaint : checker.Check(site_.history)) Complain(std::move(complaint));
  }

  void Count() {
    std::string journal;
    for (const auto& [chain, events] : site_.history.events()) {
      for (const History::Event& event : events) {
        report_.grants += event.kind == History::Event::Kind::kGranted;
        report_.commits += event.kind == History::Event::Kind::kAccepted;
        absl::StrAppend(&journal, ToString(chain), " ", event.kind, " ", event.lease_epoch, event.holder, " ",
                        event.step, " ", event.digest, "\n");
      }
    }
    report_.refusals = site_.refusals;
    report_.preempted = site_.orders.preempted;
    report_.replayed = site_.replayed;
    report_.journal = Sha256Hex(journal);
  }

  Site site_;
  World world_;
  Workload workload_;
  Chaos chaos_;
  SimulationReport report_;
};

}  // namespace

SimulationReport RunSimulation(uint64_t seed, const std::function<void(const std::string&)>& trace,
                               SimulatedState state) {
  if (state == SimulatedState::kSql) {
    MemoryDatabase database("s1");
    return Simulation(
               seed, [&] { return database.Open(); }, trace)
        .Run();
  }
  const auto rows = std::make_shared<RowsInMemory>("s1");
  return Simulation(
             seed, [&] { return std::make_unique<RowsInMemoryStore>(rows); }, trace)
      .Run();
}

}  // namespace chainfleet
