// report.html with the charting library in it; CMake makes the definition.
#pragma once

namespace chainfleet {

// {{digests}} and {{report}} are yet to be filled in.
extern const char kReportTemplate[];

}  // namespace chainfleet
