#include "server/rpc/blob_stream.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

// Lives until OnDone. Reads run on the executor and hold only the shared part, because a cancelled call may be gone
// before a read ends.
class BlobStream final : public grpc::ServerWriteReactor<v1::Chunk> {
 public:
  BlobStream(BlobStore* blobs, Executor* executor, std::string name, BlobExpectation expected, TokenCheck still)
      : shared_(std::make_shared<Shared>(blobs, std::move(name), std::move(expected), std::move(still))),
        executor_(executor) {
    shared_->stream = this;
    ReadNext();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      FinishOnce(absl::CancelledError("the client went away"));
    } else {
      ReadNext();
    }
  }
  void OnCancel() override { FinishOnce(absl::CancelledError("the client went away")); }
  void OnDone() override { delete this; }

 private:
  struct Shared {
    Shared(BlobStore* b, std::string n, BlobExpectation e, TokenCheck s)
        : blobs(b), name(std::move(n)), expected(std::move(e)), still(std::move(s)) {}

    // Returns the next bytes, empty at the end. One call at a time.
    absl::StatusOr<std::string> Read(int64_t offset) {
      if (still) CHAINFLEET_RETURN_IF_ERROR(still());
      if (offset == 0 && expected.digest) {
        CHAINFLEET_ASSIGN_OR_RETURN(digest, expected.digest());
      }
      absl::StatusOr<std::string> data = blobs->GetRange(name, offset, limits::kChunkBytes);
      if (absl::IsNotFound(data.status()) && expected.digest) return Missing();
      if (!data.ok() || digest.empty()) return data;
      hash.Update(*data);
      if (!data->empty() || hash.Hex() == digest) return data;
      expected.mismatch();
      return WithReason(absl::DataLossError(absl::StrCat("the stored bytes of ", name, " do not match their SHA-256")),
                        "DIGEST_MISMATCH");
    }

    // Deletion removes an object's record before the object. If the record still exists, the object was lost.
    absl::Status Missing() const {
      CHAINFLEET_RETURN_IF_ERROR(expected.digest().status());
      expected.mismatch();
      return WithReason(absl::DataLossError(absl::StrCat("the object ", name, " is gone from the store")),
                        "OBJECT_MISSING");
    }

    BlobStore* const blobs;
    const std::string name;
    const BlobExpectation expected;
    const TokenCheck still;
    DigestHex digest;
    Sha256 hash;
    Mutex mutex;
    BlobStream* stream CHAINFLEET_GUARDED_BY(mutex) = nullptr;  // null once finished
  };

  void ReadNext() {
    executor_->Schedule([shared = shared_, offset = offset_] {
      absl::StatusOr<std::string> data = shared->Read(offset);
      MutexLock lock(&shared->mutex);
      if (shared->stream != nullptr) shared->stream->Write(std::move(data));
    });
  }

  // REQUIRES: the caller holds the mutex, so that the stream cannot finish meanwhile.
  void Write(absl::StatusOr<std::string> data) {
    shared_->mutex.AssertHeld();
    if (!data.ok() || data->empty()) {
      shared_->stream = nullptr;
      Finish(ToGrpc(data.status()));
      return;
    }
    offset_ += static_cast<int64_t>(data->size());
    chunk_.set_data(*std::move(data));
    StartWrite(&chunk_);
  }

  void FinishOnce(const absl::Status& status) {
    const std::shared_ptr<Shared> shared = shared_;  // Finish may delete this
    MutexLock lock(&shared->mutex);
    if (std::exchange(shared->stream, nullptr) != nullptr) Finish(ToGrpc(status));
  }

  const std::shared_ptr<Shared> shared_;
  Executor* const executor_;
  int64_t offset_ = 0;
  v1::Chunk chunk_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Chunk>* StreamBlob(BlobStore* blobs, Executor* executor, const std::string& name,
                                                TokenCheck still, BlobExpectation expected) {
  return new BlobStream(blobs, executor, name, std::move(expected), std::move(still));
}

}  // namespace chainfleet
