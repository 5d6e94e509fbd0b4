// Names of all objects in the blob store.
//
//   {store incarnation}/{job}/{chain}/segments/e{lease epoch}-{digest}
//   {store incarnation}/{job}/{chain}/resume/e{lease epoch}-{digest}
//   {store incarnation}/datasets/{digest}-{nonce}
//   {store incarnation}/models/{digest}-{nonce}
//
// A chain's object names contain the lease epoch, other names a nonce. A released name is therefore never used again,
// however late its object is deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.h"
#include "core/domain/draw.h"

namespace chainfleet {

std::string SegmentObjectName(const std::string& store_incarnation, const ChainId& chain, int64_t lease_epoch,
                              const DigestHex& digest);
std::string ResumeObjectName(const std::string& store_incarnation, const ChainId& chain, int64_t lease_epoch,
                             const DigestHex& sha256);
// `nonce` is random, one for each upload.
std::string DatasetObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce);
std::string ModelObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce);

// The prefix of all objects of one chain; garbage collection lists it.
std::string ChainObjectPrefix(const std::string& store_incarnation, const ChainId& chain);

struct ChainObjectName {
  enum class Kind { kSegment, kResume } kind = Kind::kSegment;
  std::string store_incarnation;
  ChainId chain;
  int64_t lease_epoch = 0;
  DigestHex digest;
};

// Returns nullopt for a name that the functions above do not make ("..", absolute paths, other folders).
std::optional<ChainObjectName> ParseChainObjectName(const std::string& name);

// True for any name that the functions above make, and for names without a nonce, which older versions made.
bool IsObjectName(const std::string& name);

}  // namespace chainfleet
