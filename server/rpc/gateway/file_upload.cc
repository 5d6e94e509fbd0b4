#include "server/rpc/gateway/file_upload.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chainfleet/v1/jobs.pb.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

constexpr size_t kChunkBytes = limits::kMiB;

const char* ExtensionOf(const std::string& file) {
  return file.starts_with("PK") ? ".npz" : file.starts_with("\x93NUMPY") ? ".npy" : ".csv";
}

// The messages before the bytes of the file.
std::vector<v1::PutDatasetRequest> Opening(v1::PutDatasetRequest::Header header, const std::string& file) {
  header.set_num_files(1);
  std::vector<v1::PutDatasetRequest> parts(2);
  parts[1].mutable_file()->set_file_name(absl::StrCat(header.name(), ExtensionOf(file)));
  parts[1].mutable_file()->set_size_bytes(static_cast<int64_t>(file.size()));
  *parts[0].mutable_header() = std::move(header);
  return parts;
}
std::vector<v1::PutModelRequest> Opening(v1::PutModelRequest::Header header, const std::string& file) {
  header.set_size_bytes(static_cast<int64_t>(file.size()));
  std::vector<v1::PutModelRequest> parts(1);
  *parts[0].mutable_header() = std::move(header);
  return parts;
}

// It deletes itself.
template <typename Request>
class FileUpload final : public grpc::ClientBidiReactor<Message, Message> {
 public:
  FileUpload(typename Request::Header header, std::string file, std::function<void(const grpc::Status&)> done)
      : opening_(Opening(std::move(header), file)), file_(std::move(file)), done_(std::move(done)) {}

  void Start(MessageStub* stub, grpc::ClientContext* context, const std::string& method, Message* reply) {
    stub->PrepareBidiStreamingCall(context, method, {}, this);
    StartWrite(&opening_[0]);
    StartRead(reply);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the server has refused the upload
    if (++opened_ < opening_.size()) return StartWrite(&opening_[opened_]);
    if (sent_ == file_.size()) return StartWritesDone();
    part_.set_data(file_.substr(sent_, kChunkBytes));
    sent_ += part_.data().size();
    StartWrite(&part_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::unique_ptr<FileUpload> self(this);
    done_(status);
  }

 private:
  const std::vector<Request> opening_;
  const std::string file_;
  const std::function<void(const grpc::Status&)> done_;
  Request part_;
  size_t opened_ = 0, sent_ = 0;
};

}  // namespace

void UploadFile(MessageStub* stub, grpc::ClientContext* context, const Message& header, std::string file,
                Message* reply, std::function<void(const grpc::Status&)> done) {
  const auto upload = [&]<typename Request>(const char* method, const Request&) {
    const auto& own = static_cast<const typename Request::Header&>(header);
    (new FileUpload<Request>(own, std::move(file), std::move(done)))->Start(stub, context, method, reply);
  };
  if (header.GetDescriptor() == v1::PutModelRequest::Header::descriptor()) {
    return upload("/chainfleet.v1.JobService/PutModel", v1::PutModelRequest());
  }
  upload("/chainfleet.v1.JobService/PutDataset", v1::PutDatasetRequest());
}

}  // namespace chainfleet
