// The calls of the Open Inference Protocol besides inference.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/gateway/plain_json.h"
#include "server/rpc/gateway/translation.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

class PlainTranslation : public Translation {
 public:
  absl::Status Read(WebRequest*, Message*) override { return absl::OkStatus(); }
  WebReply Write(const Message&, const Message& reply) override {
    // Triton's configuration is not wrapped.
    const auto* const config = dynamic_cast<const inference::ModelConfigResponse*>(&reply);
    const Message& shown = config == nullptr ? reply : config->config();
    return {.body = PlainJson(shown, /*defaults=*/true).dump()};
  }
};

class ReadyTranslation final : public PlainTranslation {
 public:
  WebReply Write(const Message& request, const Message& reply) override {
    nlohmann::ordered_json body = PlainJson(request, /*defaults=*/false);  // name and version of a model
    const std::string what = body.contains("name") ? absl::StrCat("model '", body["name"].get<std::string>(), "'")
                                                   : std::string("the server");
    const nlohmann::ordered_json answer = PlainJson(reply, /*defaults=*/true);
    bool is_ready = true;
    for (const auto& [name, value] : answer.items()) {
      body[name] = value;
      is_ready = is_ready && value.get<bool>();
    }
    if (!is_ready) body["error"] = absl::StrCat(what, " is not ready");
    return {.code = is_ready ? 200 : 400,
            .body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
  }
};

class IndexTranslation final : public Translation {
 public:
  absl::Status Read(WebRequest* request, Message* message) override {
    return MakeMessageTranslation()->Read(request, message);
  }
  WebReply Write(const Message&, const Message& reply) override {
    return {.body = PlainJson(reply, /*defaults=*/true)["models"].dump()};
  }
};

}  // namespace

std::unique_ptr<Translation> MakePlainTranslation() { return std::make_unique<PlainTranslation>(); }
std::unique_ptr<Translation> MakeIndexTranslation() { return std::make_unique<IndexTranslation>(); }
std::unique_ptr<Translation> MakeReadyTranslation() { return std::make_unique<ReadyTranslation>(); }

}  // namespace chainfleet
