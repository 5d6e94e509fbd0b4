// Sets every field of a protocol message to a random value, by reflection. A new field of the contract is therefore
// filled, and a conversion that forgets the field fails.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>

namespace chainfleet {

// Fills one random case of each oneof; lists have 1-3 elements; enum values are known ones, not the unspecified zero if
// there is one; times and durations are in range.
class RandomMessage {
 public:
  explicit RandomMessage(uint64_t seed) : random_(seed) {}

  template <typename Message>
  Message Make() {
    Message message;
    Fill(&message);
    return message;
  }

  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

 private:
  void Fill(google::protobuf::Message* message);
  void Set(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field);
  int EnumValue(const google::protobuf::FieldDescriptor* field);

  std::mt19937_64 random_;
};

}  // namespace chainfleet
