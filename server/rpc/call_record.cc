#include "server/rpc/call_record.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chainfleet/v1/access.pb.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "core/base/log.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/audit_rate.h"
#include "server/rpc/identity_tokens.h"
#include "server/rpc/method_names.h"
#include "server/rpc/peer.h"
#include "server/rpc/request_id.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::experimental::InterceptionHookPoints;

struct AuditRates {
  AuditRate failed{};   // calls that fail
  AuditRate unbounded;  // calls that succeed and that call_quota.h does not bound
  AuditRate over_quota{limits::kAuditLinesAtOnce, limits::kSlowLineInterval};  // by tenant
  AuditRate not_held{limits::kAuditLinesAtOnce, limits::kSlowLineInterval};    // see IsNotHeld
};

LogLevel LevelOf(const absl::Status& status, const MethodDescriptor* method) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ChangesSomething(method) ? LogLevel::kInfo : LogLevel::kDebug;
    case absl::StatusCode::kUnauthenticated:  // call_gate.h logs these, by peer and at a limited rate
    case absl::StatusCode::kCancelled:        // clients and workers may disconnect at any time
      return LogLevel::kDebug;
    case absl::StatusCode::kAborted:  // a worker's newer call replaces a pending one
      return ReasonOf(status) == "STALE_SEQ" ? LogLevel::kDebug : LogLevel::kInfo;
    case absl::StatusCode::kUnavailable: {  // a standby and a server that shuts down send it to every caller
      const std::string reason = ReasonOrCode(status);
      if (reason == "NOT_LEADER") return LogLevel::kDebug;
      return reason == absl::StatusCodeToString(status.code()) ? LogLevel::kInfo : LogLevel::kWarning;
    }
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return LogLevel::kWarning;
    default:
      return LogLevel::kInfo;
  }
}

// Returns true if a worker asked for a chain, an object or an id that is not its own. Intruders do so, and also honest
// workers whose leases have expired. So these refusals have a rate of their own, which leaves room for others.
bool IsNotHeld(const std::string& reason, const MethodDescriptor* method) {
  return method != nullptr && IsOfWorkers(*method) &&
         (reason == "LEASE_FENCED" || reason == "NOT_HELD" || reason == "WORKER_PRESENT");
}

// The ids that a request is about, under the field names that all logs use.
class Subject {
 public:
  // Later values win: a reply has ids where its request may have names.
  void Take(const Message& message) {
    const Descriptor* type = message.GetDescriptor();
    for (const Own& own : Owned()) {
      if (type == own.type)
        Put(own.key, message.GetReflection()->GetString(message, own.type->FindFieldByName(own.field)));
    }
    if (type == v1::SetIntentRequest::descriptor()) {
      Put("intent", v1::Job::Intent_Name(static_cast<const v1::SetIntentRequest&>(message).intent()));
    }
    if (type == v1::Token::descriptor()) Put("role", v1::Role_Name(static_cast<const v1::Token&>(message).role()));
    if (type == v1::ChainId::descriptor()) {
      const auto& chain = static_cast<const v1::ChainId&>(message);
      Put("job", chain.job());
      return Put("chain", chain.index());
    }
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"job", "job"}, {"job_id", "job"}, {"model_name", "job"}, {"worker", "worker"}};
    for (const auto& [name, key] : kNames) {
      const FieldDescriptor* field = Field(message, name, FieldDescriptor::CPPTYPE_STRING);
      if (field != nullptr) Put(key, message.GetReflection()->GetString(message, field));
    }
    for (const char* number : {"lease_epoch", "version"}) {
      const FieldDescriptor* field = Field(message, number, FieldDescriptor::CPPTYPE_INT64);
      if (field != nullptr) Put(number, message.GetReflection()->GetInt64(message, field));
    }
    for (const char* part : {"header", "chain", "blob", "session"}) {  // a header begins an upload
      const FieldDescriptor* field = Field(message, part, FieldDescriptor::CPPTYPE_MESSAGE);
      if (field != nullptr) Take(message.GetReflection()->GetMessage(message, field));
    }
  }

  const std::vector<LogField>& fields() const { return fields_; }

 private:
  // The field of a message that names what the message is about.
  struct Own {
    const Descriptor* type;
    const char *field, *key;
  };
  static const std::vector<Own>& Owned() {
    static const auto* const owned = new std::vector<Own>{
        {v1::Job::descriptor(), "id", "job"},
        {v1::GetJobRequest::descriptor(), "name", "job"},
        {v1::SetIntentRequest::descriptor(), "name", "job"},
        {v1::ScaleJobRequest::descriptor(), "name", "job"},
        {v1::EvaluationOperation::descriptor(), "id", "evaluation"},
        {v1::GetEvaluationRequest::descriptor(), "id", "evaluation"},
        {v1::PutDatasetRequest::Header::descriptor(), "name", "dataset"},
        {v1::DeleteDatasetRequest::descriptor(), "name", "dataset"},
        {v1::PutModelRequest::Header::descriptor(), "name", "model"},
        {v1::DeleteModelRequest::descriptor(), "name", "model"},
        {v1::ShareRequest::descriptor(), "name", "content"},
        {v1::SetAliasRequest::descriptor(), "name", "alias"},
        {v1::DeleteAliasRequest::descriptor(), "name", "alias"},
        {v1::BlobRef::descriptor(), "name", "object"},
        {v1::Token::descriptor(), "id", "token"},
        {v1::RevokeTokenRequest::descriptor(), "id", "token"},
    };
    return *owned;
  }
  // Null unless the field is set.
  static const FieldDescriptor* Field(const Message& message, const char* name, FieldDescriptor::CppType type) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
    const bool is_it = field != nullptr && !field->is_repeated() && field->cpp_type() == type;
    return is_it && message.GetReflection()->HasField(message, field) ? field : nullptr;
  }
  template <typename T>
  void Put(const char* key, const T& value) {
    std::erase_if(fields_, [key](const LogField& field) { return std::string_view(field.key) == key; });
    fields_.emplace_back(key, value);
  }

  std::vector<LogField> fields_;
};

// Records one RPC. Its first and last hooks are the only ones that write members.
class Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(const char* path, const grpc::ServerContextBase* context, const CallRecordParts& parts, AuditRates* rates,
              std::string made_id)
      : method_(FindMethod(path)),
        context_(context),
        parts_(parts),
        rates_(rates),
        path_(path == nullptr ? "" : path),
        label_(method_ == nullptr ? "other" : path),  // clients may call any name
        started_(parts.clock->Monotonic()),
        id_(std::move(made_id)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* hooks) override {
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) Begin(hooks);
    // The gate has let the headers in before a request arrives (call_gate.h).
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) && method_ != nullptr &&
        (!method_->client_streaming() || ChangesSomething(method_))) {
      const void* const received = hooks->GetRecvMessage();
      Take(method_->client_streaming() && received != nullptr
               ? &static_cast<const StreamedRequest*>(received)->message()
               : received);
    }
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      hooks->GetSendInitialMetadata()->emplace(kRequestIdHeader, id_);
    }
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) End(hooks);
    hooks->Proceed();
  }

 private:
  void Begin(grpc::experimental::InterceptorBatchMethods* hooks) {
    CallMetadata* metadata = hooks->GetRecvInitialMetadata();
    if (std::string given = GivenRequestId(*metadata); !given.empty()) id_ = std::move(given);
    metadata->erase(kRequestIdHeader);
    metadata->emplace(kRequestIdHeader, id_);  // refers to our copy, which lives as long as the call
    metadata->erase(kMethodHeader);
    metadata->emplace(kMethodHeader, path_);
    client_ = FindClient(*context_, parts_.proxies);
    metadata->erase(kForwardedPeerHeader);
    metadata->emplace(kForwardedPeerHeader, client_);
    if (parts_.audit == nullptr) return;
    const auto caller = parts_.auth->Identify(*metadata);
    caller.ok() ? void(caller_ = *caller) : void(refused_ = RefusedSubject(caller.status()));
  }

  void End(grpc::experimental::InterceptorBatchMethods* hooks) {
    const grpc::Status status = hooks->GetSendStatus();
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) Take(hooks->GetSendMessage());
    hooks->GetSendTrailingMetadata()->emplace(kRequestIdHeader, id_);
    if (!status.ok()) hooks->ModifySendStatus(WithRequestId(status, id_));
    const absl::Duration took = parts_.clock->Monotonic() - started_;
    const std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
    const absl::Status answer = FromGrpc(status);
    if (parts_.metrics != nullptr) {
      parts_.metrics->CountRpc(label_, code, took);
      if (absl::IsResourceExhausted(answer)) parts_.metrics->CountRefusedCall(answer);
    }
    Audit(status, code);
    const LogLevel level = LevelOf(answer, method_);
    if (!IsLogged(level)) return;
    std::vector<LogField> fields = {
        {"request", id_}, {"method", label_}, {"code", code}, {"duration_ms", absl::ToDoubleMilliseconds(took)}};
    fields.insert(fields.end(), subject_.fields().begin(), subject_.fields().end());
    if (!status.ok()) fields.emplace_back("error", status.error_message());
    Log(level, status.ok() ? "call answered" : "call failed", fields);
  }

  void Audit(const grpc::Status& status, const std::string& code) {
    const grpc::StatusCode outcome = status.error_code();
    const std::string reason = ReasonOf(FromGrpc(status));
    // Under load, clients meet the bounds of the whole server (QUEUE_FULL) and try again: no misuse.
    const bool is_over_quota = reason == "TENANT_LIMIT";
    const bool is_refusal = is_over_quota || IsNotHeld(reason, method_) ||
                            outcome == grpc::StatusCode::PERMISSION_DENIED ||
                            outcome == grpc::StatusCode::UNAUTHENTICATED;
    if (parts_.audit == nullptr || (!is_refusal && !ChangesSomething(method_))) return;
    // call_gate.h accounts for calls without a known token, at a limited rate.
    if (outcome == grpc::StatusCode::UNAUTHENTICATED && !caller_) return;
    // A call that its caller ended may have changed something all the same.
    const bool was_ended = outcome == grpc::StatusCode::CANCELLED || outcome == grpc::StatusCode::DEADLINE_EXCEEDED;
    const std::optional<int64_t> left_out = TakeLine(status.ok() || was_ended, reason);
    if (!left_out) return;
    std::vector<LogField> fields = {{"principal", caller_ ? caller_->id : refused_},
                                    {"tenant", caller_ ? caller_->tenant : kDefaultTenant},
                                    {"peer", client_},
                                    {"method", label_},
                                    {"code", code},
                                    {"request", id_}};
    fields.insert(fields.end(), subject_.fields().begin(), subject_.fields().end());
    // The worker that the certificate names, in place of the one that the request names.
    if (caller_ && caller_->worker) fields.emplace_back("worker", caller_->worker->claims().worker);
    if (*left_out > 0) fields.emplace_back("left_out", *left_out);
    if (!status.ok()) fields.emplace_back("reason", reason);
    if (!status.ok()) fields.emplace_back("error", status.error_message());
    parts_.audit->Append(fields);
  }

  // As AuditRate::Take.
  std::optional<int64_t> TakeLine(bool may_have_changed, const std::string& reason) {
    if (may_have_changed && parts_.auth->wants_tokens() && !IsOfWorkers(*method_))
      return 0;  // call_quota.h has bounded it
    // A caller without a tenant is one whose JWT no rule matches.
    const Principal caller = caller_.value_or(Principal{.id = refused_});
    const absl::Duration now = parts_.clock->Monotonic();
    if (reason == "TENANT_LIMIT") return rates_->over_quota.Take({.id = caller.tenant}, now);
    if (IsNotHeld(reason, method_)) return rates_->not_held.Take(caller, now);
    return (may_have_changed ? rates_->unbounded : rates_->failed).Take(caller, now);
  }

  // Methods of our own protos have generated messages whose first base is Message. Null: no message.
  void Take(const void* message) {
    if (IsOurs(method_) && message != nullptr) subject_.Take(*static_cast<const Message*>(message));
  }

  const MethodDescriptor* const method_;
  const grpc::ServerContextBase* const context_;
  const CallRecordParts& parts_;
  AuditRates* const rates_;
  const std::string path_, label_;
  const absl::Duration started_;
  std::string id_, client_;
  std::optional<Principal> caller_;
  std::string refused_;  // RefusedSubject of a caller without rights
  Subject subject_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(const CallRecordParts& parts)
      : parts_(parts), rates_{.unbounded = AuditRate(parts.changes_at_once)} {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const RngKey key = Fold(parts_.ids, ++made_);
    const std::string id =
        absl::StrCat(absl::Hex(Fold(key, 0).value, absl::kZeroPad16), absl::Hex(Fold(key, 1).value, absl::kZeroPad16));
    return new Interceptor(info->method(), info->server_context(), parts_, &rates_, id);
  }

 private:
  const CallRecordParts parts_;  // the server keeps the factory as long as there are calls
  AuditRates rates_;
  std::atomic<uint64_t> made_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> MakeCallRecord(
    const CallRecordParts& parts) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Factory>(parts));
  return factories;
}

}  // namespace chainfleet
