// Data sets as the files that `dataset put` takes, written so that putting them gives the same content again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/status.h"

namespace chainfleet {

// Values of --format, in the order in which they are offered.
inline const std::vector<std::string> kDatasetFormats = {"npz", "zarr", "idx", "cifar", "csv"};

// FAILED_PRECONDITION / CANNOT_HOLD if files of this format would not be read as the same content, saying why and which
// formats can hold it. RESOURCE_EXHAUSTED if they would be over what one upload may hold, or a row over one message.
absl::Status CheckDatasetFormat(const v1::Dataset& dataset, const std::string& format);

// INVALID_ARGUMENT / USAGE if `dataset put` would take what is written at `path` for another format, by its ending.
absl::Status CheckDatasetPath(const std::string& format, const std::string& path);

// How many rows to ask for at once.
int64_t RowsPerCall(const v1::Dataset& dataset);

// ABORTED: what was read is not of one content.
absl::Status ReplacedWhileRead(const v1::Dataset& dataset);

// Takes rows, then writes them. Holds them all, of a CSV the text alone: at most limits::kMaxDatasetUploadBytes.
class DatasetFiles {
 public:
  // For a data set that passed CheckDatasetFormat.
  DatasetFiles(v1::Dataset dataset, std::string format);

  // The next ones. ABORTED if they are no rows of this data set; RESOURCE_EXHAUSTED for a CSV that gets too large.
  absl::Status Add(const v1::DatasetRowValues& rows);

  // The files at or, of idx, beside `path`, as `dataset put` takes them; once, after all rows. Errors of
  // WriteOutputFile.
  absl::StatusOr<std::vector<std::string>> WriteTo(const std::string& path);

  // What the format does not tell beside the content, so that reading it gives another: sentences for the user.
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
  std::string text_;             // of a CSV, in place of all these
};

}  // namespace chainfleet
