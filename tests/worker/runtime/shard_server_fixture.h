// A ShardServer over a fake predictor, with segments whose draws tell their steps.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_coordinator.h"
#include "tests/support/worker_fixture.h"
#include "worker/numerics/predict/device_rows.h"
#include "worker/runtime/session/progress_upload.h"
#include "worker/runtime/shard_server.h"

namespace chainfleet {

// The trace is the first coordinate of the newest draw of theta, the line that of theta_a.
class ThreePartFlatness final : public FlatnessRun {
 public:
  ThreePartFlatness(const DrawStack& theta, const DrawStack& theta_a) {
    flatness_.chain = theta.chain;
    flatness_.fisher_trace = (*theta.theta.back())[0];
    if (!theta_a.theta.empty()) flatness_.anchor_line = {(*theta_a.theta.back())[0]};
  }
  absl::StatusOr<bool> Advance() override { return ++parts_ == 3; }
  const Flatness& result() const override { return flatness_; }

 private:
  Flatness flatness_;
  int parts_ = 0;
};

// Takes a millisecond for each of kDraws draws, or `draw` for each of `draws`.
class SlowRun final : public PredictionRun {
 public:
  static constexpr int kDraws = 24;
  explicit SlowRun(std::vector<PartialPrediction> partials, FakeClock* clock, int draws = kDraws,
                   absl::Duration draw = absl::Milliseconds(1))
      : partials_(std::move(partials)), clock_(clock), left_(draws), draw_(draw) {}
  absl::StatusOr<bool> Advance(const Pause& pause) override {
    for (bool paused = false; left_ > 0 && !paused; paused = pause()) {
      clock_->Advance(draw_);
      --left_;
      if (const auto then = std::exchange(after_draw, nullptr)) then();
    }
    return left_ == 0;
  }
  std::vector<PartialPrediction> Take() override { return std::move(partials_); }

  inline static std::function<void()> after_draw = nullptr;  // called once, after the next draw of any run

 private:
  std::vector<PartialPrediction> partials_;
  FakeClock* const clock_;
  int left_;
  const absl::Duration draw_;
};

// The "probability" of its only row is the sum of the first coordinates, which identifies the averaged draws.
class FakePredictor final : public Predictor {
 public:
  explicit FakePredictor(FakeClock* clock) : clock_(clock) {}
  absl::StatusOr<std::unique_ptr<PredictionRun>> Start(std::vector<DrawStack> stacks, const InputTensor&, bool members,
                                                       std::shared_ptr<DeviceRows>* kept) override {
    if (members) members_asked = true;
    rows_made.push_back(Make(kept));
    std::vector<PartialPrediction> partials;
    for (const DrawStack& draws : stacks) {
      ids_asked.push_back(draws.ids);
      PartialPrediction& partial = partials.emplace_back();
      partial.chain = draws.chain;
      partial.kind = draws.kind;
      partial.num_draws = static_cast<int64_t>(draws.theta.size());
      partial.numbers().sum_wm = {0};
      for (const auto& theta : draws.theta) partial.numbers().sum_wm[0] += (*theta)[0];
    }
    return std::make_unique<SlowRun>(std::move(partials), clock_, 4, absl::Milliseconds(25));
  }
  // The first coordinates of the draws.
  absl::Status AddGradients(const std::vector<DrawStack>& stacks, const InputTensor&,
                            std::vector<PartialPrediction>* sums) const override {
    for (size_t i = 0; i < stacks.size(); ++i) {
      for (const auto& theta : stacks[i].theta) (*sums)[i].sum_wg.push_back((*theta)[0]);
    }
    return absl::OkStatus();
  }
  // The mean is the severity of the corruption.
  absl::StatusOr<std::unique_ptr<PredictionRun>> StartRows(std::vector<DrawStack> stacks, const ResidentDataset&,
                                                           int64_t, int64_t, bool, bool, const Corruption* corruption,
                                                           std::shared_ptr<DeviceRows>* kept) override {
    rows_made.push_back(Make(kept));
    std::vector<PartialPrediction> partials(stacks.size());
    for (PartialPrediction& partial : partials)
      partial.numbers().sum_wm = {corruption == nullptr ? 0.0 : corruption->severity};
    return std::make_unique<SlowRun>(std::move(partials), clock_);
  }
  absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset>, int64_t,
                                                             int64_t) override {
    if (plan.radius <= 0) return absl::InvalidArgumentError("radius");
    return std::make_unique<ThreePartFlatness>(theta, theta_a);
  }

  inline static bool members_asked = false;
  inline static std::vector<std::vector<DrawId>> ids_asked;        // ids of each stack
  inline static std::vector<std::weak_ptr<DeviceRows>> rows_made;  // one pointer for each call

 private:
  static std::shared_ptr<DeviceRows> Make(std::shared_ptr<DeviceRows>* kept) {
    if (*kept == nullptr) *kept = std::make_shared<DeviceRows>();
    return *kept;
  }

  FakeClock* const clock_;
};

class ShardServerTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCoordinator server_{&executor_};
  CountingObserver observer_;
  ObjectFetcher fetcher_{&server_, &executor_, RngKey{1}};
  InputCache inputs_{&fetcher_, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }}};
  DrawCache draws_{&fetcher_, &executor_};
  ShardServer shards_{[this](auto, auto) -> absl::StatusOr<std::unique_ptr<Predictor>> {
                        return std::make_unique<FakePredictor>(&clock_);
                      },
                      &draws_,
                      &inputs_,
                      &executor_,
                      &clock_,
                      &observer_};
  std::vector<absl::StatusOr<ShardResult>> results_;

  // Two segments of two draws, steps 1..4; a draw's first coordinate is its step, theta_a's 10 times as much.
  ChainDraws Chain(int32_t index, int64_t skip_draws = 0, int64_t num_draws = 4) {
    ChainDraws chain{{"job-a", index}, {}, skip_draws, num_draws};
    DigestHex parent = FirstParentDigest();
    for (int64_t first = 0; first < 4; first += 2) {
      ProgressUpload upload;
      upload.commit.resume_point.step = first + 2;
      for (int64_t i = first; i < first + 2; ++i) {
        const float step = static_cast<float>(i + 1);
        upload.draws.push_back({i + 1, 1, {{step, 0}, {10 * step, 0}}});
      }
      const ProgressUpload encoded = EncodeUpload(
          {"store", {chain.chain, 1}, {DrawKind::kTheta, DrawKind::kThetaA}, {{"theta", {2}, 0, 1}}, first, parent},
          upload);
      chain.segments.push_back(*encoded.commit.segment);
      server_.blobs[chain.segments.back().object.name] = *encoded.segment_bytes;
      parent = chain.segments.back().digest;
    }
    return chain;
  }
  // A request with enough rows that each chain and kind is a separate part.
  ShardRequest Request(uint64_t id, std::vector<ChainDraws> chains, int64_t rows = ShardServer::kUnitPasses,
                       const std::string& tenant = "") {
    ShardRequest request;
    request.shard_id = id;
    auto plan = std::make_shared<PredictPlan>();
    plan->job = "job-a";
    plan->tenant = tenant;
    request.plan = plan;
    request.chains = std::move(chains);
    request.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
    request.inputs =
        std::make_shared<InputTensor>(InputTensor{.type = InputType::kFloat32, .shape = {rows}, .bytes = {}});
    return request;
  }
  void Submit(ShardRequest request) {
    shards_.Submit(std::move(request), [this](auto result) { results_.push_back(std::move(result)); });
  }
  // Returns the answered shards in order.
  std::vector<uint64_t> Served() {
    executor_.RunUntilIdle();
    std::vector<uint64_t> ids;
    for (const auto& result : results_) ids.push_back(result.ok() ? result->shard_id : 0);
    return ids;
  }
  void RunAll() {
    do {
      executor_.RunUntilIdle();
    } while (shards_.ServeOne());
    executor_.RunUntilIdle();
  }
};

}  // namespace chainfleet
