#include "worker/numerics/predictor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/device.h"
#include "worker/numerics/models/block_classifier.h"
#include "worker/numerics/models/scripted_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/torch_errors.h"

namespace chainfleet {
namespace {

// On the CPU whatever the device: a prediction is forward only, and its bits are promised. Each image's numbers are
// computed alone (models/block_classifier.h), so cutting rows into blocks and requests changes no bit.
class NetworkPredictor final : public Predictor {
 public:
  NetworkPredictor(std::shared_ptr<const PredictPlan> plan, NetworkShape network,
                   std::shared_ptr<const ScriptedNetwork> script)
      : plan_(std::move(plan)),
        network_(std::move(network)),
        script_(std::move(script)),
        draw_size_(NumParameters(network_.statistics.empty() ? network_.parameters : network_.statistics)) {}

  absl::StatusOr<PartialPrediction> Predict(const DrawStack& draws, const InputTensor& inputs) override {
    const std::vector<int64_t>& shape = inputs.shape;
    if (shape.empty() ||
        !std::equal(shape.begin() + 1, shape.end(), plan_->input_shape.begin(), plan_->input_shape.end())) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: must be [n, ", absl::StrJoin(plan_->input_shape, ", "),
                                                     "] for job ", plan_->job, ", are [", absl::StrJoin(shape, ", "),
                                                     "]"));
    }
    const int64_t item = inputs.type == InputType::kUint8 ? 1 : sizeof(float);
    const int64_t size = shape[0] * NumValues(network_.input_shape) * item;
    if (shape[0] < 0 || static_cast<int64_t>(inputs.bytes.size()) != size) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: [", absl::StrJoin(shape, ", "), "] of ", item,
                                                     "-byte values takes ", size, " bytes, got ", inputs.bytes.size()));
    }
    return Run(draws, inputs.type, inputs.bytes, 0, shape[0], nullptr);
  }

  absl::StatusOr<PartialPrediction> PredictRows(const DrawStack& draws, const ResidentDataset& data, int64_t first_row,
                                                int64_t num_rows, bool per_draw_scores) override {
    const Dataset& description = data.description();
    if (description.input_shape != plan_->input_shape) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", description.name, ": inputs must be [",
                                                     absl::StrJoin(plan_->input_shape, ", "), "] for job ", plan_->job,
                                                     ", are [", absl::StrJoin(description.input_shape, ", "), "]"));
    }
    if (first_row < 0 || num_rows < 0 || first_row > description.num_rows - num_rows) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", description.name, " has ", description.num_rows,
                                                     " rows, asked for ", num_rows, " from ", first_row));
    }
    if (per_draw_scores && description.num_classes > plan_->num_classes) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", description.name, " has ", description.num_classes,
                                                     " classes, job ", plan_->job, " knows ", plan_->num_classes));
    }
    return Run(draws, description.input_type, data.input_bytes(), first_row, num_rows,
               per_draw_scores ? data.labels().data() : nullptr);
  }

 private:
  absl::Status CheckDraws(const DrawStack& draws) const {
    if (draws.weights.size() != draws.theta.size()) {
      return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": ", draws.theta.size(),
                                                     " draws, ", draws.weights.size(), " weights"));
    }
    for (const auto& theta : draws.theta) {
      if (static_cast<int64_t>(theta->size()) != draw_size_) {
        return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": a draw has ", theta->size(),
                                                       " parameters, the model of job ", plan_->job, " has ",
                                                       draw_size_));
      }
    }
    return absl::OkStatus();
  }

  // Rows [first, first + n) of `bytes`; `labels` of row 0 on, or null.
  absl::StatusOr<PartialPrediction> Run(const DrawStack& draws, InputType type, const std::string& bytes, int64_t first,
                                        int64_t n, const int32_t* labels) {
    CHAINFLEET_RETURN_IF_ERROR(CheckDraws(draws));
    PartialPrediction sums;
    sums.chain = draws.chain;
    sums.kind = draws.kind;
    sums.num_draws = static_cast<int64_t>(draws.theta.size());
    sums.num_rows = n;
    sums.num_classes = plan_->num_classes;
    for (const double w : draws.weights) {
      sums.sum_w += w;
      sums.sum_w2 += w * w;
    }
    const InputRows rows(type, bytes.data(), plan_->input_shape, plan_->normalisation);
    return CatchTorch(absl::StrCat("a prediction of ", n, " rows"), [&]() -> absl::StatusOr<PartialPrediction> {
      AddBlocks(draws, rows, first, labels, &sums);
      return std::move(sums);
    });
  }

  void AddBlocks(const DrawStack& draws, const InputRows& rows, int64_t first, const int32_t* labels,
                 PartialPrediction* sums) {
    const int64_t n = sums->num_rows, classes = sums->num_classes;
    sums->sum_wp.assign(n * classes, 0);
    sums->sum_wp2.assign(n * classes, 0);
    sums->sum_wh.assign(n, 0);
    sums->votes.assign(n * classes, 0);
    Scores scores;
    if (labels != nullptr) {
      scores.log_likelihood.resize(sums->num_draws * n);
      scores.hit.resize(sums->num_draws * n);
    }
    while (static_cast<int64_t>(classifiers_.size()) < at::get_num_threads()) {
      classifiers_.push_back(MakeBlockClassifier(network_, script_));
    }
    RunSingleThreaded((n + kMaxBlockImages - 1) / kMaxBlockImages, [&](int64_t block) {
      AddBlock(draws, rows, first, block, labels, classifiers_[at::get_thread_num()].get(), sums, &scores);
    });
    if (labels != nullptr) SumScores(scores, sums->num_draws, n, sums);
  }

  struct Scores {
    std::vector<double> log_likelihood;  // [S, n]
    std::vector<uint8_t> hit;            // [S, n]
  };

  static void SumScores(const Scores& scores, int64_t num_draws, int64_t n, PartialPrediction* sums) {
    for (int64_t s = 0; s < num_draws; ++s) {
      const auto log_likelihood = scores.log_likelihood.begin() + s * n;
      const auto hit = scores.hit.begin() + s * n;
      sums->draw_log_likelihood.push_back(std::accumulate(log_likelihood, log_likelihood + n, 0.0));
      sums->draw_hits.push_back(std::accumulate(hit, hit + n, int64_t{0}));
    }
  }

  // All draws over the images of one block, which are read once.
  static void AddBlock(const DrawStack& draws, const InputRows& rows, int64_t first, int64_t block,
                       const int32_t* labels, BlockClassifier* classifier, PartialPrediction* sums, Scores* scores) {
    const int64_t n = sums->num_rows, classes = sums->num_classes;
    const int64_t start = block * kMaxBlockImages, images = std::min(n - start, kMaxBlockImages);
    classifier->Read(rows, first + start, images);
    for (size_t s = 0; s < draws.theta.size(); ++s) {
      const BlockScores& seen = classifier->Classify(draws.theta[s]->data());
      for (int64_t i = 0; i < images; ++i) {
        const int64_t row = start + i;
        const int64_t best = AddImage(seen.probability.data() + i * classes, draws.weights[s], row, sums);
        if (labels == nullptr) continue;
        const int32_t label = labels[first + row];
        scores->log_likelihood[s * n + row] =
            static_cast<double>(seen.logit[i * classes + label]) - seen.log_normaliser[i];
        scores->hit[s * n + row] = best == label;
      }
    }
  }

  // Adds the probabilities p[K] of one row under one draw; its largest class (the first of equals).
  static int64_t AddImage(const float* p, double w, int64_t row, PartialPrediction* sums) {
    const int64_t classes = sums->num_classes;
    int64_t best = 0;
    double entropy = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const double pk = p[k];
      if (pk > p[best]) best = k;
      if (pk != 0) entropy -= pk * std::log(pk);  // NaN stays NaN
      sums->sum_wp[row * classes + k] += w * pk;
      sums->sum_wp2[row * classes + k] += w * pk * pk;
    }
    sums->sum_wh[row] += w * entropy;
    sums->votes[row * classes + best] += w;
    return best;
  }

  const std::shared_ptr<const PredictPlan> plan_;
  const NetworkShape network_;
  const std::shared_ptr<const ScriptedNetwork> script_;        // of a model that is a module
  const int64_t draw_size_;                                    // parameters and statistics
  std::vector<std::unique_ptr<BlockClassifier>> classifiers_;  // one per thread
};

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(std::shared_ptr<const PredictPlan> plan,
                                                             const std::string& device,
                                                             std::shared_ptr<const std::string> module) {
  CHAINFLEET_RETURN_IF_ERROR(ParseDevice(device).status());
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape network, InferNetwork(plan->model, plan->input_shape, plan->num_classes));
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan->normalisation, plan->input_shape));
  return CatchTorch("a predictor", [&]() -> absl::StatusOr<std::unique_ptr<Predictor>> {
    CHAINFLEET_ASSIGN_OR_RETURN(auto script, ScriptOf(plan->model, module.get(), network, at::kCPU));
    if (script != nullptr) network = script->shape();
    return std::make_unique<NetworkPredictor>(std::move(plan), std::move(network), std::move(script));
  });
}

}  // namespace chainfleet
