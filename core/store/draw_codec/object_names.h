// Names of the objects of the blob store; nothing else is ever stored or looked for.
//
//   {store incarnation}/{job}/{chain}/segments/e{lease epoch}-{digest}
//   {store incarnation}/{job}/{chain}/resume/e{lease epoch}-{digest}
//   {store incarnation}/datasets/{digest}-{nonce}
//   {store incarnation}/models/{digest}-{nonce}
//
// A chain's names hold its epoch, the others a number of their own: what was once given up is never wanted again under
// its name, however late somebody deletes it.
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
// `nonce`: random, of one upload.
std::string DatasetObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce);
std::string ModelObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce);

// Everything of one chain starts with this: what garbage collection lists.
std::string ChainObjectPrefix(const std::string& store_incarnation, const ChainId& chain);

struct ChainObjectName {
  enum class Kind { kSegment, kResume } kind = Kind::kSegment;
  std::string store_incarnation;
  ChainId chain;
  int64_t lease_epoch = 0;
  DigestHex digest;
};

// None for anything that the functions above do not make ("..", absolute paths, other folders).
std::optional<ChainObjectName> ParseChainObjectName(const std::string& name);

// True for any name the functions above make, and those without a nonce that older versions made.
bool IsObjectName(const std::string& name);

}  // namespace chainfleet
