#include "server/rpc/blob_stream.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

// Lives until OnDone; reads run on the executor and hold the shared part, so a cancelled call may be gone before they
// end.
class BlobStream final : public grpc::ServerWriteReactor<v1::Chunk> {
 public:
  BlobStream(BlobStore* blobs, Executor* executor, std::string name)
      : shared_(std::make_shared<Shared>()), blobs_(blobs), executor_(executor), name_(std::move(name)) {
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
    Mutex mutex;
    BlobStream* stream CHAINFLEET_GUARDED_BY(mutex) = nullptr;  // null once finished
  };

  void ReadNext() {
    executor_->Schedule([shared = shared_, blobs = blobs_, name = name_, offset = offset_] {
      absl::StatusOr<std::string> data = blobs->GetRange(name, offset, limits::kChunkBytes);
      MutexLock lock(&shared->mutex);
      if (shared->stream != nullptr) shared->stream->Write(std::move(data));
    });
  }

  // Under the lock: the stream cannot finish meanwhile.
  void Write(absl::StatusOr<std::string> data) {
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
  BlobStore* const blobs_;
  Executor* const executor_;
  const std::string name_;
  int64_t offset_ = 0;
  v1::Chunk chunk_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Chunk>* StreamBlob(BlobStore* blobs, Executor* executor, const std::string& name) {
  return new BlobStream(blobs, executor, name);
}

}  // namespace chainfleet
