#include "server/rpc/gateway/file_upload.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

constexpr size_t kChunkBytes = limits::kMiB;

const char* ExtensionOf(const std::string& file) {
  return file.starts_with("PK") ? ".npz" : file.starts_with("\x93NUMPY") ? ".npy" : ".csv";
}

// It deletes itself.
class FileUpload final : public grpc::ClientBidiReactor<Message, Message> {
 public:
  FileUpload(v1::PutDatasetRequest::Header header, std::string file, std::function<void(const grpc::Status&)> done)
      : file_(std::move(file)), done_(std::move(done)) {
    header.set_num_files(1);
    *part_.mutable_header() = std::move(header);
  }

  void Start(Message* reply) {
    StartWrite(&part_);
    StartRead(reply);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the server has refused the upload
    if (part_.has_header()) {
      v1::PutDatasetRequest::FileStart start;
      start.set_file_name(absl::StrCat(part_.header().name(), ExtensionOf(file_)));
      start.set_size_bytes(static_cast<int64_t>(file_.size()));
      *part_.mutable_file() = std::move(start);
    } else if (sent_ < file_.size()) {
      part_.set_data(file_.substr(sent_, kChunkBytes));
      sent_ += part_.data().size();
    } else {
      return StartWritesDone();
    }
    StartWrite(&part_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::unique_ptr<FileUpload> self(this);
    done_(status);
  }

 private:
  const std::string file_;
  const std::function<void(const grpc::Status&)> done_;
  v1::PutDatasetRequest part_;
  size_t sent_ = 0;
};

}  // namespace

void UploadFile(MessageStub* stub, grpc::ClientContext* context, v1::PutDatasetRequest::Header header, std::string file,
                Message* reply, std::function<void(const grpc::Status&)> done) {
  auto* const upload = new FileUpload(std::move(header), std::move(file), std::move(done));
  stub->PrepareBidiStreamingCall(context, "/chainfleet.v1.JobService/PutDataset", {}, upload);
  upload->Start(reply);
}

}  // namespace chainfleet
