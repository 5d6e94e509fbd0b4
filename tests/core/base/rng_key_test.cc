#include "core/base/rng_key.h"

#include <gtest/gtest.h>

#include <set>

namespace chainfleet {
namespace {

void ExpectBlock(const PhiloxBlock& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(block.word[0], a);
  EXPECT_EQ(block.word[1], b);
  EXPECT_EQ(block.word[2], c);
  EXPECT_EQ(block.word[3], d);
}

// Random123's own vectors for philox4x32-10.
TEST(Philox, KnownAnswers) {
  ExpectBlock(Philox({0}, {{0, 0, 0, 0}}), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  ExpectBlock(Philox({~uint64_t{0}}, {{~0u, ~0u, ~0u, ~0u}}), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  ExpectBlock(Philox({0x299f31d0a4093822}, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}), 0xd16cfe09, 0x94fdcceb,
              0x5001e420, 0x24126ea1);
}

TEST(RngKey, FoldsToDistinctKeys) {
  std::set<uint64_t> keys;
  for (uint64_t label = 0; label < 1000; ++label) keys.insert(Fold({7}, label).value);
  EXPECT_EQ(keys.size(), 1000u);
  EXPECT_NE(Fold({7}, 1).value, Fold({8}, 1).value);
  EXPECT_NE(Fold({7}, uint64_t{1} << 32).value, Fold({7}, 0).value);
}

TEST(RngKey, EveryPartOfTheCounterMatters) {
  const RngKey key{42};
  const auto word = [&](RngStream stream, uint64_t step, uint32_t block) {
    return RandomBlock(key, stream, step, block).word[0];
  };
  const std::set<uint32_t> words = {word(RngStream::kThetaNoise, 1, 0), word(RngStream::kThetaANoise, 1, 0),
                                    word(RngStream::kThetaNoise, 2, 0), word(RngStream::kThetaNoise, 1, 1),
                                    word(RngStream::kThetaNoise, (uint64_t{1} << 32) + 1, 0)};
  EXPECT_EQ(words.size(), 5u);
}

TEST(Uniform, NeverLeavesItsInterval) {
  EXPECT_GT(UniformFloat(0), 0.0f);
  EXPECT_EQ(UniformFloat(~0u), 1.0f);
  EXPECT_GT(UniformDouble(0, 0), 0.0);
  EXPECT_LT(UniformDouble(~0u, ~0u), 1.0);
}

}  // namespace
}  // namespace chainfleet
