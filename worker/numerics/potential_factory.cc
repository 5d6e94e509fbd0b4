#include "worker/numerics/potential_factory.h"

#include "worker/numerics/gaussian_potential.h"
#include "worker/numerics/models/network_potential.h"
#include "worker/numerics/prior_potential.h"

namespace chainfleet {

absl::StatusOr<std::unique_ptr<Potential>> MakePotential(const JobPlan& plan,
                                                         std::shared_ptr<const ResidentDataset> dataset,
                                                         Device device) {
  if (plan.spec.model.is_network()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto network, MakeNetworkPotential(plan, std::move(dataset), device));
    CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForLayers(plan.spec.prior, network->layout()->parameters())));
    return WithPrior(plan.spec.prior, std::move(network));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(auto parameters, InferParameters(plan.spec.model, {}, 0));
  return MakeGaussianPotential(std::get<GaussianPotential>(plan.spec.model.kind),
                               std::make_shared<const Layout>(std::move(parameters)), device);
}

}  // namespace chainfleet
