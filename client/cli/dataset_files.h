// Writes data sets as files for `dataset put`, so that uploading them gives the same content again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/status.h"

namespace chainfleet {

// Values of --format, in the order of the help text.
inline const std::vector<std::string> kDatasetFormats = {"npz", "zarr", "idx", "cifar", "csv"};

// FAILED_PRECONDITION / CANNOT_HOLD: files of this format would not be read as the same content; the error says why and
// which formats can hold it. RESOURCE_EXHAUSTED: the files would exceed the bound of an upload, or a row the bound of a
// message.
absl::Status CheckDatasetFormat(const v1::Dataset& dataset, const std::string& format);

// INVALID_ARGUMENT / USAGE: by the ending of `path`, `dataset put` would take the file for another format.
absl::Status CheckDatasetPath(const std::string& format, const std::string& path);

// The number of rows to request at once.
int64_t RowsPerCall(const v1::Dataset& dataset);

// ABORTED: the rows read belong to different contents.
absl::Status ReplacedWhileRead(const v1::Dataset& dataset);

// Collects rows, then writes them. Holds them all, or for a CSV only the text: at most limits::kMaxDatasetUploadBytes.
class DatasetFiles {
 public:
  // `dataset` has passed CheckDatasetFormat.
  DatasetFiles(v1::Dataset dataset, std::string format);

  // Adds the next rows. ABORTED: they are not rows of this data set. RESOURCE_EXHAUSTED: the CSV is too large.
  absl::Status Add(const v1::DatasetRowValues& rows);

  // Writes the files at `path`, or for idx next to it, and returns their names for `dataset put`. Called once, after all
  // rows. Errors of WriteOutputFile.
  absl::StatusOr<std::vector<std::string>> WriteTo(const std::string& path);

  // Sentences for the user: settings that the format does not hold, so that reading the files gives other content.
  std::vector<std::string> Differences() const;

 private:
  absl::Status AddText(const v1::DatasetRowValues& rows, int64_t num_rows);
  absl::StatusOr<std::vector<std::string>> WriteIdxPair(const std::string& path);
  absl::Status WriteArrays(const std::string& path);

  const v1::Dataset dataset_;
  const std::string format_;
  int64_t num_rows_ = 0;
  int32_t largest_label_ = 0;
  std::string inputs_;           // [num_rows, input_shape...]
  std::vector<int32_t> labels_;  // [num_rows]; or
  std::vector<float> targets_;   // [num_rows]
  std::string text_;             // the text of a CSV, instead of the arrays
};

}  // namespace chainfleet
