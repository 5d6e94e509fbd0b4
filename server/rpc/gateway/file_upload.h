// The body of a request as a file: of a new data set, or of a new model.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

namespace chainfleet {

using MessageStub = grpc::TemplatedGenericStub<google::protobuf::Message, google::protobuf::Message>;

// Sends PutDataset or PutModel, whichever `header` belongs to, through `stub`; the content of a data set's file decides
// its format. Calls `done` once. `context` and `reply` live until then.
void UploadFile(MessageStub* stub, grpc::ClientContext* context, const google::protobuf::Message& header,
                std::string file, google::protobuf::Message* reply, std::function<void(const grpc::Status&)> done);

}  // namespace chainfleet
