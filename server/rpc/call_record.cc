#include "server/rpc/call_record.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "core/base/log.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/method_names.h"
#include "server/rpc/request_id.h"

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::experimental::InterceptionHookPoints;

// Changes that users make. Workers change something with every call.
bool ChangesSomething(const MethodDescriptor* method) {
  constexpr std::array kReads = {"Get", "List", "Watch", "Read", "Predict", "Evaluate"};
  if (method == nullptr || method->file()->package() != "chainfleet.v1") return false;
  return method->service()->name() != "WorkerService" &&
         std::ranges::none_of(kReads, [&](const char* verb) { return method->name().starts_with(verb); });
}

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

// The ids that a request is about, under the field names that all logs use.
class Subject {
 public:
  // Later values win: a reply has ids where its request may have names.
  void Take(const Message& message) {
    const Descriptor* type = message.GetDescriptor();
    if (type == v1::Job::descriptor()) Put("job", static_cast<const v1::Job&>(message).id());
    if (type == v1::EvaluationOperation::descriptor()) {
      Put("evaluation", static_cast<const v1::EvaluationOperation&>(message).id());
    }
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
    const FieldDescriptor* epoch = Field(message, "lease_epoch", FieldDescriptor::CPPTYPE_INT64);
    if (epoch != nullptr) Put("lease_epoch", message.GetReflection()->GetInt64(message, epoch));
    const FieldDescriptor* chain = Field(message, "chain", FieldDescriptor::CPPTYPE_MESSAGE);
    if (chain != nullptr && chain->message_type() == v1::ChainId::descriptor()) {
      Take(message.GetReflection()->GetMessage(message, chain));
    }
  }

  const std::vector<LogField>& fields() const { return fields_; }

 private:
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
  Interceptor(const char* path, const Clock* clock, std::string made_id, ServerMetrics* metrics)
      : method_(FindMethod(path)),
        path_(path == nullptr ? "" : path),
        label_(method_ == nullptr ? "other" : path),  // clients may call any name
        clock_(clock),
        metrics_(metrics),
        started_(clock->Monotonic()),
        id_(std::move(made_id)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* hooks) override {
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) Begin(hooks);
    // The gate has let the headers in before a request arrives (call_gate.h). The parts of an upload are skipped.
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) && method_ != nullptr &&
        !method_->client_streaming()) {
      Take(hooks->GetRecvMessage());
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
  }

  void End(grpc::experimental::InterceptorBatchMethods* hooks) {
    const grpc::Status status = hooks->GetSendStatus();
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) Take(hooks->GetSendMessage());
    hooks->GetSendTrailingMetadata()->emplace(kRequestIdHeader, id_);
    if (!status.ok()) hooks->ModifySendStatus(WithRequestId(status, id_));
    const absl::Duration took = clock_->Monotonic() - started_;
    const std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
    if (metrics_ != nullptr) metrics_->CountRpc(label_, code, took);
    const LogLevel level = LevelOf(FromGrpc(status), method_);
    if (!IsLogged(level)) return;
    std::vector<LogField> fields = {
        {"request", id_}, {"method", label_}, {"code", code}, {"duration_ms", absl::ToDoubleMilliseconds(took)}};
    fields.insert(fields.end(), subject_.fields().begin(), subject_.fields().end());
    if (!status.ok()) fields.emplace_back("error", status.error_message());
    Log(level, status.ok() ? "call answered" : "call failed", fields);
  }

  // Methods of our own protos have generated messages whose first base is Message. Null: no message.
  void Take(const void* message) {
    if (IsOurs(method_) && message != nullptr) subject_.Take(*static_cast<const Message*>(message));
  }

  const MethodDescriptor* const method_;
  const std::string path_, label_;
  const Clock* const clock_;
  ServerMetrics* const metrics_;
  const absl::Duration started_;
  std::string id_;
  Subject subject_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Factory(const Clock* clock, RngKey ids, ServerMetrics* metrics) : clock_(clock), ids_(ids), metrics_(metrics) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const RngKey key = Fold(ids_, ++made_);
    const std::string id =
        absl::StrCat(absl::Hex(Fold(key, 0).value, absl::kZeroPad16), absl::Hex(Fold(key, 1).value, absl::kZeroPad16));
    return new Interceptor(info->method(), clock_, id, metrics_);
  }

 private:
  const Clock* const clock_;
  const RngKey ids_;
  ServerMetrics* const metrics_;
  std::atomic<uint64_t> made_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> MakeCallRecord(
    const Clock* clock, RngKey ids, ServerMetrics* metrics) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Factory>(clock, ids, metrics));
  return factories;
}

}  // namespace chainfleet
