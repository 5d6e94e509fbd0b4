// Turns uploaded files into a stored data set: decoded once, checked, cut into canonical shards, content-addressed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/formats/decoded_dataset.h"
#include "core/store/blob_store/blob_store.h"
#include "server/intake/dataset_roots.h"
#include "server/intake/upload_limits.h"

namespace chainfleet {

// Collects the files of one upload, within its own bounds and those of all uploads. Not thread-safe.
class DatasetUpload {
 public:
  // `tenant`: as UploadShare's.
  explicit DatasetUpload(const FairBudget* budget, const std::string& tenant = "")
      : share_(std::make_shared<UploadShare>(budget, tenant)) {}

  // INVALID_ARGUMENT for messages that are out of order, or for more files, bytes of a name or data than limits.h
  // allows. RESOURCE_EXHAUSTED above limits::kMaxDatasetUploadBytes. Errors of UploadShare.
  absl::Status Begin(const std::string& name, int32_t num_files, const DecodeOptions& options = {},
                     std::vector<std::string> class_names = {});
  // `uri` names a file whose data does not follow in the upload; else "".
  absl::Status StartFile(const std::string& file_name, int64_t size_bytes, const std::string& uri = "");
  absl::Status AddData(const std::string& data);

  // INVALID_ARGUMENT unless every announced file has its announced size: the upload may have broken off.
  absl::Status CheckComplete() const;
  // True if Fetch has files to read.
  bool HasUris() const;
  // Reads the files that are named by URI, within the same bounds. CANCELLED as soon as `wanted` returns false. Blocks.
  // Errors of DatasetRoots::Read.
  absl::Status Fetch(const DatasetRoots& roots, const std::function<bool()>& wanted);

  const std::string& name() const { return name_; }
  const std::vector<UploadedFile>& files() const { return files_; }
  const DecodeOptions& options() const { return options_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  // For the owner of the decoded data, which is as large as the files.
  const std::shared_ptr<UploadShare>& share() const { return share_; }

 private:
  std::string name_;
  int32_t num_files_ = 0;
  DecodeOptions options_;
  std::vector<std::string> class_names_;
  std::vector<int64_t> announced_bytes_;  // by file
  std::vector<std::string> uris_;         // by file; "": the data is part of the upload
  std::vector<UploadedFile> files_;
  int64_t total_bytes_ = 0;
  const std::shared_ptr<UploadShare> share_;
};

// A data set that is decoded and cut into shards of up to 16 MiB ("inputs", and "labels" int32 or "targets" float32),
// neither stored nor registered. The same content gives the same digest.
struct CutDataset {
  DecodedDataset data;
  Dataset description;

  std::vector<std::string> ObjectNames() const;
};

// `nonce` as in object_names.h. Blocks. Errors of DecodeDataset and CheckClassNames.
absl::StatusOr<CutDataset> Cut(const DatasetUpload& upload, const std::string& store_incarnation, uint64_t nonce);

// Writes the shards. A stored shard with different bytes is damaged and is replaced. Blocks. Errors of BlobStore::Put.
absl::Status StoreShards(const CutDataset& cut, BlobStore* blobs);

}  // namespace chainfleet
