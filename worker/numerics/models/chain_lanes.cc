#include "worker/numerics/models/chain_lanes.h"

#include <algorithm>
#include <span>
#include <utility>

namespace chainfleet {
namespace {

// Beyond these sizes the work of an operator outweighs its calls, and products of many matrices are slower than one.
constexpr int64_t kMostParameters = 4096, kMostValues = 4096;

// Chains are dealt out to workers in turn: this fills the lanes of every worker if there are 1, 2, 4 or 8 of them.
int64_t LaneOf(int32_t chain) { return (chain + chain / kChainLanes) % kChainLanes; }

class LanesPotential final : public Potential {
 public:
  LanesPotential(std::unique_ptr<Potential> potential, std::shared_ptr<const std::vector<int32_t>> chains)
      : potential_(std::move(potential)),
        chains_(std::move(chains)),
        theta_(potential_->layout(), Device()),
        gradient_(potential_->layout(), Device()) {}

  const std::shared_ptr<const Layout>& layout() const override { return potential_->layout(); }
  int64_t num_examples() const override { return potential_->num_examples(); }
  double prior_precision() const override { return potential_->prior_precision(); }
  std::vector<double> PriorPrecisions() const override { return potential_->PriorPrecisions(); }
  const std::vector<ParameterShape>& statistics() const override { return potential_->statistics(); }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    Place(theta, batch);
    potential_->Evaluate(theta_, placed_, &gradient_, Room(&energy_, 1));
    TakeBack(energy_, 1, energy);
    TakeBack(gradient);
  }

  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    Place(theta, batch);
    const int64_t n = batch.size;
    if (!potential_->EvaluateWithNorms(theta_, placed_, &gradient_, Room(&energy_, 1), Room(&of_examples_, n)))
      return false;
    TakeBack(energy_, 1, energy);
    TakeBack(of_examples_, n, squared_norms);
    TakeBack(gradient);
    return true;
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    Place(theta, batch);
    potential_->Losses(theta_, placed_, Room(&of_examples_, batch.size));
    TakeBack(of_examples_, batch.size, losses);
  }

  // The rest computes each row alone.
  void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) override {
    potential_->LogPrior(theta, prior_precisions, log_prior);
  }
  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    return potential_->AddCurvature(theta, slices);
  }
  std::vector<std::vector<float>> DrawStatistics(const ThetaArena& theta, int64_t first, int64_t count) override {
    return potential_->DrawStatistics(theta, first, count);
  }

 private:
  // Fills `place_of_` and `row_at_`.
  void Assign(int64_t rows) {
    const bool known = rows == std::ssize(*chains_);
    std::vector<int64_t> calls_of(kChainLanes, 0);
    place_of_.clear();
    int64_t calls = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t lane = known ? LaneOf((*chains_)[static_cast<size_t>(row)]) : 0;
      const int64_t call = calls_of[static_cast<size_t>(lane)]++;
      place_of_.push_back(call * kChainLanes + lane);
      calls = std::max(calls, call + 1);
    }
    row_at_.assign(static_cast<size_t>(calls * kChainLanes), -1);
    for (int64_t row = 0; row < rows; ++row) row_at_[static_cast<size_t>(place_of_[row])] = row;
    for (size_t first = 0; first < row_at_.size(); first += kChainLanes) {
      const auto call = std::span(row_at_).subspan(first, kChainLanes);
      const int64_t some = *std::ranges::max_element(call);
      std::ranges::replace(call, int64_t{-1}, some);
    }
  }

  void Place(const ThetaArena& theta, const BatchRows& batch) {
    Assign(theta.rows());
    for (ThetaArena* arena : {&theta_, &gradient_}) {
      arena->Truncate(std::ssize(row_at_));
      while (arena->rows() < std::ssize(row_at_)) arena->AddRow();
    }
    for (int64_t place = 0; place < theta_.rows(); ++place) {
      std::copy_n(theta.row(row_at_[static_cast<size_t>(place)]), theta.row_stride(), theta_.row(place));
    }
    placed_ = batch;
    placed_.ids = Spread(batch.ids, batch.size, &ids_);
    placed_.keys = Spread(batch.keys, 1, &keys_);
    placed_.prior_precisions = Spread(batch.prior_precisions, 1, &precisions_);
  }

  // Copies `size` values of each row to its places.
  template <typename T>
  const T* Spread(const T* of_rows, int64_t size, std::vector<T>* of_places) const {
    if (of_rows == nullptr) return nullptr;
    of_places->clear();
    for (const int64_t row : row_at_) {
      of_places->insert(of_places->end(), of_rows + row * size, of_rows + (row + 1) * size);
    }
    return of_places->data();
  }

  double* Room(std::vector<double>* values, int64_t size) const {
    values->resize(row_at_.size() * static_cast<size_t>(size));
    return values->data();
  }

  void TakeBack(const std::vector<double>& of_places, int64_t size, double* of_rows) const {
    for (size_t row = 0; row < place_of_.size(); ++row) {
      std::copy_n(of_places.data() + place_of_[row] * size, size, of_rows + static_cast<int64_t>(row) * size);
    }
  }
  void TakeBack(ThetaArena* gradient) const {
    for (int64_t row = 0; row < gradient->rows(); ++row) {
      std::copy_n(gradient_.row(place_of_[static_cast<size_t>(row)]), gradient->row_stride(), gradient->row(row));
    }
  }

  const std::unique_ptr<Potential> potential_;
  const std::shared_ptr<const std::vector<int32_t>> chains_;
  std::vector<int64_t> place_of_, row_at_;  // the place of each row, and the row at each place
  ThetaArena theta_, gradient_;             // a row for each place
  BatchRows placed_;
  std::vector<int64_t> ids_;
  std::vector<StepKey> keys_;
  std::vector<double> precisions_, energy_, of_examples_;
};

}  // namespace

bool TakesLanes(const StoredNetwork& network, const JobSpec& spec) {
  // That sampler's norms take one example at a time.
  if (!spec.vmap || std::holds_alternative<GradientUncertaintySpec>(spec.sampler.kind)) return false;
  const int64_t values = spec.batch_size * network.shape().largest_output;
  return values > 0 && values <= kMostValues && NumParameters(network.shape().parameters) <= kMostParameters &&
         network.TakesChains();
}

std::unique_ptr<Potential> WithLanes(std::unique_ptr<Potential> potential,
                                     std::shared_ptr<const std::vector<int32_t>> chains) {
  return std::make_unique<LanesPotential>(std::move(potential), std::move(chains));
}

}  // namespace chainfleet
