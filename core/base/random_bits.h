// Where fresh randomness enters the system: ids, incarnations and the keys of jitter begin here; all else is a function
// of an RngKey.
#pragma once

#include <cstdint>

namespace chainfleet {

// 64 bits from the operating system, another value on each call. Thread-safe. For composition roots and the command
// line alone: what lies below is given a key, so that tests and the simulator can repeat it.
uint64_t RandomBits();

}  // namespace chainfleet
