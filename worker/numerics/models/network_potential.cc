#include "worker/numerics/models/network_potential.h"

#include <optional>

#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/architecture.h"
#include "worker/numerics/models/eager_potential.h"
#include "worker/numerics/models/fused_potential.h"

namespace chainfleet {

absl::StatusOr<std::unique_ptr<Potential>> MakeNetworkPotential(const JobPlan& plan,
                                                                std::shared_ptr<const ResidentDataset> dataset,
                                                                Device device) {
  if (dataset == nullptr) {
    return absl::InvalidArgumentError("job " + plan.job + ": a network needs a data set, the plan has none");
  }
  const Dataset& data = dataset->description();
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateTargets(plan.spec.model, data)));
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape network, InferNetwork(plan.spec.model, data.input_shape, data.num_classes));
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan.normalisation, data.input_shape));
  auto layout = std::make_shared<const Layout>(network.parameters);
  const double precision = plan.spec.prior.precision();
  const LikelihoodKind likelihood = LikelihoodOf(plan.spec.model);
  std::optional<Architecture> fused = FusedArchitecture(network);
  if (fused && !device.is_cuda()) {
    return MakeFusedPotential(*std::move(fused), std::move(network), std::move(layout), std::move(dataset),
                              plan.normalisation, precision, likelihood);
  }
  return MakeEagerPotential(std::move(network), std::move(layout), std::move(dataset), plan.normalisation, precision,
                            device, device.is_cuda() ? ChainBatching::kTogether : ChainBatching::kApart, likelihood);
}

}  // namespace chainfleet
