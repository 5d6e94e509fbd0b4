// libFuzzer target: requests of the HTTP port, from verb, path, query and body to the message of the method.
//
// The input has lines: "VERB PATH", then NAME=VALUE for each field of the query, then an empty line, then the body. The
// header Inference-Header-Content-Length is the field of that name, which begins with '!'.
#include <google/protobuf/message.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "chainfleet/v1/access.pb.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "core/base/fair_budget.h"
#include "inference/grpc_service.pb.h"
#include "server/http/error_reply.h"
#include "server/http/http_limits.h"
#include "server/rpc/gateway/message_fields.h"
#include "server/rpc/gateway/plain_json.h"
#include "server/rpc/gateway/routes.h"

namespace {

using chainfleet::WebRequest;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string TakeLine(std::string* text) {
  const size_t end = text->find('\n');
  const std::string line = text->substr(0, end);
  text->erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

void CheckRefused(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) || absl::IsUnavailable(status),
          "a refusal is INVALID_ARGUMENT or names a budget");
  Require(!chainfleet::ErrorReply(status).body.empty(), "a refusal has a body");
}

}  // namespace

// The linker leaves out files of the contract that nobody names.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  for (const auto* named :
       {chainfleet::v1::Job::descriptor(), chainfleet::v1::PredictRequest::descriptor(),
        chainfleet::v1::CreateTokenRequest::descriptor(), inference::ModelInferRequest::descriptor()}) {
    Require(named != nullptr, "the contract is linked");
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  WebRequest request;
  request.body.assign(reinterpret_cast<const char*>(data), size);
  const std::string first = TakeLine(&request.body);
  const size_t space = first.find(' ');
  request.head.verb = first.substr(0, space);
  if (space != std::string::npos) request.head.path = first.substr(space + 1);
  while (!request.body.empty()) {
    const std::string line = TakeLine(&request.body);
    if (line.empty()) break;
    const size_t equals = line.find('=');
    const std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
    if (line[0] == '!') {
      request.head.headers["inference-header-content-length"] = value;
    } else {
      request.head.query.emplace_back(line.substr(0, equals), value);
    }
  }
  const chainfleet::RouteMatch match = chainfleet::FindRoute(request.head.verb, request.head.path);
  if (match.route == nullptr) return 0;
  const google::protobuf::Descriptor& asked = chainfleet::RequestOf(*match.route);
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&asked)->New());
  request.held =
      std::make_shared<chainfleet::BudgetShare>(chainfleet::FairBudget(chainfleet::limits::kHttpBytes), "the host");
  const bool upload = chainfleet::MethodOf(*match.route).client_streaming();
  absl::Status read = upload ? absl::OkStatus() : match.route->translate()->Read(&request, message.get());
  for (const auto& fields : {request.head.query, match.fields}) {
    for (const auto& [name, value] : fields) {
      if (read.ok()) read = chainfleet::SetField(name, value, message.get());
    }
  }
  if (!read.ok()) {
    CheckRefused(read);
    return 0;
  }
  chainfleet::PlainJson(*message, /*defaults=*/true);
  message->SerializeAsString();
  return 0;
}
