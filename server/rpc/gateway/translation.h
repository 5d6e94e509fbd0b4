// How one request of the HTTP port becomes the message of a method, and how the method's reply becomes an answer.
#pragma once

#include <google/protobuf/message.h>

#include <memory>

#include "core/base/status.h"
#include "server/http/http_message.h"

namespace chainfleet {

// Made for one request.
class Translation {
 public:
  virtual ~Translation() = default;
  // Fills `message` from the body. The fields that the path and the query name are set later. INVALID_ARGUMENT.
  virtual absl::Status Read(WebRequest* request, google::protobuf::Message* message) = 0;
  // REQUIRES: Read has succeeded with `request`.
  virtual WebReply Write(const google::protobuf::Message& request, const google::protobuf::Message& reply) = 0;
};

// Takes no body. The reply is JSON as the Open Inference Protocol wants it (PlainJson).
std::unique_ptr<Translation> MakePlainTranslation();

// Takes no body. The reply's field `ready` or `live` decides between 200 and 400, as Triton does.
std::unique_ptr<Translation> MakeReadyTranslation();

// RepositoryIndex: the reply is an array, as Triton's.
std::unique_ptr<Translation> MakeIndexTranslation();

// Body and reply in protobuf's JSON mapping.
std::unique_ptr<Translation> MakeMessageTranslation();

// Takes no body. The replies, each a Chunk, are the bytes of one body.
std::unique_ptr<Translation> MakeBytesTranslation();

// ModelInfer, with JSON and binary tensors.
std::unique_ptr<Translation> MakeInferTranslation();

}  // namespace chainfleet
