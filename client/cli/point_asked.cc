#include "client/cli/point_asked.h"

#include "core/domain/sweep_spec.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {

absl::StatusOr<int32_t> PointAsked(const v1::Job& job, const std::string& point) {
  CHAINFLEET_ASSIGN_OR_RETURN(const JobSpec spec, FromProto(job.spec()));
  auto found = FindPoint(spec.sweep, point);
  if (!found.ok()) return Annotate(found.status(), "job " + job.id());
  return found;
}

}  // namespace chainfleet
