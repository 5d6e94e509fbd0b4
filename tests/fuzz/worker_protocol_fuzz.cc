// libFuzzer target: the messages that a worker sends, from the bytes to the values that the coordinator stores.
//
// The first byte selects the message. A value that is accepted can be written and read again without a change, and
// what reaches terminals, logs and Prometheus has no characters that these would obey.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/wire/predict_wire.h"
#include "core/wire/worker_wire.h"
#include "server/rpc/worker_claims.h"

namespace {

namespace v1 = chainfleet::v1;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckPlain(const std::string& text) {
  for (const char c : text) Require(c > ' ' && c < 0x7f && c != '<' && c != '"', "a claim has plain characters");
}

void CheckClaimed(const v1::SynchronizeRequest& request) {
  for (const auto* text : {&request.worker(), &request.incarnation(), &request.host(), &request.metrics_address()}) {
    CheckPlain(*text);
  }
  for (const auto& device : request.devices()) CheckPlain(device.name());
}
void CheckClaimed(const v1::CommitProgressRequest& request) { CheckPlain(request.worker()); }

// Reads a message as its handler does. A value that is read once is the same when it is written and read again.
template <typename Message>
void Read(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) return;
  if constexpr (requires { chainfleet::CheckClaims(message); }) {
    if (const absl::Status claims = chainfleet::CheckClaims(message); !claims.ok()) {
      Require(absl::IsInvalidArgument(claims), "a refusal is INVALID_ARGUMENT");
      return;
    }
    CheckClaimed(message);
  }
  const auto value = chainfleet::FromProto(message);
  if (!value.ok()) {
    Require(absl::IsInvalidArgument(value.status()), "a refusal is INVALID_ARGUMENT");
    return;
  }
  const Message written = chainfleet::ToProto(*value);
  const auto again = chainfleet::FromProto(written);
  Require(again.ok(), "a value that is read can be read again");
  Require(chainfleet::ToProto(*again).SerializeAsString() == written.SerializeAsString(),
          "reading twice changes nothing");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] & 3) {
    case 0:
      Read<v1::SynchronizeRequest>(bytes);
      break;
    case 1:
      Read<v1::CommitProgressRequest>(bytes);
      break;
    case 2:
      Read<v1::ShardResult>(bytes);
      break;
    default:
      v1::ShardUpdate update;
      if (!update.ParseFromString(bytes)) return 0;
      if (update.has_hello() && chainfleet::CheckClaims(update.hello()).ok()) CheckPlain(update.hello().worker());
      if (update.has_result()) Read<v1::ShardResult>(update.result().SerializeAsString());
  }
  return 0;
}
