#include "core/wire/parsed_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <map>
#include <string>

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr int kMostDepth = 100;  // as protobuf's parser
constexpr int64_t kGrowth = 2;   // an array that grows has up to twice the elements it needs
constexpr int64_t kPointer = kGrowth * static_cast<int64_t>(sizeof(void*));
constexpr int64_t kString = sizeof(std::string) + 2 * sizeof(void*);  // and what the heap adds to its bytes
constexpr int64_t kObject = 48;                                       // or the node of a map
constexpr int64_t kSingle = 12, kList = 28, kMap = 128;               // fields of an object, each with its bits
constexpr int64_t kUnknown = kGrowth * static_cast<int64_t>(sizeof(google::protobuf::UnknownField));

WireFormatLite::WireType WireTypeOf(const FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
}

int64_t ElementBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return sizeof(bool);
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return sizeof(int64_t);
    default:
      return sizeof(int32_t);
  }
}

// The field of `type` that a parser fills from `tag`, or null if it keeps the value as an unknown field.
const FieldDescriptor* FilledBy(uint32_t tag, const Descriptor* type) {
  const FieldDescriptor* const field =
      type == nullptr ? nullptr : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
  if (field == nullptr) return nullptr;
  const auto given = WireFormatLite::GetTagWireType(tag);
  const bool is_packed = field->is_packable() && given == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  return is_packed || given == WireTypeOf(*field) ? field : nullptr;
}

// At least the bytes of a message without values.
int64_t ObjectBytes(const Descriptor& type) {
  int64_t bytes = kObject + kSingle * type.real_oneof_decl_count();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.real_containing_oneof() != nullptr) continue;
    bytes += field.is_map() ? kMap : field.is_repeated() ? kList : kSingle;
  }
  const FieldDescriptor* const value = type.map_value();  // an entry of a map has its value from the beginning
  return value == nullptr || value->message_type() == nullptr ? bytes : bytes + ObjectBytes(*value->message_type());
}

class Walk {
 public:
  Walk(google::protobuf::io::CodedInputStream* wire, int64_t most) : wire_(wire), most_(most) {}

  // False where a parser stops, and beyond `most`. `type`: null inside an unknown group, which ends with `end`.
  bool Message(const Descriptor* type, uint32_t end, int depth) {
    if (depth > kMostDepth) return false;
    while (const uint32_t tag = wire_->ReadTag()) {
      if (tag == end) return true;
      if (!Field(type, tag, depth) || bytes_ > most_) return false;
    }
    return end == 0 && wire_->ConsumedEntireMessage();
  }

  int64_t bytes() const { return bytes_; }

 private:
  bool Field(const Descriptor* type, uint32_t tag, int depth) {
    const FieldDescriptor* const field = FilledBy(tag, type);
    uint64_t value = 0;
    uint32_t fixed = 0;
    bytes_ += field == nullptr ? kUnknown : field->is_repeated() ? kGrowth * ElementBytes(*field) : 0;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        return wire_->ReadVarint64(&value);
      case WireFormatLite::WIRETYPE_FIXED64:
        return wire_->ReadLittleEndian64(&value);
      case WireFormatLite::WIRETYPE_FIXED32:
        return wire_->ReadLittleEndian32(&fixed);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return Delimited(field, depth);
      case WireFormatLite::WIRETYPE_START_GROUP:
        bytes_ += sizeof(google::protobuf::UnknownFieldSet);
        return Message(nullptr, tag + 1, depth + 1);  // the end of a group has the next wire type
      default:
        return false;
    }
  }

  bool Delimited(const FieldDescriptor* field, int depth) {
    int length = 0;
    if (!wire_->ReadVarintSizeAsInt(&length)) return false;
    if (field == nullptr || field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      return wire_->Skip(length) && Add(kPointer + kString + length);
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return Packed(*field, length);
    int64_t& object = objects_[field->message_type()];
    if (object == 0) object = ObjectBytes(*field->message_type());
    Add(kPointer + object);
    const auto outer = wire_->PushLimit(length);
    const bool is_whole = Message(field->message_type(), 0, depth + 1);
    wire_->PopLimit(outer);
    return is_whole;
  }

  bool Add(int64_t bytes) {
    bytes_ += bytes;
    return true;
  }

  bool Packed(const FieldDescriptor& field, int length) {
    if (WireTypeOf(field) != WireFormatLite::WIRETYPE_VARINT) {
      return wire_->Skip(length) && Add(kGrowth * length);
    }
    while (length > 0) {
      const void* part = nullptr;
      int size = 0;
      if (!wire_->GetDirectBufferPointer(&part, &size)) return false;
      size = std::min(size, length);
      const auto* const first = static_cast<const signed char*>(part);
      const auto elements = std::count_if(first, first + size, [](signed char byte) { return byte >= 0; });
      bytes_ += kGrowth * ElementBytes(field) * elements;
      length -= size;
      if (!wire_->Skip(size)) return false;
    }
    return true;
  }

  google::protobuf::io::CodedInputStream* const wire_;
  const int64_t most_;
  std::map<const Descriptor*, int64_t> objects_;  // ObjectBytes of the types that the message has
  int64_t bytes_ = 0;
};

}  // namespace

int64_t ParsedBytes(const Descriptor& type, google::protobuf::io::ZeroCopyInputStream* wire, int64_t most) {
  google::protobuf::io::CodedInputStream coded(wire);
  Walk walk(&coded, most);
  walk.Message(&type, 0, 0);
  return walk.bytes() + ObjectBytes(type);
}

int64_t ParsedBytes(const Descriptor& type, absl::string_view wire) {
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()));
  return ParsedBytes(type, &stream);
}

}  // namespace chainfleet
