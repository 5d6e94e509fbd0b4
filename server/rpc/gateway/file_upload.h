// The body of a request as the only file of a new data set.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "chainfleet/v1/jobs.pb.h"

namespace chainfleet {

using MessageStub = grpc::TemplatedGenericStub<google::protobuf::Message, google::protobuf::Message>;

// Sends PutDataset through `stub`; the content of `file` decides the format. Calls `done` once. `context` and `reply`
// live until then.
void UploadFile(MessageStub* stub, grpc::ClientContext* context, v1::PutDatasetRequest::Header header, std::string file,
                google::protobuf::Message* reply, std::function<void(const grpc::Status&)> done);

}  // namespace chainfleet
