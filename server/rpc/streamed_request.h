// A message that a client streams, measured before it is parsed. gRPC parses what a stream reads at once, whatever
// memory that takes.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/status.h"
#include "server/rpc/method_names.h"

namespace chainfleet {

inline absl::Status NotOfThisMethod() {
  return absl::InvalidArgumentError(
      "the request is no message of this method: check its bytes against the proto, strings must be UTF-8");
}

// The request type of the handlers of client streams, in place of the message itself. Each read fills the message.
class StreamedRequest {
 public:
  // Returns whether a message may be read that takes `bytes` in all, on the wire and parsed.
  using Admit = std::function<absl::Status(int64_t bytes)>;

  // `message` outlives the request. The default admits what takes limits::kStreamParsedBytes more than on the wire:
  // messages of a few fields and one long value.
  explicit StreamedRequest(google::protobuf::Message* message, Admit admit = nullptr)
      : message_(message), admit_(std::move(admit)) {}

  const google::protobuf::Message& message() const { return *message_; }
  // INVALID_ARGUMENT: what was read last is no message of the type, and message() is empty. Otherwise the error of
  // `admit`, and message() has only its own short texts, such as its id.
  const absl::Status& status() const { return status_; }

  void Read(grpc::ByteBuffer* wire);

 private:
  absl::Status Parse(grpc::ByteBuffer* wire);

  google::protobuf::Message* const message_;
  const Admit admit_;
  absl::Status status_;
};

// A callback service that reads its client streams as StreamedRequests. Its constructor names each, by its path, and
// what opens it.
template <typename Service>
class StreamedService : public Service {
 protected:
  using Context = grpc::CallbackServerContext;
  template <typename Response>
  void TakeUpload(const char* path,
                  std::function<grpc::ServerReadReactor<StreamedRequest>*(Context*, Response*)> open) {
    using Handler = grpc::internal::CallbackClientStreamingHandler<StreamedRequest, Response>;
    this->MarkMethodCallback(FindMethod(path)->index(), new Handler(std::move(open)));
  }
  template <typename Response>
  void TakeStream(const char* path, std::function<grpc::ServerBidiReactor<StreamedRequest, Response>*(Context*)> open) {
    using Handler = grpc::internal::CallbackBidiHandler<StreamedRequest, Response>;
    this->MarkMethodCallback(FindMethod(path)->index(), new Handler(std::move(open)));
  }
};

}  // namespace chainfleet

namespace grpc {

template <>
class SerializationTraits<chainfleet::StreamedRequest> {
 public:
  // A failure would look like the end of the stream, so the request keeps it.
  static Status Deserialize(ByteBuffer* wire, chainfleet::StreamedRequest* request) {
    request->Read(wire);
    return Status::OK;
  }
};

}  // namespace grpc
