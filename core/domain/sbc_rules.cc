#include "core/domain/sbc_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/sweep_points.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

constexpr char kRandomNetwork[] =
    "kind sbc needs a network that is a function of its parameters alone, which batch norm and dropout are not: ";

bool HasDropout(const LayerList& layers) {
  return std::ranges::any_of(layers, [](const LayerSpec& layer) {
    bool found = std::holds_alternative<DropoutLayer>(layer.kind);
    ForEachList(layer, [&found](const char*, const LayerList& list) { found |= HasDropout(list); });
    return found;
  });
}

void ValidateModel(const ModelSpec& model, Violations* violations) {
  const auto* stored = std::get_if<StoredNetworkModel>(&model.kind);
  if (!model.has_data()) {
    violations->push_back(
        {"kind", "sbc simulates targets: take a network or a regression, not a density without data"});
  } else if (stored != nullptr && stored->format == ModelFormat::kTorchScript) {
    violations->push_back({PathOf(*stored),
                           "the parameters of a TorchScript module are unknown to the server, so kind "
                           "sbc cannot draw them: take a .pt2 file (model.exported)"});
  } else if (model.has_layers() && (HasBatchNorm(model) || HasDropout(LayersOf(model)))) {
    violations->push_back({"model", absl::StrCat(kRandomNetwork, "leave these layers out")});
  }
}

// A flat prior has no draws.
void ValidatePrior(const JobSpec& spec, Violations* violations) {
  const auto* gaussian = std::get_if<GaussianPrior>(&spec.prior.kind);
  if (gaussian == nullptr) return;
  const auto check = [&](const std::string& path, double precision) {
    if (precision > 0) return;
    violations->push_back({path, "must be above 0: kind sbc draws the parameters from the prior, and 0 is flat"});
  };
  check("prior.gaussian.precision", gaussian->precision);
  for (const auto& [layer, precision] : gaussian->layers) check("prior.gaussian.layers." + layer, precision);
}

void ValidateSampler(const SamplerSpec& sampler, Violations* violations) {
  const std::string path = "sampler." + sampler.name();
  if (std::holds_alternative<BsamSpec>(sampler.kind)) {
    violations->push_back({path, "has a prior of its own, which kind sbc cannot draw from: take another sampler"});
  } else if (sampler.passes_over_data() || sampler.posterior_draws() > 0) {
    violations->push_back({path,
                           "draws networks after its training, which have no traces to rank: kind sbc needs a "
                           "sampler whose steps are draws, such as sgld, hmc or mala"});
  }
}

}  // namespace

std::vector<FieldViolation> ValidateSbc(const JobSpec& spec) {
  if (spec.kind != JobKind::kSbc) return {};
  Violations violations;
  ValidateModel(spec.model, &violations);
  if (spec.model.has_data()) ValidatePrior(spec, &violations);
  ValidateSampler(spec.sampler, &violations);
  if (!spec.sweep.prior_precision.empty()) {
    violations.push_back({"sweep.prior_precision", "kind sbc draws from one prior: submit a job for each precision"});
  }
  if (spec.augmentation.any()) {
    violations.push_back({"augmentation", "changes the inputs that kind sbc simulates targets for: leave it out"});
  }
  if (spec.until.looks_at_traces()) {
    violations.push_back({"until",
                          "rules on R-hat and ESS compare chains of one posterior, and each chain of kind sbc "
                          "has its own: give num_steps or until.max_draws"});
  }
  return violations;
}

std::vector<FieldViolation> ValidateSbcData(const JobSpec& spec, const Dataset& dataset, const StoredModel* stored) {
  if (spec.kind != JobKind::kSbc) return {};
  if (stored != nullptr && stored->signature &&
      (stored->signature->has_dropout || !stored->signature->statistics.empty())) {
    return {{"model", absl::StrCat(kRandomNetwork, "export net.eval()")}};
  }
  const int64_t chains = NumChains(spec), bytes = std::max<int64_t>(1, StoredBytes(dataset));
  const int64_t most = limits::kMaxSimulatedBytes / bytes;
  if (chains <= most) return {};
  return {{"chains",
           absl::StrCat("kind sbc holds data for each chain: with ", bytes, " bytes of data set, at most ", most,
                        " chains of all points together, the job has ", chains, ": take fewer chains or fewer rows")}};
}

}  // namespace chainfleet
