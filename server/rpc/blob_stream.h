// The bytes of an object down a stream of chunks; the next is read from the store when the last one has left.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// Both outlive the call. Errors of BlobStore::GetRange end the stream.
grpc::ServerWriteReactor<v1::Chunk>* StreamBlob(BlobStore* blobs, Executor* executor, const std::string& name);

}  // namespace chainfleet
