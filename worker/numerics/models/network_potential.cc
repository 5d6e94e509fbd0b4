#include "worker/numerics/models/network_potential.h"

#include <optional>

#include "core/domain/batch_norm_rules.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/architecture.h"
#include "worker/numerics/models/chain_lanes.h"
#include "worker/numerics/models/eager_potential.h"
#include "worker/numerics/models/exported_network.h"
#include "worker/numerics/models/fused_potential.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

absl::StatusOr<std::unique_ptr<Potential>> MakeNetworkPotential(const JobPlan& plan,
                                                                std::shared_ptr<const ResidentDataset> dataset,
                                                                Device device, const ModelFile* module,
                                                                std::shared_ptr<const std::vector<int32_t>> chains) {
  if (dataset == nullptr) {
    return absl::InvalidArgumentError("job " + plan.job + ": a network needs a data set, the plan has none");
  }
  const Dataset& data = dataset->description();
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateTargets(plan.spec.model, data)));
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape network,
                              InferNetwork(plan.spec.model, data.input_shape, NumClasses(data.targets)));
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan.normalisation, data.input_shape));
  CHAINFLEET_RETURN_IF_ERROR(CheckTargetUnits(plan.target_units));
  const at::Device where =
      device.is_cuda() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.cuda_index)) : at::Device(at::kCPU);
  CHAINFLEET_ASSIGN_OR_RETURN(auto script, StoredNetworkOf(plan.spec.model, module, network, where));
  if (script != nullptr) network = script->shape();
  if (const auto* exported = module == nullptr ? nullptr : std::get_if<ExportedModel>(&module->content);
      exported != nullptr && std::holds_alternative<McDropoutSpec>(plan.spec.sampler.kind)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckDroppedInputs(exported->program, plan.spec.model.sample));
  }
  // The server refuses it, too, unless the file was put before it knew of training mode.
  if (script != nullptr && !network.statistics.empty()) {
    CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForBatchNorm(plan.spec.sampler, "export net.eval()")));
  }
  auto layout = std::make_shared<const Layout>(network.parameters);
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForImages(plan.spec.augmentation, data.input_shape)));
  const NetworkSettings settings = {plan.normalisation, plan.spec.augmentation, plan.spec.prior.precision(),
                                    LikelihoodOf(plan.spec.model), plan.target_units};
  std::optional<Architecture> fused = FusedArchitecture(network);
  if (fused && !device.is_cuda()) {
    return MakeFusedPotential(*std::move(fused), std::move(network), std::move(layout), std::move(dataset), settings);
  }
  ChainBatching batching = ChainBatching::kApart;
  if (device.is_cuda() && (script == nullptr || script->TakesChains())) batching = ChainBatching::kTogether;
  const bool in_lanes = !device.is_cuda() && chains != nullptr && script != nullptr && TakesLanes(*script, plan.spec);
  if (in_lanes) batching = ChainBatching::kInLanes;
  auto potential = MakeEagerPotential(std::move(network), std::move(layout), std::move(dataset), settings, device,
                                      batching, std::move(script));
  return in_lanes ? WithLanes(std::move(potential), std::move(chains)) : std::move(potential);
}

}  // namespace chainfleet
