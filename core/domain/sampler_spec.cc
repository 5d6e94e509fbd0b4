#include "core/domain/sampler_spec.h"

namespace chainfleet {

int64_t SamplerSpec::posterior_draws() const {
  return std::visit(
      [](const auto& s) -> int64_t {
        if constexpr (requires { s.draws; }) return s.draws;
        return 0;
      },
      kind);
}

int64_t SamplerSpec::own_burn_in() const {
  return std::visit(
      [](const auto& s) -> int64_t {
        if constexpr (requires { s.own_burn_in(); }) return s.own_burn_in();
        return 0;
      },
      kind);
}

int64_t SamplerSpec::num_batches() const {
  return std::visit(
      [](const auto& s) -> int64_t {
        if constexpr (requires { s.num_batches; }) return s.num_batches;
        return 0;
      },
      kind);
}

double SamplerSpec::noise_free_fraction() const {
  return std::visit(
      [](const auto& s) -> double {
        if constexpr (requires { s.noise_free_fraction; }) return s.noise_free_fraction;
        return 0;
      },
      kind);
}

std::vector<FieldViolation> Validate(const SamplerSpec& sampler) {
  std::vector<FieldViolation> violations;
  std::visit([&](const auto& s) { CheckBounds(s, std::string("sampler.") + s.kName, &violations); }, sampler.kind);
  return violations;
}

}  // namespace chainfleet
