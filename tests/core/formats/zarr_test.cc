#include "core/formats/zarr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

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
  EXPECT_THAT(store.at("draws/.zarray"), HasSubstr("\"shape\": [5, 3],\n  \"chunks\": [2, 3],\n  \"dtype\": \"|u1\""));
  EXPECT_THAT(store.at("step/.zarray"), HasSubstr("\"shape\": [1],\n  \"chunks\": [1],\n  \"dtype\": \"<i8\""));
  std::map<std::string, std::string> chunks = store;
  for (const char* described : {"draws/.zarray", "step/.zarray"}) chunks.erase(described);
  EXPECT_THAT(chunks, UnorderedElementsAre(Pair(".zgroup", "{\"zarr_format\": 2}\n"), Pair("draws/0.0", "aaabbb"),
                                           Pair("draws/1.0", "cccddd"), Pair("draws/2.0", std::string("eee\0\0\0", 6)),
                                           Pair("step/0", std::string("\7\0\0\0\0\0\0\0", 8))));
}

TEST(Zarr, WritesARowLargerThanAChunkAndAnEmptyArray) {
  const auto store =
      Written({{"x", {ArrayType::kFloat32, {1, 2}, std::string(8, 'x')}}, {"y", {ArrayType::kFloat64, {0}, ""}}}, 4);
  EXPECT_EQ(store.at("x/0.0"), std::string(8, 'x'));
  EXPECT_THAT(store.at("y/.zarray"), HasSubstr("\"shape\": [0],\n  \"chunks\": [1]"));
  EXPECT_FALSE(store.contains("y/0"));
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
