// The version of the software, the same in every binary.
#pragma once

namespace chainfleet {

inline constexpr char kVersion[] = "0.2.0";

}  // namespace chainfleet
