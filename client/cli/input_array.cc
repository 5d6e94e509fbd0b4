#include "client/cli/input_array.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/zarr_folder.h"
#include "core/base/file_system.h"
#include "core/formats/csv.h"
#include "core/formats/gzip.h"
#include "core/formats/idx.h"
#include "core/formats/npy.h"
#include "core/formats/zarr_reader.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

absl::StatusOr<Array> ReadZarrInputs(const ZarrGet& get) {
  absl::StatusOr<Array> array = ReadZarrArray("", get);
  if (!absl::IsNotFound(array.status())) return array;
  array = ReadZarrArray("x", get);
  if (!absl::IsNotFound(array.status())) return array;
  return absl::InvalidArgumentError("holds neither a Zarr array nor a Zarr group with an array x");
}

absl::StatusOr<Array> ReadZippedInputs(const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ZipReader archive, ZipReader::Open(bytes, "Zarr"));
  const std::string root = ZarrRoot(archive.names()).value_or("");
  return ReadZarrInputs([&](const std::string& key, int64_t max_bytes) { return archive.Read(root + key, max_bytes); });
}

absl::StatusOr<Array> ReadCsvInputs(const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(bytes));
  const auto* values = reinterpret_cast<const char*>(table.values.data());
  return Array{ArrayType::kFloat64,
               {table.num_rows, static_cast<int64_t>(table.columns.size())},
               std::string(values, table.values.size() * sizeof(double))};
}

// Converts a float64 array. INVALID_ARGUMENT for a finite value that float32 cannot hold.
absl::StatusOr<Array> ToFloat32(const Array& array) {
  Array narrow{ArrayType::kFloat32, array.shape, std::string(array.bytes.size() / 2, '\0')};
  for (size_t i = 0; i < array.bytes.size() / sizeof(double); ++i) {
    double wide = 0;
    std::memcpy(&wide, array.bytes.data() + i * sizeof(double), sizeof(double));
    if (std::isfinite(wide) && std::abs(wide) > std::numeric_limits<float>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("holds ", wide, ", which is beyond float32"));
    }
    const auto value = static_cast<float>(wide);
    std::memcpy(narrow.bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return narrow;
}

absl::StatusOr<Array> ReadFile(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string bytes, RealFileSystem()->Read(path));
  if (IsGzip(bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(bytes, Gunzip(bytes));
  }
  if (bytes.starts_with("PK")) return ReadZippedInputs(bytes);
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) return ReadCsvInputs(bytes);
  if (!IsIdx(bytes)) return ReadNpy(bytes);
  CHAINFLEET_ASSIGN_OR_RETURN(Array array, ReadIdx(bytes));
  // IDX images are [n, height, width]; networks need one channel.
  if (array.shape.size() == 3) array.shape.insert(array.shape.begin() + 1, 1);
  return array;
}

}  // namespace

absl::StatusOr<Array> ReadInputArray(const std::string& path) {
  std::error_code gone;  // the read reports errors
  const bool is_folder = std::filesystem::is_directory(path, gone);
  auto array = is_folder ? ReadZarrInputs(KeysOf(path)) : ReadFile(path);
  if (array.ok() && array->type == ArrayType::kFloat64) array = ToFloat32(*array);
  if (!array.ok()) return Annotate(array.status(), path);
  if (array->type != ArrayType::kUint8 && array->type != ArrayType::kFloat32) {
    const char* name = array->type == ArrayType::kInt32 ? "int32 (<i4)" : "int64 (<i8)";
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", name, ": inputs are uint8 (counts as x / 255), float32 or float64"));
  }
  if (array->shape.size() < 2 || array->shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has shape [", absl::StrJoin(array->shape, ", "),
                                                   "]: inputs are [rows, input shape...] with at least one row"));
  }
  return array;
}

}  // namespace chainfleet
