#include "core/formats/zarr_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/formats/zarr.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Store = std::map<std::string, std::string>;

ZarrGet GetFrom(const Store& store) {
  return [&store](const std::string& key, int64_t) -> absl::StatusOr<std::string> {
    const auto found = store.find(key);
    if (found == store.end()) return absl::NotFoundError(key);
    return found->second;
  };
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> ValuesOf(const absl::StatusOr<Array>& array) {
  EXPECT_TRUE(array.ok()) << array.status();
  if (!array.ok()) return {};
  std::vector<T> values(array->bytes.size() / sizeof(T));
  std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  return values;
}

// Returns the description of a uint8 array without compression, with `changes` of parts of its text.
std::string Description(const std::string& shape, const std::string& chunks,
                        const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  const std::string text =
      absl::StrCat(R"({"zarr_format": 2, "shape": [)", shape, R"(], "chunks": [)", chunks,
                   R"(], "dtype": "|u1", "compressor": null, "fill_value": 0, "order": "C", "filters": null})");
  return absl::StrReplaceAll(text, changes);
}

absl::Status ErrorOf(const std::string& description, const std::string& chunk = "ab") {
  const Store store = {{"x/.zarray", description}, {"x/0", chunk}};
  return ReadZarrArray("x", GetFrom(store)).status();
}

// Expects that the reader refuses the array and that the message names its key and has `words`.
void ExpectRefused(const std::string& description, const std::string& words) {
  const absl::Status error = ErrorOf(description);
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << description << ": " << error;
  EXPECT_THAT(std::string(error.message()), AllOf(HasSubstr("x/.zarray: "), HasSubstr(words)));
}

TEST(ReadZarr, ReadsWhatWriteZarrWrote) {
  std::vector<double> numbers(7 * 3 * 2);
  std::iota(numbers.begin(), numbers.end(), -5);
  const std::map<std::string, Array> written = {{"numbers", {ArrayType::kFloat64, {7, 3, 2}, BytesOf(numbers)}},
                                                {"bytes", {ArrayType::kUint8, {5}, "abcde"}},
                                                {"none", {ArrayType::kInt32, {0, 4}, ""}}};
  for (const int64_t chunk_bytes : {1, 100, 10000}) {
    Store store;
    ASSERT_TRUE(WriteZarr(written, chunk_bytes, [&](const std::string& key, const std::string& content) {
                  store[key] = content;
                  return absl::OkStatus();
                }).ok());
    const auto read = ReadZarr({"numbers", "bytes", "none", "absent"}, GetFrom(store));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), written.size());
    for (const auto& [name, array] : written) {
      EXPECT_EQ(read->at(name).type, array.type) << name;
      EXPECT_EQ(read->at(name).shape, array.shape) << name;
      EXPECT_EQ(read->at(name).bytes, array.bytes) << name << " in chunks of " << chunk_bytes;
    }
  }
}

class GoldenZarr : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenZarr, IsReadAsZarrPythonWroteIt) {
  std::ifstream file(absl::StrCat(CHAINFLEET_ZARR_FOLDER, "/", GetParam(), ".zip"), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto archive = ZipReader::Open(bytes, "Zarr");
  ASSERT_TRUE(archive.ok()) << archive.status();
  const ZarrGet get = [&](const std::string& key, int64_t max_bytes) { return archive->Read(key, max_bytes); };
  const auto x = ReadZarrArray("x", get), y = ReadZarrArray("y", get);
  std::vector<float> quarters(40 * 30);
  for (size_t i = 0; i < quarters.size(); ++i) quarters[i] = static_cast<float>(i) / 4;
  EXPECT_EQ(ValuesOf<float>(x), quarters);
  EXPECT_THAT(x->shape, ElementsAre(40, 30));
  std::vector<int64_t> labels(40);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 3);
  EXPECT_EQ(ValuesOf<int64_t>(y), labels);
  EXPECT_THAT(y->shape, ElementsAre(40));
}

INSTANTIATE_TEST_SUITE_P(Compressors, GoldenZarr,
                         ::testing::Values("blosc", "blosc_zstd_bitshuffle", "zstd", "zlib", "gzip"),
                         [](const auto& test) { return test.param; });

TEST(ReadZarr, CutsThePaddingOfEdgeChunksInTwoAxes) {
  // 3 x 3 in chunks of 2 x 2; '-' is padding.
  const Store store = {
      {".zarray", Description("3, 3", "2, 2")}, {"0.0", "abde"}, {"0.1", "c-f-"}, {"1.0", "gh--"}, {"1.1", "i---"}};
  EXPECT_EQ(ReadZarrArray("", GetFrom(store))->bytes, "abcdefghi");
}

TEST(ReadZarr, ReadsFortranOrderInEachChunk) {
  const Store store = {{".zarray", Description("3, 3", "2, 2", {{"\"C\"", "\"F\""}})},
                       {"0.0", "adbe"},
                       {"0.1", "cf--"},
                       {"1.0", "g-h-"},
                       {"1.1", "i---"}};
  EXPECT_EQ(ReadZarrArray("", GetFrom(store))->bytes, "abcdefghi");
}

TEST(ReadZarr, ReadsThreeAxesInFortranOrder) {
  // Item [i, j, k] of 2 x 3 x 2 is the letter at 6 i + 2 j + k.
  const Store store = {{".zarray", Description("2, 3, 2", "2, 3, 2", {{"\"C\"", "\"F\""}})}, {"0.0.0", "agciekbhdjfl"}};
  EXPECT_EQ(ReadZarrArray("", GetFrom(store))->bytes, "abcdefghijkl");
}

TEST(ReadZarr, ReadsChunksLargerThanTheArray) {
  const Store store = {{".zarray", Description("1, 2", "2, 3")}, {"0.0", "ab----"}};
  EXPECT_EQ(ReadZarrArray("", GetFrom(store))->bytes, "ab");
}

TEST(ReadZarr, ReadsKeysWithASlash) {
  const char* const slash = "\"dimension_separator\": \"/\", \"order\"";
  const Store store = {
      {"x/.zarray", Description("2, 1", "1, 1", {{"\"order\"", slash}})}, {"x/0/0", "a"}, {"x/1/0", "b"}};
  EXPECT_EQ(ReadZarrArray("x", GetFrom(store))->bytes, "ab");
}

TEST(ReadZarr, ReadsAnArrayWithoutAxes) {
  const Store store = {{"x/.zarray", Description("", "")}, {"x/0", "a"}};
  const auto array = ReadZarrArray("x", GetFrom(store));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre());
  EXPECT_EQ(array->bytes, "a");
}

TEST(ReadZarr, ReadsAnArrayWithoutItemsWhateverItsOtherSizes) {
  const Store store = {{"x/.zarray", Description("4611686018427387904, 0, 8", "1, 1, 1")}};
  const auto array = ReadZarrArray("x", GetFrom(store));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->bytes, "");
}

TEST(ReadZarr, FillsMissingChunks) {
  const Store store = {{"x/.zarray", Description("5", "2", {{"\"fill_value\": 0", "\"fill_value\": 122"}})},
                       {"x/1", "cd"}};
  EXPECT_EQ(ReadZarrArray("x", GetFrom(store))->bytes, "zzcdz");
}

// Returns the one item of an array whose only chunk is missing.
template <typename T>
T Filled(const std::string& dtype, const std::string& fill) {
  const Store store = {
      {"x/.zarray", Description("1", "1", {{"|u1", dtype}, {"\"fill_value\": 0", "\"fill_value\": " + fill}})}};
  const auto values = ValuesOf<T>(ReadZarrArray("x", GetFrom(store)));
  return values.empty() ? T{} : values[0];
}

TEST(ReadZarr, KnowsEachKindOfFillValue) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Filled<float>("<f4", "-1.5"), -1.5f);
  EXPECT_EQ(Filled<float>("<f4", "null"), 0);
  EXPECT_EQ(Filled<double>("<f8", "3"), 3);
  EXPECT_TRUE(std::isnan(Filled<float>("<f4", "\"NaN\"")));
  EXPECT_EQ(Filled<double>("<f8", "\"Infinity\""), kInfinity);
  EXPECT_EQ(Filled<double>("<f8", "\"-Infinity\""), -kInfinity);
  EXPECT_EQ(Filled<int32_t>("<i4", "-2147483648"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Filled<int64_t>("<i8", "9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Filled<uint8_t>("|u1", "255"), 255);
}

TEST(ReadZarr, RefusesAFillValueThatItsTypeDoesNotHold) {
  for (const char* fill : {"256", "-1", "0.5", "\"NaN\"", "\"AA==\"", "[0]"}) {
    ExpectRefused(Description("2", "2", {{"\"fill_value\": 0", absl::StrCat("\"fill_value\": ", fill)}}), "fill_value");
  }
  ExpectRefused(Description("2", "2", {{"|u1", "<f4"}, {"\"fill_value\": 0", "\"fill_value\": 1e39"}}), "fill_value");
}

TEST(ReadZarr, RefusesUnsupportedFeaturesAndListsTheSupported) {
  const auto changed = [](const char* from, const char* to) { return Description("2", "2", {{from, to}}); };
  ExpectRefused(changed("_format\": 2", "_format\": 1"), "write the array with zarr_format 2");
  ExpectRefused(changed("|u1", ">f4"), "dtype \">f4\" is not supported: write uint8, int32");
  ExpectRefused(changed("|u1", "<f2"), "dtype \"<f2\"");
  ExpectRefused(changed("\"|u1\"", "[[\"a\", \"<f4\"]]"), "dtype [[");
  ExpectRefused(changed("\"filters\": null", "\"filters\": [{\"id\": \"delta\"}]"), "write the array without filters");
  ExpectRefused(changed("\"compressor\": null", "\"compressor\": {\"id\": \"lzma\"}"), "{\"id\":\"lzma\"} is not");
  ExpectRefused(changed("\"compressor\": null", "\"compressor\": \"zlib\""), "with blosc, zstd, zlib, gzip or null");
  ExpectRefused(changed("\"C\"", "\"A\""), "order \"A\"");
  ExpectRefused(changed("\"order\"", "\"dimension_separator\": \"-\", \"order\""), "dimension_separator \"-\"");
  EXPECT_TRUE(ErrorOf(changed("\"filters\": null", "\"filters\": []")).ok());
}

TEST(ReadZarr, RefusesSizesThatAreNone) {
  ExpectRefused(Description("-2", "2"), "shape has -2");
  ExpectRefused(Description("2.5", "2"), "shape has 2.5");
  ExpectRefused(Description("18446744073709551615", "2"), "shape has 18446744073709551615");
  ExpectRefused(Description("2", "0"), "at least 1");
  ExpectRefused(Description("2, 2", "2"), "shape has 2 axes, chunks have 1");
  ExpectRefused(Description("2", "\"a\""), "chunks has \"a\"");
  ExpectRefused(Description("2", "2", {{"\"chunks\": [2]", "\"chunks\": true"}}), "chunks is no list");
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) ones += ", 1";
  ExpectRefused(Description(ones, ones), "33 axes, at most 32");
}

TEST(ReadZarr, AllocatesNothingForHugeArrays) {
  ExpectRefused(Description("4611686018427387904, 4611686018427387904", "2, 2"), "write fewer rows");
  ExpectRefused(Description("4294967297", "1000000"), "takes more than the 4096 MiB");
  ExpectRefused(Description("2", "2147483648"), "are over 2 GiB: write smaller ones");
  ExpectRefused(Description("4294967296", "1"), "write larger ones");
}

TEST(ReadZarr, DecodesNoMoreThanAFewTimesWhatTheArrayMayHave) {
  ExpectRefused(Description("100, 1", "1, 1073741824"), "decode to over 16384 MiB in all: write them no larger");
}

TEST(ReadZarr, TellsItsStoreHowMuchItTakes) {
  const Store store = {{"x/.zarray", Description("2", "1000")}, {"x/0", std::string(1000, 'a')}};
  std::map<std::string, int64_t> asked;
  const ZarrGet get = [&](const std::string& key, int64_t max_bytes) {
    asked[key] = max_bytes;
    return GetFrom(store)(key, max_bytes);
  };
  ASSERT_TRUE(ReadZarrArray("x", get).ok());
  EXPECT_THAT(asked, ElementsAre(testing::Pair("x/.zarray", 64 * 1024), testing::Pair("x/0", 1000 + 125 + 1024)));
  EXPECT_FALSE(ReadZarrArray("y", get).ok());
  EXPECT_EQ(asked["y/zarr.json"], 64 * 1024);
}

TEST(ReadZarr, RefusesTextThatIsNoDescription) {
  ExpectRefused("", "is no JSON object");
  ExpectRefused("[2]", "is no JSON object");
  ExpectRefused("{\"zarr_format\": 2", "is no JSON object");
  ExpectRefused(std::string(30000, '[') + std::string(30000, ']'), "nested more than 16 deep");
  ExpectRefused(std::string(70000, ' '), "70000 bytes, at most 65536");
}

TEST(ReadZarr, NamesAChunkOfAnotherSize) {
  const absl::Status error = ErrorOf(Description("2", "2"), "abc");
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_EQ(error.message(), "chunk x/0: decodes to 3 bytes, its array's chunks have 2");
}

TEST(ReadZarr, TellsVersionThreeFromAMissingArray) {
  const Store third = {{"x/zarr.json", "{}"}}, none;
  const absl::Status error = ReadZarrArray("x", GetFrom(third)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_THAT(std::string(error.message()), AllOf(HasSubstr("x/zarr.json"), HasSubstr("zarr_format=2")));
  const absl::Status missing = ReadZarrArray("x", GetFrom(none)).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("x/.zarray"));
}

TEST(ReadZarr, EndsWithTheErrorsOfItsStore) {
  const Store store = {{"x/.zarray", Description("2", "2")}};
  const ZarrGet broken = [&](const std::string& key, int64_t max_bytes) -> absl::StatusOr<std::string> {
    if (key == "x/0") return absl::InternalError("disk");
    return GetFrom(store)(key, max_bytes);
  };
  EXPECT_EQ(ReadZarrArray("x", broken).status().code(), absl::StatusCode::kInternal);
}

TEST(ZarrRoot, IsTheFolderThatHoldsAll) {
  EXPECT_EQ(ZarrRoot({"x.npy", "y.npy"}), std::nullopt);
  EXPECT_EQ(ZarrRoot({".zgroup", "x/.zarray", "x/0"}), "");
  EXPECT_EQ(ZarrRoot({"x/.zarray", "y/.zarray"}), "");
  EXPECT_EQ(ZarrRoot({"mine.zarr/", "__MACOSX/._mine.zarr", "mine.zarr/x/.zarray", "mine.zarr/y/.zarray"}),
            "mine.zarr/");
  EXPECT_EQ(ZarrRoot({"mine.zarr/.zarray", "mine.zarr/0"}), "mine.zarr/");
}

}  // namespace
}  // namespace chainfleet
