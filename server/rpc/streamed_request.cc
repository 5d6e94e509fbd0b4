#include "server/rpc/streamed_request.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/wire/parsed_bytes.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::internal::WireFormatLite;

constexpr int kLongestText = 1024;

absl::Status CheckSize(int64_t bytes, int64_t parsed) {
  if (parsed <= bytes + limits::kStreamParsedBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a message of ", bytes, " bytes takes over ", parsed,
                                                   " bytes of memory: send fewer fields in one message"));
}

// Fills the message with its own short texts, such as its id, and with nothing else.
void ReadNames(grpc::ByteBuffer* wire, Message* message) {
  grpc::ProtoBufferReader stream(wire);
  google::protobuf::io::CodedInputStream coded(&stream);
  while (const uint32_t tag = coded.ReadTag()) {
    const FieldDescriptor* const field =
        message->GetDescriptor()->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool is_text = field != nullptr && field->type() == FieldDescriptor::TYPE_STRING && !field->is_repeated() &&
                         WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!is_text) {
      if (!WireFormatLite::SkipField(&coded, tag)) return;
      continue;
    }
    int length = 0;
    std::string text;
    if (!coded.ReadVarintSizeAsInt(&length)) return;
    if (!(length <= kLongestText ? coded.ReadString(&text, length) : coded.Skip(length))) return;
    const bool is_name = std::ranges::all_of(text, [](unsigned char c) { return absl::ascii_isprint(c); });
    if (is_name) message->GetReflection()->SetString(message, field, text);
  }
}

}  // namespace

void StreamedRequest::Read(grpc::ByteBuffer* wire) {
  message_->Clear();
  status_ = Parse(wire);
  wire->Clear();  // gRPC leaves it to its reader
}

absl::Status StreamedRequest::Parse(grpc::ByteBuffer* wire) {
  if (!wire->Valid()) return NotOfThisMethod();
  const auto bytes = static_cast<int64_t>(wire->Length());
  const int64_t most = admit_ ? limits::kConnectionBytesInFlight : bytes + limits::kStreamParsedBytes;
  int64_t parsed = 0;
  {
    grpc::ProtoBufferReader stream(wire);
    parsed = ParsedBytes(*message_->GetDescriptor(), &stream, most);
  }
  const absl::Status admitted = admit_ ? admit_(bytes + parsed) : CheckSize(bytes, parsed);
  if (!admitted.ok()) {
    ReadNames(wire, message_);
    return admitted;
  }
  using Traits = grpc::SerializationTraits<Message>;
  if (Traits::Deserialize(wire, message_).ok()) return absl::OkStatus();
  message_->Clear();  // a parser keeps what it has read
  return NotOfThisMethod();
}

}  // namespace chainfleet
