// A report with everything in it, made of closed forms: the same in each run.
#pragma once

#include "client/cli/report/page.h"

namespace chainfleet {

// A job of four chains of which one warns, an evaluation with every part, traces of two quantities and 24 pictures.
ReportContents WholeReport();

}  // namespace chainfleet
