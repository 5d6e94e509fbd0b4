// Reports for the tests of the page, made of closed forms: the same in each run.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/report/page.h"

namespace chainfleet {

// With every part of a job of classes: four chains of which three warn, traces of two quantities, 24 pictures.
ReportContents WholeReport();

// The same of a job that learns numbers and whose chains share their starts, with 300 predicted rows.
ReportContents NumbersReport();

// WholeReport with `text` in every string.
ReportContents HostileReport(const std::string& text);

// WholeReport with `number` in every double.
ReportContents ReportOf(double number);

// Whatever a server could send.
ReportContents RandomReport(uint64_t seed);

}  // namespace chainfleet
