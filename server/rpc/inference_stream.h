// ModelStreamInfer: a stream of requests, answered in their order.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/bytes_in_flight.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/streamed_request.h"
#include "server/rpc/token_check.h"

namespace chainfleet {

// The answer to one request of a stream; its methods are those of PendingAnswer. Thread-safe.
class StreamedAnswer {
 public:
  // Answers with an error_message and the request's id. The stream goes on.
  void Fail(const absl::Status& status);
  void Succeed(inference::ModelInferResponse response, std::shared_ptr<const void> held = nullptr);
  // Runs `cancel` if the stream ends before the answer; at once if it has ended already.
  void OnCancelled(std::function<void()> cancel);

 private:
  friend class InferenceStreams;
  using Session = class InferenceSession;
  friend Session;
  StreamedAnswer(std::shared_ptr<Session> session, std::string id) : session_(std::move(session)), id_(std::move(id)) {}

  const std::shared_ptr<Session> session_;  // its lock guards the members below
  const std::string id_;
  bool is_ready_ = false;
  inference::ModelStreamInferResponse response_;
  std::shared_ptr<const void> room_, held_;  // room: for the request, then for the answer
  std::function<void()> cancel_;
};

// The open streams of a server. Each has at most kStreamRequests requests that are not answered; further ones are not
// read, so flow control holds the client back. Thread-safe.
class InferenceStreams {
 public:
  using Infer =
      std::function<void(inference::ModelInferRequest request, const std::shared_ptr<StreamedAnswer>& answer)>;
  using Reactor = grpc::ServerBidiReactor<StreamedRequest, inference::ModelStreamInferResponse>;

  // `bytes` and `executor` outlive the streams.
  InferenceStreams(BytesInFlight* bytes, Executor* executor) : bytes_(bytes), executor_(executor) {}

  // `infer` answers each request once. It is called while the call of `context` lasts. A stream of no `tenant` is
  // refused with its error, and one of the tenant "" has no share to keep to. An error of `still`, which is asked
  // before each request and each kTokenCheckInterval, ends the stream after the answers to the requests before. If
  // these take longer than an interval, the call is cancelled.
  Reactor* Open(const grpc::CallbackServerContext& context, const ClientDeadline& deadline,
                const absl::StatusOr<std::string>& tenant, const TokenCheck& still, Infer infer);

  // Reads no further request and ends each stream after its last answer, so that clients open another one.
  void End();

 private:
  using Session = InferenceSession;
  absl::Status Add(const std::shared_ptr<Session>& session);

  BytesInFlight* const bytes_;
  Executor* const executor_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Session>> sessions_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
