#include "worker/runtime/shard_server.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

constexpr int kLoadsAtOnce = 4;  // per shard: enough to hide the latency, few enough not to hold all bytes twice

// Positions count from the first draw of the segments, corrupt ones included, so a skipped draw does not renumber
// others.
bool IsAveraged(const ChainDraws& chain, int64_t position) {
  const int64_t back = chain.skip_draws + chain.num_draws - 1 - position;  // number of newer draws
  return position >= chain.skip_draws && back >= 0 && back % std::max<int64_t>(chain.every, 1) == 0;
}

// `begin`: position of the segment's first draw.
bool HoldsAveraged(const ChainDraws& chain, const Segment& segment, int64_t begin) {
  for (int64_t i = 0; i < segment.num_draws(); ++i) {
    if (IsAveraged(chain, begin + i)) return true;
  }
  return false;
}

int64_t NumRows(const ShardRequest& request) {
  if (request.rows) return request.rows->num_rows;
  return request.inputs->shape.empty() ? 0 : request.inputs->shape.front();  // the predictor refuses an empty shape
}

uint64_t NumPasses(const ShardRequest& request) {
  int64_t draws = 0;
  for (const ChainDraws& chain : request.chains) draws += chain.num_draws / std::max<int64_t>(chain.every, 1);
  return static_cast<uint64_t>(std::max<int64_t>(NumRows(request) * draws * std::ssize(request.kinds), 1));
}

// CANCELLED is reserved for a cancelled shard and is not reported. An interrupted fetch is a real failure.
absl::Status LoadStatus(const absl::Status& status) {
  if (!absl::IsCancelled(status)) return status;
  return absl::UnavailableError("a fetch was interrupted, ask again: " + std::string(status.message()));
}

// Flatness replaces predictions and needs labels or targets. Corruptions apply only to stored rows.
absl::Status CheckAsked(const ShardRequest& request) {
  const bool rows = request.rows.has_value();
  if (request.corruption && !rows)
    return absl::InvalidArgumentError("corruption: applies only to rows of a stored data set");
  if (!request.flatness) return absl::OkStatus();
  if (!rows) return absl::InvalidArgumentError("flatness: applies only to rows of a stored data set");
  if (request.corruption || request.members) {
    return absl::InvalidArgumentError("flatness: cannot be combined with corruption or members");
  }
  return absl::OkStatus();
}

}  // namespace

// `mutex_` guards loading. A shard in `ready_` belongs to the device loop, except `cancelled` and `begun`.
struct ShardServer::Shard {
  ShardRequest request;
  Done<ShardResult> done;
  absl::Duration arrived, loaded;  // monotonic
  TenantTurn turn;                 // a prediction's, once ready
  absl::Duration computed;         // time on the device

  struct Source {
    const Segment* segment;
    std::shared_ptr<const DecodedDraws> draws;  // null: not loaded, or corrupt
  };
  std::vector<std::vector<Source>> sources;  // per chain, in order
  std::vector<Source*> to_load;
  size_t next_load = 0;
  int loading = 0;
  absl::Status load_status;
  std::shared_ptr<const ResidentDataset> dataset;
  std::shared_ptr<const ModelFile> module;
  bool cancelled = false, begun = false;

  ShardResult result;
  size_t next_unit = 0;  // counts (chain, kind) pairs, or chains for a flatness

  std::unique_ptr<PredictionRun> run;     // over rows of a data set, up to next_unit
  std::unique_ptr<FlatnessRun> flatness;  // flatness of the chain that is measured now
  std::shared_ptr<DeviceRows> device_rows;

  Kind kind() const { return request.rows ? Kind::kEvaluation : Kind::kPrediction; }
  size_t num_units() const { return request.chains.size() * (request.flatness ? 1 : request.kinds.size()); }
  bool complete() const { return run == nullptr && next_unit == num_units(); }
  DrawStack Stack(size_t chain, DrawKind kind) const;
};

DrawStack ShardServer::Shard::Stack(size_t chain, DrawKind kind) const {
  DrawStack stack;
  stack.chain = request.chains[chain].chain;
  stack.kind = kind;
  int64_t end = 0;  // position after the segment's last draw
  for (const Source& source : sources[chain]) {
    const int64_t begin = end;
    end += source.segment->num_draws();
    if (source.draws == nullptr) continue;
    const auto& kinds = source.draws->kinds;
    const auto position = std::find(kinds.begin(), kinds.end(), kind);
    if (position == kinds.end()) continue;
    const auto& draws = source.draws->draws[static_cast<size_t>(position - kinds.begin())];
    for (int64_t i = 0; i < source.segment->num_draws(); ++i) {
      if (!IsAveraged(request.chains[chain], begin + i)) continue;
      stack.weights.push_back(source.segment->weights[static_cast<size_t>(i)]);
      stack.theta.push_back(draws[static_cast<size_t>(i)]);
      stack.ids.push_back({source.segment->object.sha256, i});
    }
  }
  return stack;
}

ShardServer::ShardServer(PredictorFactory factory, DrawCache* draws, InputCache* inputs, Executor* executor,
                         const Clock* clock, RuntimeObserver* observer)
    : factory_(std::move(factory)),
      draws_(draws),
      inputs_(inputs),
      executor_(executor),
      clock_(clock),
      observer_(observer) {}

void ShardServer::Submit(ShardRequest request, Done<ShardResult> done) {
  auto shard = std::make_shared<Shard>();
  shard->request = std::move(request);
  shard->done = std::move(done);
  shard->arrived = clock_->Monotonic();
  const uint64_t id = shard->request.shard_id;
  shard->result.shard_id = id;
  for (const ChainDraws& chain : shard->request.chains) {
    auto& sources = shard->sources.emplace_back();
    for (const Segment& segment : chain.segments) sources.push_back({&segment, nullptr});
    int64_t begin = 0;
    for (Shard::Source& source : sources) {
      if (HoldsAveraged(chain, *source.segment, begin)) shard->to_load.push_back(&source);
      begin += source.segment->num_draws();
    }
  }
  absl::Status refused = CheckAsked(shard->request);
  if (refused.ok()) {
    MutexLock lock(&mutex_);
    if (shards_.size() < limits::kMaxQueuedShards && shards_.emplace(id, shard).second) {
      // counts the inputs (or nothing), so that the shard is not ready before all loads have started
      shard->loading = 1;
    } else {
      refused = WithReason(absl::ResourceExhaustedError(absl::StrCat("shard ", id, ": ", limits::kMaxQueuedShards,
                                                                     " shards wait already; ask another worker")),
                           "QUEUE_FULL");
    }
  }
  if (!refused.ok()) {
    LogEnd(*shard, refused);
    executor_->Schedule([shard, refused] { shard->done(refused); });
    return;
  }
  LoadMore(shard);
  LoadDataset(shard);
}

void ShardServer::LoadDataset(const std::shared_ptr<Shard>& shard) {
  if (!shard->request.rows) return LoadModule(shard);
  inputs_->GetDataset(shard->request.rows->dataset,
                      [this, shard](const absl::StatusOr<std::shared_ptr<const ResidentDataset>>& dataset) {
                        if (!dataset.ok()) return OnLoaded(shard, dataset.status());
                        shard->dataset = *dataset;
                        LoadModule(shard);
                      });
}

void ShardServer::LoadModule(const std::shared_ptr<Shard>& shard) {
  const std::optional<BlobRef>& module = shard->request.plan->module;
  if (!module) return OnLoaded(shard, absl::OkStatus());
  inputs_->GetModel(*module, [this, shard](const absl::StatusOr<std::shared_ptr<const ModelFile>>& file) {
    if (file.ok()) shard->module = *file;
    OnLoaded(shard, file.status());
  });
}

void ShardServer::LoadMore(const std::shared_ptr<Shard>& shard) {
  for (;;) {
    Shard::Source* source = nullptr;
    {
      MutexLock lock(&mutex_);
      if (shard->loading > kLoadsAtOnce || shard->next_load == shard->to_load.size()) return;
      if (shard->cancelled || !shard->load_status.ok()) return;
      source = shard->to_load[shard->next_load++];
      ++shard->loading;
    }
    draws_->Get(*source->segment,
                [this, shard, source](const absl::StatusOr<std::shared_ptr<const DecodedDraws>>& draws) {
                  absl::Status status = draws.status();
                  {
                    MutexLock lock(&mutex_);
                    if (draws.ok()) source->draws = *draws;
                    // A committed object that does not exist is as lost as a damaged one. Serve the other draws.
                    if (absl::IsDataLoss(status) || absl::IsNotFound(status)) {
                      shard->result.corrupt_objects.push_back(source->segment->object.name);
                      status = absl::OkStatus();
                    }
                    shard->load_status.Update(LoadStatus(status));  // load no more: another worker may reach them
                  }
                  LoadMore(shard);
                  OnLoaded(shard, absl::OkStatus());  // load_status has the outcome
                });
  }
}

void ShardServer::OnLoaded(const std::shared_ptr<Shard>& shard, absl::Status status) {
  absl::Status failed;
  {
    MutexLock lock(&mutex_);
    shard->load_status.Update(LoadStatus(status));
    if (--shard->loading > 0) return;
    if (shard->cancelled) return;
    failed = shard->load_status;
    shard->loaded = clock_->Monotonic();
    if (failed.ok()) Enqueue(shard);
  }
  if (!failed.ok()) return Finish(shard, failed);
  on_ready_();
}

void ShardServer::Enqueue(const std::shared_ptr<Shard>& shard) {
  auto place = ready_.end();
  if (shard->kind() == Kind::kPrediction) {
    shard->turn = turns_.Take(shard->request.plan->tenant, NumPasses(shard->request));
    place = std::ranges::find_if(
        ready_, [&](const auto& s) { return s->kind() == Kind::kPrediction && s->turn.end > shard->turn.end; });
  }
  ready_.insert(place, shard);
  SeeWhoWaits();
}

void ShardServer::Cancel(uint64_t shard_id) {
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(&mutex_);
    const auto it = shards_.find(shard_id);
    if (it == shards_.end()) return;
    shard = it->second;
    shard->cancelled = true;
    if (std::erase(ready_, shard) > 0 && !shard->begun) turns_.GiveBack(shard->request.plan->tenant, shard->turn);
    SeeWhoWaits();
  }
  Finish(shard, absl::CancelledError("shard " + std::to_string(shard_id) + " was cancelled"));
}

void ShardServer::CancelAll() {
  std::vector<uint64_t> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, shard] : shards_) ids.push_back(id);
  }
  for (const uint64_t id : ids) Cancel(id);
}

bool ShardServer::ready() const {
  MutexLock lock(&mutex_);
  return !ready_.empty();
}

void ShardServer::SeeWhoWaits() {
  const auto first = std::ranges::find_if(ready_, [](const auto& s) { return s->kind() == Kind::kPrediction; });
  next_prediction_ = first == ready_.end() ? nullptr : first->get();
}

std::optional<ShardServer::Kind> ShardServer::ServeOne(const std::function<bool(Kind)>& may) {
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(&mutex_);
    const auto first = std::ranges::find_if(ready_, [&may](const auto& ready) { return may(ready->kind()); });
    if (first == ready_.end()) return std::nullopt;
    shard = *first;
    shard->begun = true;
    turns_.Served(shard->turn.begin);
  }
  const absl::Duration began = clock_->Monotonic();
  absl::Status status;
  if (!shard->complete()) {
    status = shard->request.flatness ? MeasureFlatness(shard.get()) : RunUnit(shard.get());
  }
  const absl::Duration took = clock_->Monotonic() - began;
  shard->computed += took;
  observer_->OnShardUnit(took);
  if (ReasonOf(status) == kDeviceLost) device_fault_.Update(status);
  if (status.ok() && !shard->complete()) {
    if (shard->kind() == Kind::kEvaluation) YieldTurn(shard);
    return shard->kind();
  }
  {
    MutexLock lock(&mutex_);
    std::erase(ready_, shard);
    SeeWhoWaits();
    std::sort(shard->result.corrupt_objects.begin(), shard->result.corrupt_objects.end());
  }
  if (status.ok()) {
    const absl::Duration since_loaded = clock_->Monotonic() - shard->loaded;
    observer_->OnShard({shard->loaded - shard->arrived, since_loaded - shard->computed, shard->computed});
    Finish(shard, std::move(shard->result));
  } else {
    Finish(shard, status);
  }
  return shard->kind();
}

void ShardServer::YieldTurn(const std::shared_ptr<Shard>& shard) {
  MutexLock lock(&mutex_);
  if (std::erase(ready_, shard) == 0) return;
  if (shard->request.flatness) {
    ready_.push_back(shard);
  } else {
    ready_.push_front(shard);
  }
  std::stable_partition(ready_.begin(), ready_.end(), [](const auto& s) { return !s->request.rows; });
}

absl::Status ShardServer::RunUnit(Shard* shard) {
  if (shard->run == nullptr) CHAINFLEET_RETURN_IF_ERROR(StartUnit(shard));
  if (shard->run == nullptr) return absl::OkStatus();
  const absl::Duration began = clock_->Monotonic();
  const auto pause = [this, began, shard] {
    const Shard* const next = next_prediction_;
    if (shard->kind() == Kind::kPrediction) return next != shard;
    return clock_->Monotonic() - began >= (next != nullptr ? kLeastPartTime : kPartTime);
  };
  CHAINFLEET_ASSIGN_OR_RETURN(const bool complete, shard->run->Advance(pause));
  if (!complete) return absl::OkStatus();
  std::ranges::move(shard->run->Take(), std::back_inserter(shard->result.partials));
  shard->run = nullptr;
  return absl::OkStatus();
}

absl::Status ShardServer::StartUnit(Shard* shard) {
  const ShardRequest& request = shard->request;
  std::vector<DrawStack> stacks;
  for (int64_t passes = 0; passes < kUnitPasses && shard->next_unit < shard->num_units(); ++shard->next_unit) {
    const size_t chain = shard->next_unit / request.kinds.size();
    DrawStack stack = shard->Stack(chain, request.kinds[shard->next_unit % request.kinds.size()]);
    if (stack.theta.empty()) continue;  // all corrupt, or a kind that the job does not keep
    passes += NumRows(request) * std::ssize(stack.theta);
    stacks.push_back(std::move(stack));
  }
  if (stacks.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(Predictor * predictor, PredictorFor(*shard));
  const bool prediction = shard->kind() == Kind::kPrediction;
  if (prediction && request.gradients) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto partials,
                                predictor->Predict(stacks, *request.inputs, request.members, &shard->device_rows));
    CHAINFLEET_RETURN_IF_ERROR(predictor->AddGradients(stacks, *request.inputs, &partials));
    std::ranges::move(partials, std::back_inserter(shard->result.partials));
    return absl::OkStatus();
  }
  if (prediction) {
    CHAINFLEET_ASSIGN_OR_RETURN(
        shard->run, predictor->Start(std::move(stacks), *request.inputs, request.members, &shard->device_rows));
    return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(
      shard->run, predictor->StartRows(std::move(stacks), *shard->dataset, request.rows->first_row,
                                       request.rows->num_rows, request.per_draw_scores, request.members,
                                       request.corruption ? &*request.corruption : nullptr, &shard->device_rows));
  return absl::OkStatus();
}

absl::Status ShardServer::MeasureFlatness(Shard* shard) {
  const ShardRequest& request = shard->request;
  if (shard->flatness == nullptr) {
    const DrawStack theta = shard->Stack(shard->next_unit, DrawKind::kTheta);
    if (theta.theta.empty()) {  // all corrupt, or not kept
      ++shard->next_unit;
      return absl::OkStatus();
    }
    CHAINFLEET_ASSIGN_OR_RETURN(Predictor * predictor, PredictorFor(*shard));
    CHAINFLEET_ASSIGN_OR_RETURN(
        shard->flatness,
        predictor->StartFlatness(*request.flatness, theta, shard->Stack(shard->next_unit, DrawKind::kThetaA),
                                 shard->dataset, request.rows->first_row, request.rows->num_rows));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const bool complete, shard->flatness->Advance());
  if (!complete) return absl::OkStatus();
  shard->result.flatness.push_back(shard->flatness->result());
  shard->flatness = nullptr;
  ++shard->next_unit;
  return absl::OkStatus();
}

absl::StatusOr<Predictor*> ShardServer::PredictorFor(const Shard& shard) {
  const std::shared_ptr<const PredictPlan>& plan = shard.request.plan;
  const auto it = std::find_if(predictors_.begin(), predictors_.end(),
                               [&plan](const auto& entry) { return entry.first == plan->job; });
  if (it != predictors_.end()) {
    predictors_.splice(predictors_.begin(), predictors_, it);
  } else {
    CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<Predictor> predictor, factory_(plan, shard.module));
    predictors_.emplace_front(plan->job, std::move(predictor));
    if (predictors_.size() > limits::kMaxPredictors) predictors_.pop_back();
  }
  return predictors_.front().second.get();
}

void ShardServer::LogEnd(const Shard& shard, const absl::Status& status) const {
  const LogLevel level = status.ok() || absl::IsCancelled(status) ? LogLevel::kDebug : LogLevel::kWarning;
  if (!IsLogged(level)) return;
  const ShardRequest& request = shard.request;
  std::vector<LogField> fields = {{"request", request.trace_id},
                                  {"job", request.plan->job},
                                  {"chains", request.chains.size()},
                                  {"rows", NumRows(request)},
                                  {"ms", absl::ToDoubleMilliseconds(clock_->Monotonic() - shard.arrived)}};
  if (!status.ok()) fields.emplace_back("error", status.ToString());
  Log(level, status.ok() ? "shard served" : absl::IsCancelled(status) ? "shard cancelled" : "shard failed", fields);
}

void ShardServer::Finish(const std::shared_ptr<Shard>& shard, absl::StatusOr<ShardResult> result) {
  {
    MutexLock lock(&mutex_);
    if (shards_.erase(shard->request.shard_id) == 0) return;
    if (shards_.empty()) turns_.Forget();
  }
  LogEnd(*shard, result.status());
  executor_->Schedule([shard, result = std::move(result)] { shard->done(result); });
}

}  // namespace chainfleet
