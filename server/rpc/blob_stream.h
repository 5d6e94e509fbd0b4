// Streams the bytes of an object in chunks. The next chunk is read from the store when the last one has been sent.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/domain/draw.h"
#include "core/store/blob_store/blob_store.h"
#include "server/rpc/token_check.h"

namespace chainfleet {

// The check of a streamed object. Both functions run on the executor.
struct BlobExpectation {
  std::function<absl::StatusOr<DigestHex>()> digest;  // called before the first read; its error ends the stream
  // called before the stream ends with DATA_LOSS: the bytes differ, or the object is gone
  std::function<void()> mismatch;
};

// `blobs` and `executor` outlive the call. Errors of BlobStore::GetRange end the stream, and so do those of `still`,
// which runs before each read.
grpc::ServerWriteReactor<v1::Chunk>* StreamBlob(BlobStore* blobs, Executor* executor, const std::string& name,
                                                TokenCheck still, BlobExpectation expected = {});

}  // namespace chainfleet
