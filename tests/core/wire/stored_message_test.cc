#include "core/wire/stored_message.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "chainfleet/v1/predict.pb.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {
namespace {

template <typename Message>
void ExpectKept(const Message& message) {
  for (const std::string& text : {EncodeStored(message), message.SerializeAsString()}) {
    Message read;
    ASSERT_TRUE(DecodeStored(text, &read)) << text;
    EXPECT_EQ(read.SerializeAsString(), message.SerializeAsString()) << text;
  }
}

TEST(StoredMessage, KeepsEveryBitAndReadsTheBinaryFormOfOlderReleases) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    ExpectKept(RandomMessage(seed).Make<v1::EvaluateRequest>());
    v1::Evaluation evaluation = RandomMessage(seed).Make<v1::Evaluation>();
    evaluation.mutable_scores(0)->set_nll(std::numeric_limits<double>::infinity());
    evaluation.mutable_scores(0)->set_ece(std::numeric_limits<double>::quiet_NaN());
    ExpectKept(evaluation);
  }
  ExpectKept(v1::EvaluateRequest());
}

TEST(StoredMessage, IgnoresFieldsOfNewerReleasesAndRefusesDamage) {
  v1::EvaluateRequest read;
  EXPECT_TRUE(DecodeStored(R"({"job": "mine", "from_the_future": {"x": 1}})", &read));
  EXPECT_EQ(read.job(), "mine");
  EXPECT_FALSE(DecodeStored(R"({"job": "mi)", &read));
  EXPECT_FALSE(DecodeStored("\xff\xff", &read));
}

}  // namespace
}  // namespace chainfleet
