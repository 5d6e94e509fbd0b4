#include "tests/sim/workload.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Seconds(3);

JobSpec Analytic(int64_t dimension, SamplerSpec sampler, double step_size, int64_t steps) {
  JobSpec spec;
  spec.model.kind = PotentialKind(GaussianPotential{dimension, 1.0});
  spec.sampler = std::move(sampler);
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{step_size}};
  spec.num_steps = steps;
  spec.chains = 4;
  spec.seed = 7;
  return spec;
}

// Returns the jobs of a run. The cuts into commits are random for each job and change no draw.
std::vector<JobSpec> MakeCatalogue() {
  std::vector<JobSpec> all;
  all.push_back(Analytic(3, {EmcmcSpec{.eta = 0.1}}, 0.1, 40));
  all.push_back(Analytic(2, {SgldSpec{}}, 0.1, 60));
  all.back().collect.every_steps = 3;
  all.push_back(Analytic(2, {RandomWalkSpec{}}, 1.0, 50));  // states are held, and weigh
  all.push_back(Analytic(2, {MalaSpec{}}, 0.8, 40));
  all.back().collect.every_steps = 4;
  all.back().burn_in.steps = 8;
  all.push_back(Analytic(4, {SghmcSpec{}}, 0.05, 50));
  all.back().schedule.kind = CyclicalSchedule{.initial = 0.05, .final = 0, .cycles = 5};
  all.back().burn_in.cycles = 2;
  all.push_back(Analytic(2, {SgldSpec{}}, 0.1, 30));
  all.back().chains = 1;
  all.back().sweep.step_size = {0.05, 0.1, 0.2};
  all.back().sweep.temperature = {1, 2};
  all.push_back(Analytic(16400, {SgldSpec{}}, 0.1, 10));  // resume points that are objects
  all.back().chains = 2;
  all.push_back(Analytic(2, {SgldSpec{}}, 1e6, 40));  // diverges
  return all;
}

const std::vector<JobSpec>& Catalogue() {
  static const auto* const all = new std::vector<JobSpec>(MakeCatalogue());
  return *all;
}

// Runs once for all runs of the process.
const std::map<int32_t, DrawPath>& CalmRunOf(size_t kind) {
  static auto* const runs = new std::map<size_t, std::map<int32_t, DrawPath>>;
  const auto found = runs->find(kind);
  if (found != runs->end()) return found->second;
  JobPlan plan;
  plan.job = "calm";
  plan.spec = Catalogue()[kind];
  plan.spec.name = plan.job;
  return (*runs)[kind] = CalmRun(plan);
}

}  // namespace

ChainState Workload::Job::calm_end() const {
  return kind + 1 == Catalogue().size() ? ChainState::kDiverged : ChainState::kSucceeded;
}

bool Workload::Job::wished(JobIntent wish) const {
  return std::ranges::any_of(wishes, [wish](const Wish& w) { return !w.chains && w.intent == wish; });
}

Workload::Workload(World* world) : world_(world) {
  for (int64_t i = world->site().dice.Between(1, 3); i > 0; --i) jobs_.push_back(DrawJob(static_cast<int>(i)));
}

Workload::Job Workload::DrawJob(int number) {
  Dice& dice = world_->site().dice;
  Job job;
  job.kind = static_cast<size_t>(dice.Between(0, static_cast<int64_t>(Catalogue().size()) - 1));
  job.spec = Catalogue()[job.kind];
  job.spec.name = absl::StrCat("job", number);
  if (!job.spec.sweep.any()) job.spec.chains = static_cast<int32_t>(dice.Between(1, job.spec.chains));
  job.spec.collect.segment_draws = dice.Pick<int64_t>({0, 1, 2, 7});
  job.spec.resume_point_every_steps = dice.Pick<int64_t>({0, 1, 5, 17});
  job.spec.scheduling.priority = dice.Pick<Priority>({Priority::kLow, Priority::kNormal, Priority::kHigh});
  if (dice.OneIn(4)) job.spec.scheduling.success_chains = dice.Between(1, job.spec.chains);
  if (dice.OneIn(3)) job.spec.retention.keep_last = dice.Between(1, 12);
  if (dice.OneIn(8)) job.spec.retention.ttl_seconds = static_cast<double>(dice.Between(5, 60));
  if (dice.OneIn(4)) job.spec.snapshots.every_draws = dice.Between(1, 20);
  if (dice.OneIn(6)) job.spec.snapshots.every_seconds = static_cast<double>(dice.Between(1, 30));
  if (dice.OneIn(4)) job.spec.until.max_draws = dice.Between(1, 40);
  job.tenant = dice.Pick<std::string>({kDefaultTenant, "vision"});
  job.request_id = absl::StrCat("request-", number);
  job.submit_after = dice.Between(absl::ZeroDuration(), absl::Seconds(20));
  const auto wish = [&](JobIntent intent) {
    job.wishes.push_back({dice.Between(absl::ZeroDuration(), absl::Seconds(15)), intent});
  };
  while (dice.OneIn(3)) {
    wish(JobIntent::kPause);
    wish(JobIntent::kRun);
  }
  const int32_t most = Catalogue()[job.kind].chains;
  if (!job.spec.sweep.any() && job.spec.chains < most && dice.OneIn(2)) {
    const auto chains = static_cast<int32_t>(dice.Between(job.spec.chains + 1, most));
    const auto place = dice.Between(0, static_cast<int64_t>(job.wishes.size()));
    job.wishes.insert(job.wishes.begin() + place,
                      {.after = dice.Between(absl::ZeroDuration(), absl::Seconds(15)), .chains = chains});
  }
  if (dice.OneIn(4)) wish(dice.Pick<JobIntent>({JobIntent::kFinish, JobIntent::kCancel, JobIntent::kDelete}));
  if (!job.wishes.empty() && job.wishes.back().intent == JobIntent::kCancel && dice.OneIn(2)) wish(JobIntent::kDelete);
  return job;
}

void Workload::Begin() {
  PinVersions();
  for (Job& job : jobs_) world_->site().loop.ScheduleAfter(job.submit_after, [this, &job] { Submit(&job); });
}

// Sometimes a user asks for predictions, which first pin a version.
void Workload::PinVersions() {
  Site& site = world_->site();
  Job& job = jobs_[static_cast<size_t>(site.dice.Between(0, static_cast<int64_t>(jobs_.size()) - 1))];
  ServerNode* const server = world_->AnyServer();
  if (!job.id.empty() && server != nullptr) {
    const bool refresh = site.dice.OneIn(2);
    server->Call<Version>(
        [id = job.id, refresh](Coordinator* coordinator, Reply<Version> done) {
          coordinator->versions().Pin(id, 0, refresh, std::move(done));
        },
        [this](const absl::StatusOr<Version>& pinned) {
          if (!pinned.ok()) return;
          pinned_.push_back(*pinned);
          Read(*pinned);
        });
    if (site.dice.OneIn(4)) NameVersion(&job);
  }
  site.loop.ScheduleAfter(site.dice.Between(absl::Seconds(1), absl::Seconds(20)), [this] { PinVersions(); });
}

std::vector<SegmentRecord> Workload::ReadableOf(const Version& version) {
  std::vector<SegmentRecord> readable =
      world_->site().reader->ListSegments({.job = version.job, .limit = 1'000'000, .live_only = true}).value();
  std::erase_if(readable, [&](const SegmentRecord& record) {
    return record.segment.first_index >= version.DrawsOf(record.chain.index);
  });
  return readable;
}

void Workload::Read(const Version& pinned) {
  Site& site = world_->site();
  const StoredState stored = site.reader->Load().value();
  const bool served = std::ranges::any_of(stored.jobs, [&](const StoredJob& job) {
    return job.row.id == pinned.job && job.row.intent < JobIntent::kCancel;
  });
  if (!served) return;
  // The coordinator's clock may run fast, and a call ends by that clock.
  const absl::Duration takes = site.dice.Between(absl::ZeroDuration(), 0.97 * site.longest_call);
  site.loop.ScheduleAfter(takes, [this, &site, takes, records = ReadableOf(pinned)] {
    const std::unique_ptr<FileSystem> files = site.disk.Mount([] { return true; });
    for (const SegmentRecord& record : records) {
      const std::string& object = record.segment.object.name;
      const bool there =
          site.objects_in_bucket ? site.bucket.SizeBytes(object).ok() : files->SizeBytes("/data/blobs/" + object).ok();
      if (there) continue;
      missed_.push_back(absl::StrCat(object, " went within ", absl::FormatDuration(takes), ", while it was read"));
    }
  });
}

void Workload::NameVersion(Job* job) {
  ServerNode* const server = world_->AnyServer();
  if (job->named != nullptr || server == nullptr) return;
  server->Call<Alias>(
      [job](Coordinator* coordinator, Reply<Alias> done) {
        coordinator->versions().SetAlias({job->tenant, absl::StrCat("best-", job->request_id), job->id, 0},
                                         std::move(done));
      },
      [this, job](const absl::StatusOr<Alias>& alias) {
        if (!alias.ok() || job->named != nullptr) return;
        world_->site().Note(absl::StrCat("alias ", alias->name, " names version ", alias->number, " of ", alias->job));
        job->named = std::make_shared<std::set<std::pair<ChainId, int64_t>>>();
        const Version version = world_->site().reader->FindVersion(alias->job, alias->number).value();
        for (const SegmentRecord& record : ReadableOf(version)) {
          job->named->emplace(record.chain, record.segment.first_index);
        }
      });
}

std::vector<std::string> Workload::WrongRetention(StateStore* state) const {
  std::vector<std::string> wrong;
  std::set<std::string> with_alias;  // the reply may have been lost
  const StoredState stored = state->Load().value();
  for (const StoredAlias& alias : stored.aliases) with_alias.insert(alias.alias.job);
  for (const Job& job : jobs_) {
    if (job.intent == JobIntent::kDelete) continue;
    const RetentionSpec& retention = job.spec.retention;
    std::map<ChainId, int64_t> num_draws;
    const std::vector<SegmentRecord> records = state->ListSegments({.job = job.id, .limit = 1'000'000}).value();
    for (const SegmentRecord& record : records) num_draws[record.chain] += record.segment.num_draws();
    for (const SegmentRecord& record : records) {
      const std::string what =
          absl::StrCat("chain ", ToString(record.chain), ": the segment at draw ", record.segment.first_index);
      const int64_t end = record.segment.first_index + record.segment.num_draws();
      const bool surplus = retention.keep_last && end <= num_draws[record.chain] - *retention.keep_last;
      const bool named = job.named != nullptr && job.named->contains({record.chain, record.segment.first_index});
      if (record.deleted && (named || !(surplus || retention.ttl_seconds))) wrong.push_back(what + " should be there");
      if (!record.deleted && surplus && !with_alias.contains(job.id)) wrong.push_back(what + " should have gone");
    }
  }
  return wrong;
}

std::vector<std::string> Workload::WrongVersions(StateStore* state) const {
  std::vector<std::string> wrong;
  for (const Version& pinned : pinned_) {
    const absl::StatusOr<Version> stored = state->FindVersion(pinned.job, pinned.number);
    const bool deleted = absl::IsNotFound(stored.status()) && std::ranges::any_of(jobs_, [&](const Job& job) {
                           return job.id == pinned.job && job.wished(JobIntent::kDelete);
                         });
    if (deleted || (stored.ok() && stored->draws_of_chain == pinned.draws_of_chain)) continue;
    wrong.push_back(absl::StrCat("version ", pinned.number, " of job ", pinned.job, " is not what a user was told"));
  }
  return wrong;
}

void Workload::Submit(Job* job) {
  Try(
      [job](Coordinator* coordinator, Reply<JobView> done) {
        coordinator->dispatcher().CreateJob(job->tenant, job->spec, job->request_id, false, std::move(done));
      },
      [this, job](const absl::StatusOr<JobView>& view) {
        if (!view.ok()) return false;
        world_->site().Note("job " + view->id + " is there");
        job->id = view->id;
        job->chains = job->spec.chains;
        NextWish(job);
        return true;
      });
}

void Workload::NextWish(Job* job) {
  if (job->wishes_done == job->wishes.size()) return;
  const Job::Wish wish = job->wishes[job->wishes_done];
  const auto ask = [job, wish](Coordinator* coordinator, Reply<JobView> done) {
    if (wish.chains) return coordinator->dispatcher().ScaleJob(job->id, *wish.chains, std::move(done));
    coordinator->dispatcher().SetIntent(job->id, wish.intent, std::move(done));
  };
  const auto settled = [this, job, wish](const absl::StatusOr<JobView>& view) {
    const bool gone = absl::IsNotFound(view.status());
    if (!view.ok() && !absl::IsFailedPrecondition(view.status()) && !gone) return false;
    const std::string what = wish.chains ? absl::StrCat(*wish.chains, " chains") : ToString(wish.intent);
    world_->site().Note(absl::StrCat("job ", job->id, " to ", what, ": ", view.status().ToString()));
    if (wish.chains && view.ok()) job->chains = *wish.chains;
    if (!wish.chains && (view.ok() || gone)) job->intent = wish.intent;
    ++job->wishes_done;
    NextWish(job);
    return true;
  };
  world_->site().loop.ScheduleAfter(wish.after, [this, ask, settled] { Try(ask, settled); });
}

void Workload::Try(Ask ask, Settled settled) {
  Site& site = world_->site();
  const auto is_settled = std::make_shared<bool>(false);
  if (ServerNode* const server = world_->AnyServer()) {
    server->Call<JobView>(ask, [&site, is_settled, settled](const absl::StatusOr<JobView>& view) {
      const bool lost = site.dice.OneIn(10);
      if (!lost && !*is_settled) *is_settled = settled(view);
    });
  }
  site.loop.ScheduleAfter(kAskAgainAfter, [this, ask, settled, is_settled] {
    if (!std::exchange(*is_settled, true)) Try(ask, settled);
  });
}

bool Workload::answered() const {
  for (const Job& job : jobs_) {
    if (job.id.empty() || job.wishes_done < job.wishes.size()) return false;
  }
  return true;
}

const DrawPath* Workload::CalmPathOf(const ChainId& chain) const {
  for (const Job& job : jobs_) {
    if (job.id == chain.job) return &CalmRunOf(job.kind).at(chain.index);
  }
  return nullptr;
}

}  // namespace chainfleet
