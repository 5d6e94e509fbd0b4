#include "client/cli/input_array.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/zarr_folder.h"
#include "core/base/file_system.h"
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

absl::StatusOr<Array> ReadFile(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string bytes, RealFileSystem()->Read(path));
  if (IsGzip(bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(bytes, Gunzip(bytes));
  }
  if (bytes.starts_with("PK")) return ReadZippedInputs(bytes);
  if (!IsIdx(bytes)) return ReadNpy(bytes);
  CHAINFLEET_ASSIGN_OR_RETURN(Array array, ReadIdx(bytes));
  // IDX images are [n, height, width]; networks see one channel.
  if (array.shape.size() == 3) array.shape.insert(array.shape.begin() + 1, 1);
  return array;
}

}  // namespace

absl::StatusOr<Array> ReadInputArray(const std::string& path) {
  std::error_code gone;  // reading will tell
  const bool is_folder = std::filesystem::is_directory(path, gone);
  auto array = is_folder ? ReadZarrInputs(KeysOf(path)) : ReadFile(path);
  if (!array.ok()) return Annotate(array.status(), path);
  if (array->type != ArrayType::kUint8 && array->type != ArrayType::kFloat32) {
    const char* name = array->type == ArrayType::kInt32   ? "int32 (<i4)"
                       : array->type == ArrayType::kInt64 ? "int64 (<i8)"
                                                          : "float64 (<f8)";
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", name, ": inputs are uint8 (counts as x / 255) or float32"));
  }
  if (array->shape.size() < 2 || array->shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has shape [", absl::StrJoin(array->shape, ", "),
                                                   "]: inputs are [rows, input shape...] with at least one row"));
  }
  return array;
}

}  // namespace chainfleet
