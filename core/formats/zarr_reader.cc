#include "core/formats/zarr_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/formats/zarr_metadata.h"

namespace chainfleet {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t kMaxChunkBytes = INT32_MAX - 16;               // Blosc's limit
constexpr int64_t kMaxChunks = 1 << 22;                          // each chunk needs a call of `get`
constexpr int64_t kMaxDecodedBytes = 4 * limits::kMaxBlobBytes;  // all chunks together, with padding

// Returns the largest valid stored size of a chunk: no compressor adds more.
int64_t MaxStoredBytes(int64_t chunk_bytes) { return chunk_bytes + chunk_bytes / 8 + limits::kKiB; }

// Returns `count` times all of `sizes`; nullopt above `limit`.
std::optional<int64_t> Product(int64_t count, const Sizes& sizes, int64_t limit) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(count, size, &count) || count > limit) return std::nullopt;
  }
  return count;
}

// Returns the number of items between neighbours on each axis.
Sizes Strides(const Sizes& sizes, bool fortran_order) {
  Sizes strides(sizes.size(), 1);
  if (fortran_order) {
    for (size_t axis = 1; axis < sizes.size(); ++axis) strides[axis] = strides[axis - 1] * sizes[axis - 1];
  } else {
    for (size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  }
  return strides;
}

// Moves to the next position below `sizes`, the last axis first. Returns false after the last position.
bool Step(const Sizes& sizes, Sizes* position) {
  for (size_t axis = sizes.size(); axis-- > 0;) {
    if (++(*position)[axis] < sizes[axis]) return true;
    (*position)[axis] = 0;
  }
  return false;
}

int64_t Offset(const Sizes& position, const Sizes& strides) {
  return std::inner_product(position.begin(), position.end(), strides.begin(), int64_t{0});
}

// The array has items. An array without axes is read with shape [1], because both have the key "0".
class ChunkedArray {
 public:
  static absl::StatusOr<ChunkedArray> Make(ZarrMetadata metadata, int64_t max_bytes) {
    const int64_t item = ItemBytes(metadata.type);
    if (!Product(item, metadata.shape, max_bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("shape [", absl::StrJoin(metadata.shape, ", "),
                                                     "] takes more than the ", max_bytes / limits::kMiB,
                                                     " MiB that are left for it: write fewer rows"));
    }
    const auto chunk_bytes = Product(item, metadata.chunks, kMaxChunkBytes);
    if (!chunk_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunks [", absl::StrJoin(metadata.chunks, ", "), "] are over 2 GiB: write smaller ones"));
    }
    if (metadata.shape.empty()) metadata.shape = metadata.chunks = {1};
    Sizes grid;
    for (size_t axis = 0; axis < metadata.shape.size(); ++axis) {
      const int64_t size = metadata.shape[axis], chunk = metadata.chunks[axis];
      grid.push_back(size / chunk + (size % chunk != 0));
    }
    if (!Product(1, grid, kMaxChunks)) {
      return absl::InvalidArgumentError(absl::StrCat("chunks [", absl::StrJoin(metadata.chunks, ", "), "] are over ",
                                                     kMaxChunks, " in all: write larger ones"));
    }
    if (!Product(*chunk_bytes, grid, kMaxDecodedBytes)) {
      return absl::InvalidArgumentError(absl::StrCat("chunks [", absl::StrJoin(metadata.chunks, ", "),
                                                     "] decode to over ", kMaxDecodedBytes / limits::kMiB,
                                                     " MiB in all: write them no larger than the array"));
    }
    return ChunkedArray(std::move(metadata), *chunk_bytes, std::move(grid));
  }

  int64_t array_bytes() const { return *Product(ItemBytes(metadata_.type), metadata_.shape, INT64_MAX); }
  int64_t chunk_bytes() const { return chunk_bytes_; }

  absl::StatusOr<std::string> Read(const std::string& prefix, const ZarrGet& get) {
    std::string bytes = Filled(*Product(1, metadata_.shape, INT64_MAX));
    Sizes position(grid_.size(), 0);
    do {
      const std::string key = prefix + absl::StrJoin(position, metadata_.separator);
      absl::StatusOr<std::string> stored = get(key, MaxStoredBytes(chunk_bytes_));
      if (absl::IsNotFound(stored.status())) continue;
      CHAINFLEET_RETURN_IF_ERROR(stored.status());
      const auto chunk = DecodeZarrChunk(metadata_.compressor, *std::move(stored), chunk_bytes_);
      if (!chunk.ok()) return Annotate(chunk.status(), absl::StrCat("chunk ", key));
      Copy(*chunk, position, &bytes);
    } while (Step(grid_, &position));
    return bytes;
  }

 private:
  ChunkedArray(ZarrMetadata metadata, int64_t chunk_bytes, Sizes grid)
      : metadata_(std::move(metadata)),
        chunk_bytes_(chunk_bytes),
        grid_(std::move(grid)),
        strides_(Strides(metadata_.shape, false)),
        chunk_strides_(Strides(metadata_.chunks, metadata_.fortran_order)) {}

  std::string Filled(int64_t items) const {
    const std::string& fill = metadata_.fill;
    std::string bytes(static_cast<size_t>(items) * fill.size(), '\0');
    if (fill == std::string(fill.size(), '\0')) return bytes;
    for (size_t at = 0; at < bytes.size(); at += fill.size()) std::memcpy(bytes.data() + at, fill.data(), fill.size());
    return bytes;
  }

  // Copies the part of `chunk` inside the array; a chunk at the edge also has padding.
  void Copy(const std::string& chunk, const Sizes& position, std::string* bytes) const {
    const size_t axes = position.size();
    Sizes rows(axes), first(axes), row(axes, 0);
    for (size_t axis = 0; axis < axes; ++axis) {
      first[axis] = position[axis] * metadata_.chunks[axis];
      rows[axis] = std::min(metadata_.chunks[axis], metadata_.shape[axis] - first[axis]);
    }
    const int64_t row_items = std::exchange(rows.back(), 1), begin = Offset(first, strides_);
    do {
      CopyRow(chunk, Offset(row, chunk_strides_), row_items, begin + Offset(row, strides_), bytes);
    } while (Step(rows, &row));
  }

  void CopyRow(const std::string& chunk, int64_t from, int64_t items, int64_t to, std::string* bytes) const {
    const auto item = static_cast<size_t>(ItemBytes(metadata_.type));
    const int64_t stride = chunk_strides_.back();
    const char* source = chunk.data() + static_cast<size_t>(from) * item;
    char* target = bytes->data() + static_cast<size_t>(to) * item;
    if (stride == 1) {
      std::memcpy(target, source, static_cast<size_t>(items) * item);
      return;
    }
    for (int64_t i = 0; i < items; ++i, target += item, source += static_cast<size_t>(stride) * item) {
      std::memcpy(target, source, item);
    }
  }

  ZarrMetadata metadata_;
  int64_t chunk_bytes_;
  Sizes grid_;                     // grid of chunks
  Sizes strides_, chunk_strides_;  // in items
};

absl::Status NoArray(const std::string& prefix, const ZarrGet& get) {
  if (get(prefix + "zarr.json", kMaxZarrMetadataBytes).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "zarr.json: Zarr version 3 is not read: write the array with zarr_format=2"));
  }
  return absl::NotFoundError(absl::StrCat("no Zarr array: ", prefix, ".zarray is missing"));
}

absl::StatusOr<Array> ReadBounded(const std::string& path, const ZarrGet& get, int64_t max_bytes,
                                  const AdmitBytes& admit) {
  const std::string prefix = path.empty() ? "" : path + "/", key = prefix + ".zarray";
  const absl::StatusOr<std::string> text = get(key, kMaxZarrMetadataBytes);
  if (absl::IsNotFound(text.status())) return NoArray(prefix, get);
  CHAINFLEET_RETURN_IF_ERROR(text.status());
  absl::StatusOr<ZarrMetadata> metadata = ParseZarrMetadata(*text);
  if (!metadata.ok()) return Annotate(metadata.status(), key);
  Array array{.type = metadata->type, .shape = metadata->shape, .bytes = ""};
  if (Product(1, array.shape, INT64_MAX) == 0) return array;
  absl::StatusOr<ChunkedArray> chunks = ChunkedArray::Make(*std::move(metadata), max_bytes);
  if (!chunks.ok()) return Annotate(chunks.status(), key);
  CHAINFLEET_RETURN_IF_ERROR(admit(chunks->array_bytes() + chunks->chunk_bytes()));
  CHAINFLEET_ASSIGN_OR_RETURN(array.bytes, chunks->Read(prefix, get));
  return array;
}

bool IsZarrName(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return last == ".zarray" || last == ".zgroup" || last == "zarr.json";
}

}  // namespace

absl::StatusOr<Array> ReadZarrArray(const std::string& path, const ZarrGet& get) {
  return ReadBounded(path, get, limits::kMaxBlobBytes, AdmitAll);
}

absl::StatusOr<std::map<std::string, Array>> ReadZarr(const std::vector<std::string>& names, const ZarrGet& get,
                                                      const AdmitBytes& admit) {
  std::map<std::string, Array> arrays;
  int64_t left = limits::kMaxBlobBytes;
  for (const std::string& name : names) {
    absl::StatusOr<Array> array = ReadBounded(name, get, left, admit);
    if (absl::IsNotFound(array.status())) continue;
    CHAINFLEET_RETURN_IF_ERROR(array.status());
    left -= static_cast<int64_t>(array->bytes.size());
    arrays.emplace(name, *std::move(array));
  }
  return arrays;
}

std::optional<std::string> ZarrRoot(const std::vector<std::string>& names) {
  std::optional<std::string> root;
  for (const std::string& name : names) {
    if (!IsZarrName(name)) continue;
    const std::string top = name.substr(0, name.find('/') + 1);
    if (root && *root != top) return "";
    root = top;
  }
  return root;
}

}  // namespace chainfleet
