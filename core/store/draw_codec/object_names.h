// Names of the objects of the blob store; nothing else is ever stored or looked for.
//
//   {store incarnation}/{job}/{chain}/segments/e{lease epoch}-{digest}
//   {store incarnation}/{job}/{chain}/resume/e{lease epoch}-{digest}
//   {store incarnation}/datasets/{digest}
//   {store incarnation}/models/{digest}
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
std::string DatasetObjectName(const std::string& store_incarnation, const DigestHex& sha256);
std::string ModelObjectName(const std::string& store_incarnation, const DigestHex& sha256);

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

// True for any name the functions above make.
bool IsObjectName(const std::string& name);

}  // namespace chainfleet
