#include "core/formats/zarr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<std::string, std::string> Written(const std::map<std::string, Array>& arrays, int64_t chunk_bytes) {
  std::map<std::string, std::string> store;
  EXPECT_TRUE(WriteZarr(arrays, chunk_bytes, [&](const std::string& key, const std::string& content) {
                EXPECT_TRUE(store.emplace(key, content).second) << key << " twice";
                return absl::OkStatus();
              }).ok());
  return store;
}

TEST(Zarr, CutsRowsIntoChunksAndPadsTheLast) {
  const auto store = Written({{"draws", {ArrayType::kUint8, {5, 3}, "aaabbbcccdddeee"}},
                              {"step", {ArrayType::kInt64, {1}, std::string("\7\0\0\0\0\0\0\0", 8)}}},
                             6);
  EXPECT_THAT(store.at("draws/.zarray"), AllOf(HasSubstr(R"("shape":[5,3])"), HasSubstr(R"("chunks":[2,3])"), HasSubstr(R"("dtype":"|u1")")));
  EXPECT_THAT(store.at("step/.zarray"), AllOf(HasSubstr(R"("shape":[1])"), HasSubstr(R"("chunks":[1])"), HasSubstr(R"("dtype":"<i8")")));
  std::map<std::string, std::string> chunks = store;
  for (const char* described : {"draws/.zarray", "step/.zarray"}) chunks.erase(described);
  EXPECT_THAT(chunks, UnorderedElementsAre(Pair(".zgroup", "{\"zarr_format\":2}\n"), Pair("draws/0.0", "aaabbb"),
                                           Pair("draws/1.0", "cccddd"), Pair("draws/2.0", std::string("eee\0\0\0", 6)),
                                           Pair("step/0", std::string("\7\0\0\0\0\0\0\0", 8))));
}

TEST(Zarr, CutsARowLargerThanAChunkAndWritesAnEmptyArray) {
  const auto store =
      Written({{"x", {ArrayType::kFloat32, {1, 2}, std::string(8, 'x')}}, {"y", {ArrayType::kFloat64, {0}, ""}}}, 4);
  EXPECT_EQ(store.at("x/0.0") + store.at("x/0.1"), std::string(8, 'x'));
  EXPECT_THAT(store.at("y/.zarray"), AllOf(HasSubstr(R"("shape":[0])"), HasSubstr(R"("chunks":[1])")));
  EXPECT_FALSE(store.contains("y/0"));
}

TEST(Zarr, MakesGroupsAndNamesDimensionsAsXarrayReadsThem) {
  std::map<std::string, std::string> store;
  const std::string bytes = "aabbccddeeff";
  ASSERT_TRUE(WriteZarr({Streamed("theta/w", {ArrayType::kUint8, {2, 3, 2}, bytes}, {"chain", "draw", "w_dim_0"})},
                        R"({"job":"toy"})", 4, [&](const std::string& key, const std::string& content) {
                          store[key] = content;
                          return absl::OkStatus();
                        }).ok());
  EXPECT_EQ(store.at("theta/.zgroup"), "{\"zarr_format\":2}\n");
  EXPECT_EQ(store.at("theta/w/.zattrs"), "{\"_ARRAY_DIMENSIONS\":[\"chain\",\"draw\",\"w_dim_0\"]}\n");
  EXPECT_THAT(store.at("theta/w/.zarray"), AllOf(HasSubstr(R"("chunks":[1,2,2])"), HasSubstr(R"("fill_value":null)")));
  EXPECT_EQ(store.at("theta/w/0.0.0") + store.at("theta/w/0.1.0"), std::string("aabbcc\0\0", 8));
  EXPECT_EQ(store.at("theta/w/1.0.0") + store.at("theta/w/1.1.0"), std::string("ddeeff\0\0", 8));
  EXPECT_EQ(store.at(".zattrs"), "{\"job\":\"toy\"}\n");
  for (const char* key : {".zgroup", ".zattrs", "theta/.zgroup", "theta/w/.zarray", "theta/w/.zattrs"}) {
    EXPECT_THAT(store.at(".zmetadata"), HasSubstr(absl::StrCat("\"", key, "\":"))) << "consolidated";
  }
}

TEST(Zarr, EndsWithTheFirstErrorOfItsStore) {
  int puts = 0;
  const absl::Status status =
      WriteZarr({{"x", {ArrayType::kUint8, {1}, "x"}}}, 4, [&](const std::string&, const std::string&) {
        return ++puts == 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
      });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(puts, 2);
}

}  // namespace
}  // namespace chainfleet
