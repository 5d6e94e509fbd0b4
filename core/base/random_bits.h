// The source of fresh randomness for ids, incarnations and the keys of jitter. All other random numbers are functions
// of an RngKey.
#pragma once

#include <cstdint>

namespace chainfleet {

// Returns 64 new random bits from the operating system. Thread-safe. Only composition roots and the command line call
// RandomBits; all other code takes a key, so that tests and the simulator can repeat a run.
uint64_t RandomBits();

}  // namespace chainfleet
