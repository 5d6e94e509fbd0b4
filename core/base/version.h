// The version of the software, the same in every binary.
#pragma once

namespace chainfleet {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace chainfleet
