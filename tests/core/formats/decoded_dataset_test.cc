#include "core/formats/decoded_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "core/formats/zarr.h"
#include "core/formats/zip.h"
#include "tests/support/deflated.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::VariantWith;

template <typename... Labels>
auto LabelsAre(Labels... labels) {
  return VariantWith<std::vector<int32_t>>(ElementsAre(labels...));
}

const std::string kImages("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04", 20);
const std::string kLabels("\0\0\x08\x01\0\0\0\x02\x05\x07", 10);

std::string Error(const std::vector<UploadedFile>& files) {
  return std::string(DecodeDataset(files).status().message());
}

Array FloatArray(std::vector<int64_t> shape, const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  return {.type = ArrayType::kFloat32, .shape = std::move(shape), .bytes = {bytes, bytes + values.size() * 4}};
}

// "The same numbers as CSV and as npz of one axis give two posteriors: one rule for features, images apart."
TEST(DecodedDataset, EachFeatureHasAScaleInEveryFormat) {
  const Array labels = FloatArray({2}, {0, 1});
  const auto npz = DecodeDataset({{"d.npz", *WriteNpz({{"x", FloatArray({2, 3}, {1, 2, 3, 4, 5, 6})}, {"y", labels}})}},
                                 {.float32_targets = true});
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_EQ(npz->channels, 3);
  const Array flat_image{ArrayType::kUint8, {2, 3}, "abcdef"};
  const auto bytes =
      DecodeDataset({{"d.npz", *WriteNpz({{"x", flat_image}, {"y", labels}})}}, {.float32_targets = true});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->channels, 1) << "pixels in a row";
}

TEST(DecodeDataset, PairsIdxFilesInEitherOrder) {
  for (const auto& files :
       {std::vector<UploadedFile>{{"i", kImages}, {"l", kLabels}}, {{"l", kLabels}, {"i", kImages}}}) {
    const auto data = DecodeDataset(files);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_TRUE(data->is_uint8);
    EXPECT_THAT(data->input_shape, ElementsAre(1, 1, 2));
    EXPECT_EQ(data->num_rows, 2);
    EXPECT_EQ(data->num_classes, 8);
    EXPECT_EQ(data->inputs, "\x01\x02\x03\x04");
    EXPECT_THAT(data->targets, LabelsAre(5, 7));
  }
}

TEST(DecodeDataset, RefusesCountsThatDiffer) {
  const std::string one_label("\0\0\x08\x01\0\0\0\x01\x05", 9);
  EXPECT_THAT(Error({{"i", kImages}, {"l", one_label}}), HasSubstr("i has 2 rows, l has 1 labels"));
}

TEST(DecodeDataset, RefusesAMissingOrUnknownFile) {
  EXPECT_THAT(Error({}), HasSubstr("no file"));
  EXPECT_THAT(Error({{"i", kImages}}), HasSubstr("inputs and labels"));
  EXPECT_THAT(Error({{"photo.jpg", "\xff\xd8"}, {"l", kLabels}}), HasSubstr("photo.jpg: not a known format"));
}

TEST(DecodeDataset, NamesTheRowOfANan) {
  const std::string x = WriteNpy(FloatArray({2, 2}, {1, 2, 3, NAN})), y = WriteNpy(FloatArray({2}, {0, 1}));
  EXPECT_THAT(Error({{"x.npy", x}, {"y.npy", y}}), HasSubstr("x.npy: row 1 holds nan"));
}

TEST(DecodeDataset, RefusesLabelsThatAreNoClasses) {
  const std::string x = WriteNpy(FloatArray({2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(Error({{"x.npy", x}, {"y.npy", WriteNpy(FloatArray({2}, {0, -1}))}}), HasSubstr("label -1 of row 1"));
  EXPECT_THAT(Error({{"x.npy", x}, {"y.npy", WriteNpy(FloatArray({2}, {0.5, 1}))}}), HasSubstr("label 0.5 of row 0"));
}

TEST(DecodeDataset, ReadsNpzCsvAndCifar) {
  const auto npz = WriteNpz({{"x", FloatArray({1, 2}, {1, 2})}, {"y", FloatArray({1}, {3})}});
  EXPECT_EQ(DecodeDataset({{"d.npz", *npz}})->num_classes, 4);
  const auto csv = DecodeDataset({{"d.csv", "a,b,label\n1,2,0\n3,4,1\n"}});
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_THAT(csv->input_shape, ElementsAre(2));
  EXPECT_THAT(csv->targets, LabelsAre(0, 1));
  std::string record(3073, '\x10');
  record[0] = 9;
  const auto cifar = DecodeDataset({{"data_batch_1.bin", record + record}});
  ASSERT_TRUE(cifar.ok()) << cifar.status();
  EXPECT_THAT(cifar->input_shape, ElementsAre(3, 32, 32));
  EXPECT_THAT(cifar->targets, LabelsAre(9, 9));
  EXPECT_THAT(Error({{"data_batch_1.bin", record + record + "x"}}), HasSubstr("6147 bytes"));
  record[0] = 10;
  EXPECT_THAT(Error({{"b.bin", record}}), HasSubstr("b.bin: label 10 of record 0 is not 0 to 9"));
}

TEST(DecodeDataset, TakesTheFineLabelsOfCifar100) {
  std::string record(3074, '\x10');
  record[0] = 19;
  record[1] = 99;
  record[2] = 7;
  const auto cifar = DecodeDataset({{"train.bin", record + record}, {"more.bin", record}});
  ASSERT_TRUE(cifar.ok()) << cifar.status();
  EXPECT_THAT(cifar->targets, LabelsAre(99, 99, 99));
  EXPECT_EQ(cifar->num_classes, 100);
  EXPECT_EQ(cifar->channels, 3);
  EXPECT_EQ(cifar->inputs.size(), 3u * 3072);
  EXPECT_EQ(cifar->inputs[3072], 7);
  record[1] = 100;
  EXPECT_THAT(Error({{"train.bin", record}}), HasSubstr("label 100 of record 0 is not 0 to 99"));
}

TEST(DecodeDataset, PredictsTheColumnOfACsvThatIsNamed) {
  const std::string csv = "a,y,b\n1,0.5,2\n\n3,-4,5\n";
  const auto data = DecodeDataset({{"d.csv", csv}}, {"y", true});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets, VariantWith<std::vector<float>>(ElementsAre(0.5f, -4)));
  EXPECT_EQ(data->num_classes, 0);
  EXPECT_EQ(data->channels, 2);
  float inputs[4];
  ASSERT_EQ(data->inputs.size(), sizeof inputs);
  std::memcpy(inputs, data->inputs.data(), sizeof inputs);
  EXPECT_THAT(inputs, ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(DecodeDataset({{"d.csv", "1,0\n2,1\n"}}, {"0", true})->targets,
              VariantWith<std::vector<float>>(ElementsAre(1, 2)));
}

TEST(DecodeDataset, ReportsThePlaceOfAnInvalidTarget) {
  const std::string csv = "a,y,b\n1,1,2\n\n3,0.5,5\n";
  const auto error = [](const UploadedFile& file, const DecodeOptions& options) {
    return std::string(DecodeDataset({file}, options).status().message());
  };
  EXPECT_THAT(error({"d.csv", csv}, {"y"}), HasSubstr("d.csv: label 0.5 of line 4, column y, is not a whole number"));
  EXPECT_THAT(error({"d.csv", csv}, {"z"}), HasSubstr("d.csv: no column \"z\"; it has a, y, b"));
  EXPECT_THAT(error({"d.csv", "a,y\n1,1e300\n"}, {"y", true}),
              HasSubstr("target 1e+300 of line 2, column y, is no finite float32"));
  EXPECT_THAT(error({"d.csv", "a,y\n1,two\n"}, {"y", true}), HasSubstr("line 2, column y: \"two\""));
  EXPECT_THAT(error({"x.npy", ""}, {"y"}), HasSubstr("only a CSV"));
  EXPECT_THAT(error({"b.bin", std::string(3073, '\0')}, {"", true}), HasSubstr("CIFAR has labels"));
}

// Returns a zip of the folder `top` that holds them ("" or "mine.zarr/").
std::string ZippedZarr(const std::map<std::string, Array>& arrays, const std::string& top) {
  std::vector<std::pair<std::string, std::string>> members;
  EXPECT_TRUE(WriteZarr(arrays, 8, [&](const std::string& key, const std::string& content) {
                members.emplace_back(top + key, content);
                return absl::OkStatus();
              }).ok());
  return *WriteZip(members);
}

TEST(DecodeDataset, ReadsAZippedZarrGroupAsAnNpz) {
  const std::map<std::string, Array> arrays = {{"x", FloatArray({3, 2}, {1, 2, 3, 4, 5, 6})},
                                               {"y", FloatArray({3}, {0, 2, 1})}};
  const auto wanted = DecodeDataset({{"d.npz", *WriteNpz(arrays)}});
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (const char* top : {"", "mine.zarr/"}) {
    const auto data = DecodeDataset({{"mine.zarr.zip", ZippedZarr(arrays, top)}});
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->inputs, wanted->inputs);
    EXPECT_EQ(data->targets, wanted->targets);
    EXPECT_EQ(data->input_shape, wanted->input_shape);
  }
}

TEST(DecodeDataset, ReportsDefectsOfAZarrGroup) {
  const Array x = FloatArray({1, 2}, {1, 2}), y = FloatArray({1}, {0});
  EXPECT_THAT(Error({{"d.zip", ZippedZarr({{"x", x}, {"z", y}}, "")}}),
              HasSubstr("d.zip: the archive must hold arrays x and y, as x.npy and y.npy or as a Zarr group"));
  EXPECT_THAT(Error({{"d.zip", *WriteZip({{".zgroup", "{}"}, {"x/.zarray", "{"}})}}),
              HasSubstr("d.zip: x/.zarray: is no JSON object"));
  EXPECT_THAT(Error({{"d.zip", *WriteZip({{"zarr.json", "{}"}, {"x/zarr.json", "{}"}})}}),
              HasSubstr("d.zip: x/zarr.json: Zarr version 3 is not read"));
}

// The .zarray of an array of zeros.
std::string ZarrOfBytes(const std::vector<int64_t>& shape) {
  return absl::StrCat(R"({"zarr_format": 2, "shape": [)", absl::StrJoin(shape, ", "), R"(], "chunks": [)",
                      absl::StrJoin(std::vector<int>(shape.size(), 1), ", "),
                      R"(], "dtype": "|u1", "compressor": null, "fill_value": 0, "order": "C", "filters": null})");
}

std::string Idx(const std::vector<uint8_t>& shape, const std::string& bytes) {
  std::string idx("\0\0\x08", 3);
  idx += static_cast<char>(shape.size());
  for (const uint8_t size : shape) idx += std::string(3, '\0') + static_cast<char>(size);
  return idx + bytes;
}

TEST(DecodeDataset, RefusesASizeOfZeroWhereverItStands) {
  const auto empty = [](std::vector<int64_t> shape) {
    return Array{.type = ArrayType::kUint8, .shape = std::move(shape), .bytes = ""};
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{0, 1, 28, 28}, {5, 0, 28, 28}, {5, 1, 28, 0}, {1, kHuge, 0, 8}, {5, 0}}) {
    const Array x = empty(shape), y = FloatArray({shape[0]}, std::vector<float>(static_cast<size_t>(shape[0]), 1));
    const std::string wanted =
        absl::StrCat("is [", absl::StrJoin(shape, ", "), "]: the size of each axis must be at least 1");
    EXPECT_THAT(Error({{"x.npy", WriteNpy(x)}, {"y.npy", WriteNpy(y)}}), HasSubstr("x.npy " + wanted));
    const auto zip = WriteZip({{"x/.zarray", ZarrOfBytes(shape)}, {"y/.zarray", ZarrOfBytes({shape[0]})}});
    EXPECT_THAT(Error({{"d.zip", *zip}}), HasSubstr("d.zip: x " + wanted));
    EXPECT_THAT(Error({{"d.npz", *WriteNpz({{"x", x}, {"y", y}})}}), HasSubstr("d.npz: x " + wanted));
  }
}

TEST(DecodeDataset, RefusesASizeOfZeroOfIdxFiles) {
  // The decoder multiplies sizes only until the file could not hold the product.
  for (const auto& shape : std::vector<std::vector<uint8_t>>{{0, 28, 28}, {5, 0, 28}, {5, 28, 0}}) {
    EXPECT_THAT(Error({{"i", Idx(shape, "")}, {"l", Idx({5}, "abcde")}}), HasSubstr("i: IDX header promises"));
  }
}

TEST(DecodeDataset, RefusesSizesOfZarrThatNoProductHolds) {
  const std::vector<int64_t> shape = {5, int64_t{1} << 62, 8, 0};
  const auto zip = WriteZip({{"x/.zarray", ZarrOfBytes(shape)}, {"y/.zarray", ZarrOfBytes({5})}});
  EXPECT_THAT(Error({{"d.zip", *zip}}), HasSubstr("d.zip: x is [5, 4611686018427387904, 8, 0]: the size of each axis"));
}

TEST(DecodeDataset, RefusesACutGzipAsAFaultOfTheFile) {
  const auto cut = DecodeDataset({{"i.gz", std::string("\x1f\x8b\x08\0\0", 5)}, {"l", kLabels}});
  EXPECT_TRUE(absl::IsInvalidArgument(cut.status())) << cut.status();
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("i.gz: compressed data is cut"));
}

TEST(DecodeDataset, DecodesNothingOfAnArchiveButXAndY) {
  const auto npy = [](std::vector<int64_t> shape, const std::vector<float>& values) {
    return WriteNpy(FloatArray(std::move(shape), values));
  };
  const auto zip = WriteZip({{"x.npy", npy({1, 2}, {1, 2})}, {"huge.npy", "no array"}, {"y.npy", npy({1}, {3})}});
  EXPECT_EQ(DecodeDataset({{"d.npz", *zip}})->num_classes, 4);
}

TEST(DecodeDataset, ReadsFloat32TargetsOfArrays) {
  const auto npz = WriteNpz({{"x", FloatArray({2, 2}, {1, 2, 3, 4})}, {"y", FloatArray({2}, {-0.25, 3})}});
  EXPECT_THAT(DecodeDataset({{"d.npz", *npz}}, {"", true})->targets,
              VariantWith<std::vector<float>>(ElementsAre(-0.25, 3)));
  const auto nan = WriteNpz({{"x", FloatArray({2, 2}, {1, 2, 3, 4})}, {"y", FloatArray({2}, {0, NAN})}});
  EXPECT_THAT(std::string(DecodeDataset({{"d.npz", *nan}}, {"", true}).status().message()),
              HasSubstr("d.npz: y: target nan of row 1"));
}

// A budget of bytes, and the bytes that a decoder requested.
struct Budget {
  int64_t left;
  AdmitBytes admit() {
    return [this](int64_t bytes) {
      if (bytes > left) return absl::ResourceExhaustedError("the budget is spent");
      left -= bytes;
      return absl::OkStatus();
    };
  }
};

TEST(DecodeDataset, TakesFromTheBudgetBeforeItMakesBytes) {
  constexpr int64_t kMiB = 1 << 20, kBudget = 4 * kMiB;
  const std::string zeros(64 * kMiB, '\0');
  const std::string gzip = Deflated(Idx({1, 64, 255, 255}, "").substr(0, 20) + zeros, kGzipFormat);
  ASSERT_LT(gzip.size(), kMiB / 8);
  const std::string kGigabyte =
      R"({"zarr_format": 2, "shape": [1073741824], "chunks": [1048576], "dtype": "|u1", "compressor": null, )"
      R"("fill_value": 0, "order": "C", "filters": null})";
  const auto npz = [&] { return *WriteZip({{"x.npy", zeros}, {"y.npy", "none"}}); };
  const auto zarr = *WriteZip({{"x/.zarray", kGigabyte}, {"y/.zarray", ZarrOfBytes({5})}});
  std::string csv;
  for (int i = 0; i < 500'000; ++i) csv += "1,2\n";
  for (const UploadedFile& file :
       std::vector<UploadedFile>{{"d.gz", gzip}, {"d.npz", npz()}, {"d.zip", zarr}, {"d.csv", csv}, {"d.npy", zeros}}) {
    Budget budget{kBudget};
    const absl::Status refused = DecodeDataset({file}, {}, budget.admit()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << file.name << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("the budget is spent")) << file.name;
  }
}

TEST(DecodeDataset, AsksForAtLeastWhatItReturns) {
  Budget budget{1 << 20};
  const auto data = DecodeDataset({{"d.csv", "a,b,label\n1,2,0\n3,4,1\n"}}, {}, budget.admit());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_GE((1 << 20) - budget.left, static_cast<int64_t>(data->inputs.size() + 4 * data->num_rows));
}

TEST(DecodeDataset, BoundsColumnsAndTheirNames) {
  const std::string wide = std::string(200'000, ',') + "\n";
  EXPECT_THAT(Error({{"d.csv", wide}}), HasSubstr("line 1 has 200001 cells, the most is 65537"));
  EXPECT_THAT(Error({{"d.csv", std::string(300, 'a') + ",b\n1,2\n"}}), HasSubstr("the name of column 0 has 300 bytes"));
  std::string header = "c0";
  for (int i = 1; i < 1000; ++i) header += ",c" + std::to_string(i);
  std::string row = "1";
  for (int i = 1; i < 1000; ++i) row += ",1";
  const absl::Status unknown = DecodeDataset({{"d.csv", header + "\n" + row + "\n"}}, {.target = "z"}).status();
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("and 968 more"));
}

}  // namespace
}  // namespace chainfleet
