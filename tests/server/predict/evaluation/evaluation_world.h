// An Evaluator over two fake workers, with stored labels and targets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/draw_codec/safetensors.h"
#include "gtest/gtest.h"
#include "server/predict/evaluation/evaluation.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet::testing {

struct EvaluationWorld {
  explicit EvaluationWorld(const Probabilities& probabilities, std::optional<uint64_t> seed = std::nullopt,
                           const std::vector<int64_t>& draws_of_chain = {2, 1}, const Targets& targets = Classes{2},
                           int64_t max_row_bytes = Evaluator::kMaxRowBytes)
      : executor(&clock, seed),
        catalog(&executor, draws_of_chain, targets),
        port(&executor, probabilities),
        queue(&clock, &executor, &port),
        evaluator(&executor, &catalog, &blobs, &queue, max_row_bytes) {
    port.workers = {{"a", FakeShardPort::Mood::kAnswers}, {"b", FakeShardPort::Mood::kAnswers}};
  }

  // One object for each part of the labels.
  void AddDataset(const std::string& name, const std::vector<std::vector<int32_t>>& parts) {
    Dataset dataset;
    dataset.name = name;
    dataset.input_shape = {1};
    dataset.targets = Classes{2};
    for (const std::vector<int32_t>& part : parts) {
      const int64_t count = static_cast<int64_t>(part.size());
      const std::string object = name + std::to_string(dataset.num_rows);
      ASSERT_TRUE(
          blobs
              .Put(object,
                   WriteSafetensors(
                       {{"labels", TensorType::kInt32, {count}, reinterpret_cast<const char*>(part.data()), 4 * count}},
                       {}))
              .ok());
      dataset.shards.push_back({dataset.num_rows, count, {object, 0, ""}});
      dataset.num_rows += count;
      port.labels[name].insert(port.labels[name].end(), part.begin(), part.end());
    }
    catalog.datasets[name] = dataset;
  }

  // Adds a data set with one pixel in each fake row; the network takes images.
  void AddImages(const std::string& name, const std::vector<int32_t>& labels) {
    AddDataset(name, {labels});
    auto plan = std::make_shared<PredictPlan>(*catalog.pinned.plan);
    plan->input_shape = catalog.datasets[name].input_shape = {1, 8, 8};
    catalog.pinned.plan = plan;
  }

  void AddNumbers(const std::string& name, const std::vector<float>& targets) {
    const int64_t count = static_cast<int64_t>(targets.size());
    Dataset dataset{.name = name, .input_shape = {1}, .num_rows = count, .targets = Numbers()};
    dataset.shards = {{0, count, {name, 0, ""}}};
    const auto* data = reinterpret_cast<const char*>(targets.data());
    ASSERT_TRUE(
        blobs.Put(name, WriteSafetensors({{"targets", TensorType::kFloat32, {count}, data, 4 * count}}, {})).ok());
    port.numbers[name] = targets;
    catalog.datasets[name] = dataset;
  }

  absl::StatusOr<Evaluation> Evaluate(const std::string& dataset, const std::string& ood = "",
                                      std::vector<DrawKind> kinds = {}, const std::string& calibration = "") {
    return Evaluate(EvaluateQuery{.draws = {.job = "job"},
                                  .kinds = std::move(kinds),
                                  .dataset = dataset,
                                  .ood_dataset = ood,
                                  .calibration_dataset = calibration});
  }
  absl::StatusOr<Evaluation> Evaluate(EvaluateQuery query) {
    std::optional<absl::StatusOr<Evaluation>> result;
    cancel = evaluator.Evaluate(
        std::move(query), absl::Seconds(600), [this](const EvaluationProgress& p) { progress.push_back(p); },
        [&](absl::StatusOr<Evaluation> r) { result = std::move(r); });
    executor.RunFor(absl::Seconds(601));
    return result ? *result : absl::InternalError("never answered");
  }

  FakeClock clock;
  ManualExecutor executor;
  FakeDrawCatalog catalog;
  FakeShardPort port;
  MemoryBlobStore blobs;
  ShardQueue queue;
  Evaluator evaluator;
  std::vector<EvaluationProgress> progress;
  std::function<void()> cancel;
};

inline std::vector<std::string> Names(const Evaluation& evaluation) {
  std::vector<std::string> names;
  for (const Scores& scores : evaluation.scores) names.push_back(scores.what);
  return names;
}

}  // namespace chainfleet::testing
