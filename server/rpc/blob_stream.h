// The bytes of an object down a stream of chunks; the next is read from the store when the last one has left.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/domain/draw.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// What the bytes are held to. Both run on the executor.
struct BlobExpectation {
  std::function<absl::StatusOr<DigestHex>()> digest;  // first of all; its error ends the stream
  std::function<void()> mismatch;  // before the stream ends with DATA_LOSS: other bytes, or no object
};

// Stores outlive the call. Errors of BlobStore::GetRange end the stream.
grpc::ServerWriteReactor<v1::Chunk>* StreamBlob(BlobStore* blobs, Executor* executor, const std::string& name,
                                                BlobExpectation expected = {});

}  // namespace chainfleet
