// The potential U(theta) = -log prior - (N/n) sum over the batch of log likelihood, for the rows of an arena.
//
// Networks and analytic densities are both Potentials; exp(-U/T) is the sampled law. On a CPU the shape to follow is
// at::parallel_for over chains, each chain's whole forward and backward on one thread with single-threaded kernels: no
// bit then depends on C, threads or the row. A row with NaN or infinite values must not touch another row.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/rng_key.h"
#include "worker/numerics/arena/theta_arena.h"
#include "worker/numerics/kernels/minibatch_ids.h"
#include "worker/numerics/tensors/late.h"

namespace chainfleet {

// The examples that each row uses: ids of data-set rows, [C, n], on the host. Null and 0 for analytic potentials.
struct BatchRows {
  const int64_t* ids = nullptr;
  int64_t size = 0;               // n
  const StepKey* keys = nullptr;  // [C]: units drop out and images are augmented by these; null: neither
  // [C], in place of Potential::prior_precision(), which then is not read: chains of a sweep; null: the potential's.
  const double* prior_precisions = nullptr;
  bool dropout = true;              // false: units stay whatever the keys
  const BatchDraw* draw = nullptr;  // on a GPU, with ids null: each row's ids are drawn so by its key
  const int64_t* row(int64_t r) const { return ids + r * size; }
};

inline constexpr int64_t kStatisticsBatch = 128;

struct Curvature;  // worker/numerics/potentials/curvature.h

// The part that a row adds to its sum: examples [first, first + count) in stored order. Null sum: nothing.
struct CurvatureSlice {
  Curvature* sum = nullptr;
  int64_t first = 0, count = 0;
};

// Bound to a device and, for networks, a data set. Not thread-safe: one call at a time (buffers are kept between
// calls).
class Potential {
 public:
  virtual ~Potential() = default;

  virtual const std::shared_ptr<const Layout>& layout() const = 0;
  virtual int64_t num_examples() const = 0;  // N; 1 for analytic potentials

  // Precision of the Gaussian prior whose gradient, precision * theta, the caller adds to what Evaluate writes: the
  // fused update does so in the pass it makes anyway. 0: Evaluate's gradient is complete.
  virtual double prior_precision() const { return 0; }

  // energy[C] = U on the batch, prior included, as a host array of doubles; `gradient` (same rows and device as
  // `theta`, padding left zero) = grad U less prior_precision() * theta. Overwrites both. Non-finite values are data.
  virtual void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) = 0;

  // Evaluate, for whose energies the host need not wait.
  virtual Late<double> EvaluateLate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient) {
    std::vector<double> energy(theta.rows());
    Evaluate(theta, batch, gradient, energy.data());
    return energy;
  }

  // Evaluate, and squared_norms[C, n] = |X_i|^2 on the host, X_i the gradient of example i's -log likelihood: not
  // scaled, no prior. Per-example gradients are never stored. Returns false and does nothing if this potential cannot
  // compute them.
  virtual bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                                 double* squared_norms) {
    static_cast<void>(theta), static_cast<void>(batch), static_cast<void>(gradient), static_cast<void>(energy);
    static_cast<void>(squared_norms);
    return false;
  }

  // losses[C, n] = -log likelihood of each example, unscaled, on the host; forward only.
  virtual void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) = 0;

  // log_prior[C], up to a constant, on the host. `prior_precisions` as in BatchRows.
  virtual void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) = 0;

  // Adds to each row's sum, `slices` [C], the Gauss-Newton matrix of -log likelihood at its theta, units all in use; of
  // an analytic potential, whose only example it is, the Hessian. Returns false and does nothing if this potential
  // cannot compute the requested structure.
  virtual bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) {
    static_cast<void>(theta), static_cast<void>(slices);
    return false;
  }

  // The precision of each parameter tensor's Gaussian prior, stated by prior_precision() or not.
  virtual std::vector<double> PriorPrecisions() const {
    return std::vector<double>(layout()->spans().size(), prior_precision());
  }

  // The tensors that follow the parameters in a draw: means and variances of batch norm.
  virtual const std::vector<ParameterShape>& statistics() const {
    static const std::vector<ParameterShape> kNone;
    return kNone;
  }
  // The statistics of draws of rows [first, first + count) of theta, each a pure function of its row: one pass over all
  // data in stored order, by batches of kStatisticsBatch.
  virtual std::vector<std::vector<float>> DrawStatistics(const ThetaArena& theta, int64_t first, int64_t count) {
    static_cast<void>(theta), static_cast<void>(first);
    return std::vector<std::vector<float>>(static_cast<size_t>(count));
  }
};

}  // namespace chainfleet
