#include "worker/numerics/predictor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/dataset/corrupted_images.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/device.h"
#include "worker/numerics/flatness_run.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/prediction_sums.h"
#include "worker/numerics/served_model.h"
#include "worker/numerics/torch_errors.h"

namespace chainfleet {
namespace {

// On the CPU whatever the device: a prediction is forward only, and its bits are promised. Each image's numbers are
// computed alone (models/block_network.h), so cutting rows into blocks and requests changes no bit.
class BlockPredictor final : public Predictor {
 public:
  explicit BlockPredictor(std::shared_ptr<const ServedModel> model)
      : model_(std::move(model)), plan_(model_->plan), likelihood_(model_->likelihood.get()) {}

  absl::StatusOr<std::vector<PartialPrediction>> Predict(const std::vector<DrawStack>& stacks,
                                                         const InputTensor& inputs, bool members) override {
    const std::vector<int64_t>& shape = inputs.shape;
    if (shape.empty() ||
        !std::equal(shape.begin() + 1, shape.end(), plan_->input_shape.begin(), plan_->input_shape.end())) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: must be [n, ", absl::StrJoin(plan_->input_shape, ", "),
                                                     "] for job ", plan_->job, ", are [", absl::StrJoin(shape, ", "),
                                                     "]"));
    }
    const int64_t item = inputs.type == InputType::kUint8 ? 1 : sizeof(float);
    const int64_t size = shape[0] * NumValues(plan_->input_shape) * item;
    if (shape[0] < 0 || static_cast<int64_t>(inputs.bytes.size()) != size) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: [", absl::StrJoin(shape, ", "), "] of ", item,
                                                     "-byte values takes ", size, " bytes, got ", inputs.bytes.size()));
    }
    return Run(stacks, inputs.type, inputs.bytes, 0, shape[0], nullptr, members, nullptr);
  }

  absl::StatusOr<std::vector<PartialPrediction>> PredictRows(const std::vector<DrawStack>& stacks,
                                                             const ResidentDataset& data, int64_t first_row,
                                                             int64_t num_rows, bool per_draw_scores, bool members,
                                                             const Corruption* corruption) override {
    const Dataset& description = data.description();
    CHAINFLEET_RETURN_IF_ERROR(model_->CheckRows(description, first_row, num_rows));
    if (per_draw_scores) CHAINFLEET_RETURN_IF_ERROR(model_->CheckTargets(description));
    std::optional<Corrupter> corrupter;
    if (corruption != nullptr) {
      CHAINFLEET_ASSIGN_OR_RETURN(corrupter, Corrupter::Create(*corruption, description.input_shape));
    }
    const std::vector<float> targets = per_draw_scores ? data.TargetNumbers() : std::vector<float>();
    return Run(stacks, description.input_type, data.input_bytes(), first_row, num_rows,
               per_draw_scores ? targets.data() : nullptr, members, corrupter ? &*corrupter : nullptr);
  }

  absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset> data,
                                                             int64_t first_row, int64_t num_rows) override {
    return MakeFlatnessRun(model_, plan, theta, theta_a, std::move(data), first_row, num_rows);
  }

 private:
  // Rows [first, first + n) of `bytes`; `targets` of row 0 on, or null; as `corrupter` changes them, or null.
  absl::StatusOr<std::vector<PartialPrediction>> Run(const std::vector<DrawStack>& stacks, InputType type,
                                                     const std::string& bytes, int64_t first, int64_t n,
                                                     const float* targets, bool members, const Corrupter* corrupter) {
    for (const DrawStack& draws : stacks) CHAINFLEET_RETURN_IF_ERROR(model_->CheckDraws(draws));
    const InputRows rows(type, bytes.data(), plan_->input_shape, plan_->normalisation);
    const InputRows stored(type, bytes.data(), plan_->input_shape, {});
    const auto read = [&](int64_t start, int64_t count, Thread* thread) {
      if (corrupter == nullptr) {
        thread->network->Read(rows, first + start, count);
      } else {
        ReadCorrupted(*corrupter, stored, first + start, count, thread);
      }
    };
    const auto run = [&]() -> absl::StatusOr<std::vector<PartialPrediction>> {
      std::vector<PartialPrediction> sums;
      for (const DrawStack& draws : stacks) sums.push_back(EmptySums(draws, n));
      std::vector<PredictionSums> adders;
      for (size_t i = 0; i < stacks.size(); ++i) {
        adders.emplace_back(likelihood_, stacks[i].weights, targets != nullptr, members, &sums[i]);
      }
      if (stacks.empty()) return sums;
      while (static_cast<int64_t>(threads_.size()) < at::get_num_threads()) {
        threads_.push_back({model_->make_block(), LaneBuffer<float>(adders[0].scratch_size()), {}});
      }
      ShareOut(n, stacks.size(), read, [&](int64_t start, int64_t count, size_t i, Thread* thread) {
        AddBlock(stacks[i], start, count, targets == nullptr ? nullptr : targets + first + start, thread, &adders[i]);
      });
      for (PredictionSums& adder : adders) adder.Finish();
      return sums;
    };
    return CatchTorch(absl::StrCat("a prediction of ", n, " rows"), run);
  }

  PartialPrediction EmptySums(const DrawStack& draws, int64_t n) const {
    PartialPrediction sums;
    sums.chain = draws.chain;
    sums.kind = draws.kind;
    sums.num_draws = static_cast<int64_t>(draws.theta.size());
    sums.num_rows = n;
    sums.num_classes = plan_->num_classes;
    return sums;
  }

  struct Thread {
    std::unique_ptr<BlockNetwork> network;
    LaneBuffer<float> scratch;
    std::vector<float> corrupted;  // [block of rows, row_size], before normalisation
  };

  // Every stack over every block of n rows, once. They go to whoever is free: a thread that is held up by what else the
  // machine does holds up no other. Threads that share a block each read it.
  template <typename Read, typename Add>
  void ShareOut(int64_t n, size_t num_stacks, Read read, Add add) {
    const int64_t blocks = (n + kMaxBlockRows - 1) / kMaxBlockRows, stacks = static_cast<int64_t>(num_stacks);
    std::atomic<int64_t> next = 0;
    RunSingleThreaded(at::get_num_threads(), [&](int64_t t) {
      Thread* const thread = &threads_[static_cast<size_t>(t)];
      int64_t block_read = -1;
      for (int64_t part; (part = next++) < blocks * stacks;) {
        const int64_t block = part / stacks, start = block * kMaxBlockRows, count = std::min(n - start, kMaxBlockRows);
        if (block != std::exchange(block_read, block)) read(start, count, thread);
        add(start, count, static_cast<size_t>(part % stacks), thread);
      }
    });
  }

  // Only a block's rows are changed at a time: a changed data set is never kept.
  void ReadCorrupted(const Corrupter& corrupter, const InputRows& stored, int64_t first, int64_t count,
                     Thread* thread) const {
    thread->corrupted.resize(count * stored.row_size());
    for (int64_t i = 0; i < count; ++i) {
      float* image = thread->corrupted.data() + i * stored.row_size();
      stored.Read(first + i, image);
      corrupter.Change(first + i, image);
    }
    const auto* bytes = reinterpret_cast<const char*>(thread->corrupted.data());
    thread->network->Read(InputRows(InputType::kFloat32, bytes, plan_->input_shape, plan_->normalisation), 0, count);
  }

  // All draws over the rows [start, start + count) that the thread has read.
  void AddBlock(const DrawStack& draws, int64_t start, int64_t count, const float* targets, Thread* thread,
                PredictionSums* sums) const {
    const auto num_draws = static_cast<int64_t>(draws.theta.size());
    for (int64_t s = num_draws - 1; s >= 0; --s) {
      const float* draw = draws.theta[static_cast<size_t>(s)]->data();
      const float* outputs = thread->network->Outputs(draw);
      for (int64_t i = 0; i < count; i += kLanes) {
        LaneExamples examples{.outputs = outputs + i * likelihood_->num_outputs()};
        examples.targets = targets == nullptr ? nullptr : targets + i;
        examples.count = std::min(kLanes, count - i);
        if (likelihood_->has_log_variance()) examples.log_variance = draw[model_->log_variance_at()];
        sums->Add(examples, start + i, s, thread->scratch.data());
      }
      sums->EndDraw(start, count, s);
    }
  }

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<const PredictPlan> plan_;
  const Likelihood* const likelihood_;
  std::vector<Thread> threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(std::shared_ptr<const PredictPlan> plan,
                                                             const std::string& device,
                                                             std::shared_ptr<const std::string> module) {
  CHAINFLEET_RETURN_IF_ERROR(ParseDevice(device).status());
  return CatchTorch("a predictor", [&]() -> absl::StatusOr<std::unique_ptr<Predictor>> {
    CHAINFLEET_ASSIGN_OR_RETURN(auto model, MakeServedModel(std::move(plan), module.get()));
    return std::make_unique<BlockPredictor>(std::move(model));
  });
}

}  // namespace chainfleet
