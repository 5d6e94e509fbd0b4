// The job API: bodies and replies in protobuf's JSON mapping, and the bytes of segments.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chainfleet/v1/jobs.pb.h"
#include "core/base/log.h"
#include "core/wire/parsed_bytes.h"
#include "server/http/error_reply.h"
#include "server/http/http_limits.h"
#include "server/rpc/gateway/translation.h"

namespace chainfleet {
namespace {

namespace protobuf = google::protobuf;

class MessageTranslation final : public Translation {
 public:
  // An empty body is an empty message. The parser bounds the depth.
  absl::Status Read(WebRequest* request, protobuf::Message* message) override {
    if (request->body.empty()) return absl::OkStatus();
    const auto reading = static_cast<int64_t>(request->body.size()) * limits::kJsonFactor;
    if (!request->held->Add(reading)) return NoRoom();
    const protobuf::Descriptor& type = *message->GetDescriptor();
    std::string wire;
    const auto read = protobuf::util::JsonToBinaryString(Types(), kTypes + type.full_name(), request->body, &wire);
    const int64_t parsed = ParsedBytes(type, wire);
    if (parsed > limits::kJsonMessageBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the message in the body takes more than ",
                                                       limits::kJsonMessageBytes / limits::kMiB,
                                                       " MiB of memory: send less in one request"));
    }
    if (!request->held->Add(parsed)) return NoRoom();
    if (read.ok() && message->ParseFromString(wire)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the body is no ", type.name(), " in JSON: ", std::string(read.message())));
  }

  WebReply Write(const protobuf::Message&, const protobuf::Message& reply) override {
    protobuf::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    WebReply json;
    const auto written = protobuf::util::MessageToJsonString(reply, &json.body, options);
    if (written.ok()) return json;
    // A time after the year 9999, for example, has no form in JSON.
    const std::string& type = reply.GetDescriptor()->full_name();
    Log(LogLevel::kError, "reply has no form in JSON", {{"type", type}, {"error", std::string(written.message())}});
    return ErrorReply(absl::InternalError(absl::StrCat("the reply, a ", type, ", has no form in JSON: call by gRPC")));
  }

 private:
  static constexpr char kTypes[] = "type.googleapis.com/";
  static protobuf::util::TypeResolver* Types() {
    static auto* const types = protobuf::util::NewTypeResolverForDescriptorPool(
        "type.googleapis.com", protobuf::DescriptorPool::generated_pool());
    return types;
  }
};

class BytesTranslation final : public Translation {
 public:
  absl::Status Read(WebRequest*, protobuf::Message*) override { return absl::OkStatus(); }
  WebReply Write(const protobuf::Message&, const protobuf::Message& reply) override {
    return {.body = static_cast<const v1::Chunk&>(reply).data(), .content_type = "application/octet-stream"};
  }
};

}  // namespace

std::unique_ptr<Translation> MakeBytesTranslation() { return std::make_unique<BytesTranslation>(); }
std::unique_ptr<Translation> MakeMessageTranslation() { return std::make_unique<MessageTranslation>(); }

}  // namespace chainfleet
