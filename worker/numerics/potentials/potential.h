// The potential U(theta) = -log prior - (N/n) sum over the minibatch of log likelihood, for the rows of an arena.
//
// Networks and analytic densities are both Potentials; exp(-U/T) is the sampled density. CPU implementations use
// at::parallel_for over chains, with each chain's whole forward and backward pass on one thread and single-threaded
// kernels, so that no bit depends on C, threads or the row. NaN or infinite values in a row must not affect another
// row.
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
  const StepKey* keys = nullptr;  // [C]: used to drop units and to augment images; null: neither
  // [C], replaces Potential::prior_precision() for chains of a sweep; null: the potential's own.
  const double* prior_precisions = nullptr;
  bool dropout = true;              // false: no unit is dropped, whatever the keys
  const BatchDraw* draw = nullptr;  // on a GPU, with ids null: how each row's ids are drawn by its key
  const int64_t* row(int64_t r) const { return ids + r * size; }
};

inline constexpr int64_t kStatisticsBatch = 128;

struct Curvature;  // worker/numerics/potentials/curvature.h

// The part that a row adds to its sum: examples [first, first + count) in stored order. Null sum: nothing.
struct CurvatureSlice {
  Curvature* sum = nullptr;
  int64_t first = 0, count = 0;
};

// Bound to a device and, for networks, to a data set. Not thread-safe: one call at a time, because buffers are kept
// between calls.
class Potential {
 public:
  virtual ~Potential() = default;

  virtual const std::shared_ptr<const Layout>& layout() const = 0;
  virtual int64_t num_examples() const = 0;  // N; 1 for analytic potentials

  // Precision of the Gaussian prior whose gradient, precision * theta, the caller adds to the result of Evaluate; the
  // fused update does so in its only pass. 0: Evaluate's gradient is complete.
  virtual double prior_precision() const { return 0; }

  // energy[C] = U on the minibatch with the prior, as doubles on the host. `gradient` (same rows and device as `theta`,
  // padding left zero) = grad U - prior_precision() * theta. Overwrites both. Non-finite values are valid results.
  virtual void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) = 0;

  // As Evaluate, but the host need not wait for the energies.
  virtual Late<double> EvaluateLate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient) {
    std::vector<double> energy(theta.rows());
    Evaluate(theta, batch, gradient, energy.data());
    return energy;
  }

  // As Evaluate, and squared_norms[C, n] = |X_i|^2 on the host, where X_i is the gradient of example i's -log
  // likelihood, unscaled and without prior. Per-example gradients are never stored. Returns false and does nothing if
  // this potential cannot compute the norms.
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

  // Adds to each row's sum, `slices` [C], the Gauss-Newton matrix of -log likelihood at its theta, without dropout; for
  // an analytic potential, which is its only example, the Hessian. Returns false and does nothing if this potential
  // cannot compute the requested structure.
  virtual bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) {
    static_cast<void>(theta), static_cast<void>(slices);
    return false;
  }

  // The precision of each parameter tensor's Gaussian prior, whether or not prior_precision() gives it.
  virtual std::vector<double> PriorPrecisions() const {
    return std::vector<double>(layout()->spans().size(), prior_precision());
  }

  // The tensors that follow the parameters in a draw: means and variances of batch norm.
  virtual const std::vector<ParameterShape>& statistics() const {
    static const std::vector<ParameterShape> kNone;
    return kNone;
  }
  // The statistics of the draws of rows [first, first + count) of theta, each a pure function of its row: one pass over
  // all data in stored order, in batches of kStatisticsBatch.
  virtual std::vector<std::vector<float>> DrawStatistics(const ThetaArena& theta, int64_t first, int64_t count) {
    static_cast<void>(theta), static_cast<void>(first);
    return std::vector<std::vector<float>>(static_cast<size_t>(count));
  }
};

}  // namespace chainfleet
