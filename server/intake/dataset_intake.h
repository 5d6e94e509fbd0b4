// From uploaded files to a stored data set: decoded once, checked, cut into canonical shards, content-addressed.
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

// Collects the files of one upload within bounds, its own and that of all uploads. Not thread-safe.
class DatasetUpload {
 public:
  explicit DatasetUpload(const ByteBudget* budget) : share_(std::make_shared<UploadShare>(budget)) {}

  // All refuse with INVALID_ARGUMENT what is out of order or place, and more files, bytes of a name or data than
  // limits.h allows; RESOURCE_EXHAUSTED: over limits::kMaxDatasetUploadBytes; errors of UploadShare.
  absl::Status Begin(const std::string& name, int32_t num_files, const DecodeOptions& options = {});
  // `uri`: of a file whose data do not follow, else "".
  absl::Status StartFile(const std::string& file_name, int64_t size_bytes, const std::string& uri = "");
  absl::Status AddData(const std::string& data);

  // INVALID_ARGUMENT unless every announced file is there with its announced size: an upload that broke off is none.
  absl::Status CheckComplete() const;
  // Whether Fetch has anything to read.
  bool HasUris() const;
  // Reads the files that are named by URI, within the same bounds, each if `wanted`, else CANCELLED. Blocking. Errors
  // of DatasetRoots::Read.
  absl::Status Fetch(const DatasetRoots& roots, const std::function<bool()>& wanted);

  const std::string& name() const { return name_; }
  const std::vector<UploadedFile>& files() const { return files_; }
  const DecodeOptions& options() const { return options_; }
  // For whoever holds what was made of the files, which is as large.
  const std::shared_ptr<UploadShare>& share() const { return share_; }

 private:
  std::string name_;
  int32_t num_files_ = 0;
  DecodeOptions options_;
  std::vector<int64_t> announced_bytes_;  // by file
  std::vector<std::string> uris_;         // by file; "": its data come with the upload
  std::vector<UploadedFile> files_;
  int64_t total_bytes_ = 0;
  const std::shared_ptr<UploadShare> share_;
};

// A data set that is decoded and cut into shards (up to 16 MiB: "inputs", "labels" int32 or "targets" float32), neither
// stored nor registered. The same content gives the same digest.
struct CutDataset {
  DecodedDataset data;
  Dataset description;

  std::vector<std::string> ObjectNames() const;
};

// `nonce` as in object_names.h. Blocking. Errors of DecodeDataset.
absl::StatusOr<CutDataset> Cut(const DatasetUpload& upload, const std::string& store_incarnation, uint64_t nonce);

// Puts the shards; one that is there with other bytes is damaged and gets its own again. Blocking. Errors of
// BlobStore::Put.
absl::Status StoreShards(const CutDataset& cut, BlobStore* blobs);

}  // namespace chainfleet
