#include "worker/numerics/potential_factory.h"

#include "worker/numerics/gaussian_potential.h"
#include "worker/numerics/models/network_potential.h"

namespace chainfleet {

absl::StatusOr<std::unique_ptr<Potential>> MakePotential(const JobPlan& plan,
                                                         std::shared_ptr<const ResidentDataset> dataset,
                                                         Device device) {
  if (plan.spec.model.is_network()) return MakeNetworkPotential(plan, std::move(dataset), device);
  CHAINFLEET_ASSIGN_OR_RETURN(auto parameters, InferParameters(plan.spec.model, {}, 0));
  return MakeGaussianPotential(std::get<GaussianPotential>(plan.spec.model.kind),
                               std::make_shared<const Layout>(std::move(parameters)), device);
}

}  // namespace chainfleet
