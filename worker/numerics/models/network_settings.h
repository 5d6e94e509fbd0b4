// A job's settings of its network's potential, except the layers.
#pragma once

#include "core/domain/augmentation_spec.h"
#include "core/domain/dataset.h"
#include "core/domain/likelihood_spec.h"

namespace chainfleet {

struct NetworkSettings {
  Normalisation normalisation;    // for the inputs; has passed CheckNormalisation
  AugmentationSpec augmentation;  // fits the inputs (ValidateForImages)
  double prior_precision = 0;
  LikelihoodKind likelihood = CategoricalLikelihood();
  TargetUnits target_units;  // have passed CheckTargetUnits
};

}  // namespace chainfleet
