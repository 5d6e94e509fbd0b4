// How the report looks.
#pragma once

namespace chainfleet {

// The style sheet: every color of the page, light, dark and printed. Series colors are those of Okabe and Ito (2008),
// which color-blind people tell apart; a dash tells neighbours apart without color.
extern const char kReportStyle[];

}  // namespace chainfleet
