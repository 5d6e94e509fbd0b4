// A fleet of serving workers and a catalog without network or torch: draws are a function of (chain, kind, draw, row).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/executor.h"
#include "core/base/rng_key.h"
#include "server/predict/serving/draw_catalog.h"
#include "server/predict/serving/shard_port.h"

namespace chainfleet::testing {

using Probabilities = std::function<std::vector<double>(const ChainId&, DrawKind, int64_t draw, int64_t row)>;

// K arbitrary probabilities for each (chain, kind, draw, row).
inline Probabilities ArbitraryProbabilities(int64_t num_classes) {
  return [num_classes](const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
    RngKey key{static_cast<uint64_t>(chain.index)};
    key = Fold(Fold(Fold(key, static_cast<uint64_t>(kind)), static_cast<uint64_t>(draw)), static_cast<uint64_t>(row));
    std::vector<double> p;
    double sum = 0;
    for (int64_t k = 0; k < num_classes; ++k) {
      p.push_back(UniformFloat(static_cast<uint32_t>(Fold(key, static_cast<uint64_t>(k)).value)));
      sum += p.back();
    }
    for (double& value : p) value /= sum;
    return p;
  };
}

// Sums as a worker would make them. `draws`: indices and weights that are averaged.
inline PartialPrediction SumDraws(const ChainId& chain, DrawKind kind,
                                  const std::vector<std::pair<int64_t, double>>& draws,
                                  const std::vector<int64_t>& rows, int64_t num_classes, const Probabilities& of,
                                  const std::vector<int32_t>* labels = nullptr) {
  PartialPrediction sum{.chain = chain,
                        .kind = kind,
                        .num_draws = static_cast<int64_t>(draws.size()),
                        .num_rows = static_cast<int64_t>(rows.size())};
  ClassSums sums{.num_classes = num_classes, .sum_wh = std::vector<double>(rows.size())};
  for (auto* values : {&sums.sum_wp, &sums.sum_wp2, &sums.votes}) {
    values->resize(rows.size() * static_cast<size_t>(num_classes));
  }
  for (const auto& [draw, w] : draws) {
    sum.sum_w += w;
    sum.sum_w2 += w * w;
    double log_likelihood = 0;
    int64_t hits = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> p = of(chain, kind, draw, rows[i]);
      for (size_t k = 0; k < p.size(); ++k) {
        sums.sum_wp[i * p.size() + k] += w * p[k];
        sums.sum_wp2[i * p.size() + k] += w * p[k] * p[k];
        sums.sum_wh[i] -= p[k] > 0 ? w * p[k] * std::log(p[k]) : 0;
      }
      const int64_t best = std::max_element(p.begin(), p.end()) - p.begin();
      sums.votes[i * p.size() + static_cast<size_t>(best)] += w;
      if (labels == nullptr) continue;
      const int32_t label = (*labels)[static_cast<size_t>(rows[i])];
      log_likelihood += std::log(p[static_cast<size_t>(label)]);
      hits += best == label;
    }
    if (labels == nullptr) continue;
    sum.draw_log_likelihood.push_back(log_likelihood);
    sum.draw_weights.push_back(w);
    sums.draw_hits.push_back(hits);
  }
  sum.sums = std::move(sums);
  return sum;
}

// The same of float32 targets: `of` gives a draw's mean and variance of a row.
inline PartialPrediction SumNumberDraws(const ChainId& chain, DrawKind kind,
                                        const std::vector<std::pair<int64_t, double>>& draws,
                                        const std::vector<int64_t>& rows, const Probabilities& of,
                                        const std::vector<float>* targets = nullptr) {
  PartialPrediction sum;
  sum.chain = chain;
  sum.kind = kind;
  sum.num_draws = static_cast<int64_t>(draws.size());
  sum.num_rows = static_cast<int64_t>(rows.size());
  NumberSums& sums = sum.numbers();
  for (auto* values : {&sums.sum_wm, &sums.sum_wm2, &sums.sum_wv}) values->resize(rows.size());
  std::vector<double> density(rows.size()), distribution(rows.size());
  for (const auto& [draw, w] : draws) {
    sum.sum_w += w;
    sum.sum_w2 += w * w;
    double log_likelihood = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> moments = of(chain, kind, draw, rows[i]);
      sums.sum_wm[i] += w * moments[0];
      sums.sum_wm2[i] += w * moments[0] * moments[0];
      sums.sum_wv[i] += w * moments[1];
      if (targets == nullptr) continue;
      const double z = ((*targets)[static_cast<size_t>(rows[i])] - moments[0]) / std::sqrt(moments[1]);
      const double p = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1) * moments[1]);
      density[i] += w * p;
      distribution[i] += w * (1 + std::erf(z / std::sqrt(2))) / 2;
      log_likelihood += std::log(p);
    }
    if (targets == nullptr) continue;
    sum.draw_log_likelihood.push_back(log_likelihood);
    sum.draw_weights.push_back(w);
  }
  if (targets == nullptr) return sum;
  for (const double value : density) sums.log_sum_wd.push_back(std::log(value));
  sums.sum_wc = distribution;
  return sum;
}

// The outputs of each single draw, as a worker would send them.
inline Members MembersOf(const ChainId& chain, DrawKind kind, const std::vector<std::pair<int64_t, double>>& draws,
                         const std::vector<int64_t>& rows, int64_t num_classes, const Probabilities& of) {
  Members members{.chain = chain, .kind = kind};
  ClassMembers classes;
  NumberMembers numbers;
  for (const auto& [draw, w] : draws) {
    members.weights.push_back(w);
    for (const int64_t row : rows) {
      const std::vector<double> says = of(chain, kind, draw, row);
      if (num_classes > 0) {
        classes.probabilities.insert(classes.probabilities.end(), says.begin(), says.end());
      } else {
        numbers.mean.push_back(static_cast<float>(says[0]));
        numbers.variance.push_back(static_cast<float>(says[1]));
      }
    }
  }
  if (num_classes > 0) {
    members.outputs = std::move(classes);
  } else {
    members.outputs = std::move(numbers);
  }
  return members;
}

// A prediction's slope is twice the prediction.
inline void AddGradients(ShardResult* result) {
  for (PartialPrediction& partial : result->partials) {
    const auto* const classes = std::get_if<ClassSums>(&partial.sums);
    for (const double sum : classes != nullptr ? classes->sum_wp : partial.numbers().sum_wm)
      partial.sum_wg.push_back(2 * sum);
    if (!partial.members) continue;
    const std::vector<float>& outputs =
        classes != nullptr ? partial.members->classes().probabilities : partial.members->numbers().mean;
    for (const float output : outputs) partial.members->gradients.push_back(2 * output);
  }
}

// Answers through the executor, so in any order the executor likes.
class FakeShardPort final : public ShardPort {
 public:
  enum class Mood { kAnswers, kLosesShards, kIsFull, kHangs, kSendsNonsense, kIsBroken, kRefuses };
  struct Sent {
    std::string worker;
    ShardRequest request;
  };

  FakeShardPort(Executor* executor, Probabilities probabilities)
      : executor_(executor), probabilities_(std::move(probabilities)) {}

  std::map<std::string, Mood> workers;
  std::set<std::string> corrupt;                       // object names
  std::map<std::string, std::vector<int32_t>> labels;  // by data set name
  std::map<std::string, std::vector<float>> numbers;   // likewise
  int64_t corrupted_row_offset = 1000;                 // rows that are changed are predicted as those so far beyond
  std::vector<Sent> sent;
  std::vector<uint64_t> cancelled;
  int32_t most_in_flight = 0;                    // on one worker
  std::map<std::string, std::string> tenant_of;  // by worker; none: it serves all
  absl::Duration shard_time, draw_time;          // that an answer takes, and each of its networks
  // Its open shards end with UNAVAILABLE, as when its stream breaks.
  void Break(const std::string& worker) {
    workers.erase(worker);
    EndOpen([&](const Open& open) { return open.worker == worker; }, absl::UnavailableError("the stream ended"));
  }
  // Answers the hanging shards of `worker`, or of all workers.
  void AnswerOpen(const std::string& worker = "") {
    for (const auto& open : open_) {
      if (worker.empty() || open.second.worker == worker) AnswerOpen(open);
    }
  }
  // Answers the hanging shard that was sent first, or last.
  void AnswerOldest() { AnswerOpen(*open_.begin()); }
  void AnswerNewest() { AnswerOpen(*open_.rbegin()); }
  size_t num_open() const { return open_.size(); }

  std::vector<ServingWorker> Workers() override {
    std::vector<ServingWorker> list;
    for (const auto& [id, mood] : workers) list.push_back({id, in_flight_[id], {"token", tenant_of[id]}});
    return list;
  }

  void Send(const std::string& worker, const ShardRequest& request,
            std::function<void(absl::StatusOr<ShardResult>)> done) override {
    sent.push_back({worker, request});
    most_in_flight = std::max(most_in_flight, ++in_flight_[worker]);
    const uint64_t id = request.shard_id;
    open_[id] = {worker, request, std::move(done)};
    switch (workers.contains(worker) ? workers.at(worker) : Mood::kLosesShards) {
      case Mood::kAnswers:
        return executor_->ScheduleAfter(TimeOf(request), [this, id, request] { End(id, Answer(request)); });
      case Mood::kLosesShards:
        return executor_->Schedule([this, id] { End(id, absl::UnavailableError("the stream ended")); });
      case Mood::kIsFull:
        return executor_->Schedule([this, id] { End(id, BoundReached("", "16 shards wait here", "QUEUE_FULL")); });
      case Mood::kRefuses:
        return executor_->Schedule([this, id] { End(id, absl::InvalidArgumentError("rows of another width")); });
      case Mood::kIsBroken:
        return executor_->Schedule([this, id] { End(id, absl::InternalError("CUDA error in object s/job/0")); });
      case Mood::kSendsNonsense:
        return executor_->Schedule([this, id, request] {
          ShardResult result = Answer(request);
          if (request.flatness) {
            result.flatness.pop_back();
          } else {
            result.partials.front().sum_w = 0;
          }
          End(id, std::move(result));
        });
      case Mood::kHangs:
        return;
    }
  }

  void Cancel(const std::string& worker, uint64_t shard_id) override {
    cancelled.push_back(shard_id);
    EndOpen([&, it = open_.find(shard_id)](
                const Open& open) { return it != open_.end() && &open == &it->second && open.worker == worker; },
            absl::CancelledError("dropped"));
  }

 private:
  absl::Duration TimeOf(const ShardRequest& request) const {
    int64_t networks = 0;
    for (const ChainDraws& chain : request.chains) {
      networks += (chain.num_draws + chain.every - 1) / chain.every * static_cast<int64_t>(request.kinds.size());
    }
    return shard_time + draw_time * networks;
  }

  struct Open {
    std::string worker;
    ShardRequest request;
    std::function<void(absl::StatusOr<ShardResult>)> done;
  };

  void AnswerOpen(const std::pair<const uint64_t, Open>& open) {
    executor_->Schedule([this, id = open.first, request = open.second.request] { End(id, Answer(request)); });
  }
  void End(uint64_t id, absl::StatusOr<ShardResult> result) {
    const auto node = open_.extract(id);
    if (node.empty()) return;
    --in_flight_[node.mapped().worker];
    node.mapped().done(std::move(result));
  }

  template <typename Predicate>
  void EndOpen(Predicate predicate, const absl::Status& status) {
    std::vector<uint64_t> ids;
    for (const auto& [id, open] : open_) {
      if (predicate(open)) ids.push_back(id);
    }
    for (const uint64_t id : ids) {
      executor_->Schedule([this, id, status] { End(id, status); });
    }
  }

  static std::vector<int64_t> RowsOf(const ShardRequest& request) {
    std::vector<int64_t> rows;
    if (request.rows) {
      for (int64_t i = 0; i < request.rows->num_rows; ++i) rows.push_back(request.rows->first_row + i);
      return rows;
    }
    for (size_t i = 0; i < request.inputs->bytes.size(); i += sizeof(float)) {  // input_shape {1}: the row's number
      float value;
      std::memcpy(&value, request.inputs->bytes.data() + i, sizeof(value));
      rows.push_back(static_cast<int64_t>(value));
    }
    return rows;
  }

  // Changed rows have other probabilities, by severity.
  Probabilities ProbabilitiesOf(const ShardRequest& request) const {
    if (!request.corruption) return probabilities_;
    return [this, shift = request.corruption->severity * corrupted_row_offset](const ChainId& chain, DrawKind kind,
                                                                               int64_t draw, int64_t row) {
      return probabilities_(chain, kind, draw, row + shift);
    };
  }

  ShardResult Answer(const ShardRequest& request) const {
    ShardResult result{.shard_id = request.shard_id, .partials = {}, .corrupt_objects = {}};
    for (const ChainDraws& chain : request.chains) {
      std::vector<std::pair<int64_t, double>> draws;
      int64_t position = 0;
      for (const Segment& segment : chain.segments) {
        const bool bad = corrupt.contains(segment.object.name);
        if (bad) result.corrupt_objects.push_back(segment.object.name);
        for (int64_t i = 0; i < segment.num_draws(); ++i, ++position) {
          const int64_t newer = chain.skip_draws + chain.num_draws - 1 - position;
          const bool chosen =
              position >= chain.skip_draws && newer >= 0 && newer % std::max<int64_t>(chain.every, 1) == 0;
          if (chosen && !bad) draws.emplace_back(segment.first_index + i, segment.weights[static_cast<size_t>(i)]);
        }
      }
      if (request.flatness) {  // told by the draw it is of
        result.flatness.push_back({.chain = chain.chain, .fisher_trace = static_cast<double>(draws.back().first)});
        continue;
      }
      for (const DrawKind kind : request.kinds) {
        const auto* classes = std::get_if<Classes>(&request.plan->targets);
        if (classes == nullptr) {
          const std::vector<float>* targets =
              request.per_draw_scores ? &numbers.at(request.rows->dataset.name) : nullptr;
          result.partials.push_back(SumNumberDraws(chain.chain, kind, draws, RowsOf(request), probabilities_, targets));
          if (request.members)
            result.partials.back().members = MembersOf(chain.chain, kind, draws, RowsOf(request), 0, probabilities_);
          continue;
        }
        const std::vector<int32_t>* of = request.per_draw_scores ? &labels.at(request.rows->dataset.name) : nullptr;
        const Probabilities probabilities = ProbabilitiesOf(request);
        result.partials.push_back(
            SumDraws(chain.chain, kind, draws, RowsOf(request), classes->count, probabilities, of));
        if (!request.members) continue;
        result.partials.back().members =
            MembersOf(chain.chain, kind, draws, RowsOf(request), classes->count, probabilities);
      }
    }
    if (request.gradients) AddGradients(&result);
    return result;
  }

  Executor* const executor_;
  const Probabilities probabilities_;
  std::map<std::string, int32_t> in_flight_;
  std::map<uint64_t, Open> open_;
};

// `draws_of_chain` draws of each chain, in segments of one draw called "CHAIN/INDEX"; inputs are one number per row.
class FakeDrawCatalog final : public DrawCatalog {
 public:
  FakeDrawCatalog(Executor* executor, const std::vector<int64_t>& draws_of_chain, const Targets& targets)
      : executor_(executor) {
    auto plan = std::make_shared<PredictPlan>();
    plan->job = "job-aaaaaa";
    plan->model.kind = BuiltinModel{"softmax_regression", {}};
    plan->input_shape = {1};
    plan->targets = targets;
    pinned.plan = plan;
    pinned.version = 3;
    pinned.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
    for (size_t c = 0; c < draws_of_chain.size(); ++c) {
      ChainDraws chain{.chain = {plan->job, static_cast<int32_t>(c)}, .segments = {}, .num_draws = draws_of_chain[c]};
      for (int64_t i = 0; i < draws_of_chain[c]; ++i) {
        Segment segment;
        segment.first_index = i;
        segment.steps = {i + 1};
        segment.weights = {1};
        segment.kinds = pinned.kinds;
        segment.object.name = absl::StrCat(c, "/", i);
        chain.segments.push_back(segment);
      }
      pinned.chains.push_back(chain);
      pinned.draws_in_version += draws_of_chain[c];
    }
  }

  PinnedDraws pinned;
  absl::Status pin_status;
  bool answers = true;
  std::map<std::string, Dataset> datasets;
  std::set<std::string> corrupt;

  std::set<int64_t> versions = {3};
  int looked_up = 0;  // versions, by number

  void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) override {
    if (!answers) return held_.push_back(std::move(done));
    if (query.version > 0 && query.pinned == nullptr && !versions.contains(query.version)) {
      return executor_->Schedule([done] { done(absl::NotFoundError("no such version")); });
    }
    executor_->Schedule([this, done] { pin_status.ok() ? done(pinned) : done(pin_status); });
  }
  void FindVersion(const std::string& job, int64_t number,
                   std::function<void(absl::StatusOr<std::shared_ptr<const Version>>)> done) override {
    ++looked_up;
    absl::StatusOr<std::shared_ptr<const Version>> found = absl::NotFoundError("no such version");
    if (versions.contains(number)) found = std::make_shared<const Version>(Version{.job = job, .number = number});
    executor_->Schedule([done, found] { done(found); });
  }
  // Answers the requests that were held back.
  void AnswerHeld() {
    for (const auto& done : std::exchange(held_, {})) executor_->Schedule([this, done] { done(pinned); });
  }
  absl::StatusOr<Dataset> GetDataset(const std::string&, const std::string& name) override {
    if (!datasets.contains(name)) return absl::NotFoundError("no data set " + name);
    return datasets.at(name);
  }
  void MarkCorrupt(const std::string&, const std::string& object) override { corrupt.insert(object); }

 private:
  std::vector<std::function<void(absl::StatusOr<PinnedDraws>)>> held_;
  Executor* const executor_;
};

// Rows 0..n-1 as inputs of shape [n, 1].
inline std::shared_ptr<InputTensor> NumberedRows(int64_t n) {
  auto inputs = std::make_shared<InputTensor>();
  inputs->shape = {n, 1};
  for (int64_t row = 0; row < n; ++row) {
    const float value = static_cast<float>(row);
    inputs->bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return inputs;
}

}  // namespace chainfleet::testing
