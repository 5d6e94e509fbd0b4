#include "core/diagnostics/mcse.h"

#include <cmath>

#include "core/diagnostics/ess.h"

namespace chainfleet {

double McseMean(Traces traces) {
  const double ess = EssMean(traces);
  return std::isnan(ess) ? ess : std::sqrt(Variance(traces.values) / ess);
}

}  // namespace chainfleet
