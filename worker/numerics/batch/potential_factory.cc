#include "worker/numerics/batch/potential_factory.h"

#include "worker/numerics/models/network_potential.h"
#include "worker/numerics/potentials/gaussian_potential.h"
#include "worker/numerics/potentials/mixture_potential.h"
#include "worker/numerics/potentials/prior_potential.h"
#include "worker/numerics/potentials/regression_potential.h"

namespace chainfleet {
namespace {

std::unique_ptr<Potential> MakeWholeLaw(const PotentialKind& kind, Device device) {
  auto layout = std::make_shared<const Layout>(ParametersOf(kind, {}));
  if (const auto* mixture = std::get_if<GaussianMixturePotential>(&kind)) {
    return MakeMixturePotential(*mixture, std::move(layout));
  }
  return MakeGaussianPotential(std::get<GaussianPotential>(kind), std::move(layout), device);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Potential>> MakePotential(const JobPlan& plan,
                                                         std::shared_ptr<const ResidentDataset> dataset, Device device,
                                                         const ModelFile* module,
                                                         std::shared_ptr<const std::vector<int32_t>> chains) {
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(plan.spec.model)));
  if (!plan.spec.model.has_data()) return MakeWholeLaw(std::get<PotentialKind>(plan.spec.model.kind), device);
  CHAINFLEET_ASSIGN_OR_RETURN(auto likelihood,
                              plan.spec.model.is_network()
                                  ? MakeNetworkPotential(plan, std::move(dataset), device, module, std::move(chains))
                                  : MakeRegressionPotential(plan, std::move(dataset), device));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForLayers(plan.spec.prior, likelihood->layout()->parameters())));
  return WithPrior(plan.spec.prior, std::move(likelihood));
}

}  // namespace chainfleet
