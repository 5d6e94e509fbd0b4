// The memory that a message takes once it is parsed, known before it is parsed. On the wire an empty message inside
// another has two bytes, an unknown field too; parsed, they take a hundred.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"

namespace chainfleet {

// At least the bytes that the message of `type` takes whose wire format is `wire`. Stops when they are more than
// `most`. Counts a malformed message as far as a parser would read it. Time: linear in the fields, and in the bytes of
// packed varints.
int64_t ParsedBytes(const google::protobuf::Descriptor& type, google::protobuf::io::ZeroCopyInputStream* wire,
                    int64_t most = std::numeric_limits<int64_t>::max());
int64_t ParsedBytes(const google::protobuf::Descriptor& type, absl::string_view wire);

}  // namespace chainfleet
