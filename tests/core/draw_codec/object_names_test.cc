#include "core/store/draw_codec/object_names.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

const DigestHex kDigest(64, 'a');

TEST(ObjectNames, ParseIsTheInverseOfMake) {
  const std::string name = SegmentObjectName("store1", {"job-abc", 3}, 7, kDigest);
  const auto parsed = ParseChainObjectName(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->kind, ChainObjectName::Kind::kSegment);
  EXPECT_EQ(parsed->store_incarnation, "store1");
  EXPECT_EQ(parsed->chain, (ChainId{"job-abc", 3}));
  EXPECT_EQ(parsed->lease_epoch, 7);
  EXPECT_EQ(parsed->digest, kDigest);
  EXPECT_EQ(ParseChainObjectName(ResumeObjectName("s", {"j", 0}, 1, kDigest))->kind, ChainObjectName::Kind::kResume);
  EXPECT_TRUE(IsObjectName(DatasetObjectName("s", kDigest, 0)));
  EXPECT_TRUE(IsObjectName(ModelObjectName("s", kDigest, ~uint64_t{0})));
  EXPECT_TRUE(IsObjectName("s/datasets/" + std::string(kDigest))) << "of an older version";
  EXPECT_NE(DatasetObjectName("s", kDigest, 1), DatasetObjectName("s", kDigest, 2));
}

TEST(ObjectNames, RefusesEverythingElse) {
  for (const std::string& name :
       {std::string(""), std::string("/etc/passwd"), "s/../" + kDigest, "s/j/0/segments/e1-" + kDigest + "/x",
        "s/j/0/segments/e-1-" + kDigest, "s/j/0/other/e1-" + kDigest, std::string("s/j/0/segments/e1-abc"),
        "s/j/00/segments/e1-" + kDigest, "s/j/0/segments/e01-" + kDigest, "s/datasets/" + kDigest + "a",
        std::string(1 << 20, 'a') + "/datasets/" + kDigest}) {
    EXPECT_FALSE(IsObjectName(name)) << name;
  }
}

}  // namespace
}  // namespace chainfleet
