#include "server/rpc/request_id.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";

std::string Given(const CallMetadata& metadata) { return GivenRequestId(metadata); }
std::string OfTraceparent(const std::string& value) { return Given({{"traceparent", value}}); }
std::string OfRequestId(const std::string& value) { return Given({{"x-request-id", value}}); }

TEST(RequestId, IsTheTraceIdOfAWellFormedTraceparent) {
  EXPECT_EQ(OfTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), kTraceId);
  EXPECT_EQ(OfTraceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"), kTraceId);
  EXPECT_EQ(Given({{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, {"x-request-id", "r"}}),
            kTraceId);
}

TEST(RequestId, IsNotOfATraceparentThatIsNone) {
  for (const char* value : {
           "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",        // upper case
           "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",         // short
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",        // an invalid trace id
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",        // an invalid parent id
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",        // no version
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later",  // 00 has four fields
       }) {
    EXPECT_EQ(OfTraceparent(value), "") << value;
    EXPECT_EQ(Given({{"traceparent", value}, {"x-request-id", "r-1"}}), "r-1") << value;
  }
}

TEST(RequestId, MayBeAnyShortWord) {
  const std::string longest(64, 'x');
  EXPECT_EQ(OfRequestId(longest), longest);
  EXPECT_EQ(OfRequestId("Order_7.b-2"), "Order_7.b-2");
  for (const std::string& value : {std::string(), longest + "x", std::string("a b"), std::string("a\"b"),
                                   std::string("a\nb"), std::string("\xc3\xa9"), std::string("a+1")}) {
    EXPECT_EQ(OfRequestId(value), "") << value;
  }
  EXPECT_EQ(Given({{"x-request-id", "a"}, {"x-request-id", "b"}}), "") << "which of the two?";
}

TEST(RequestKey, IsShortAndPrintable) {
  EXPECT_TRUE(CheckRequestKey("").ok());
  EXPECT_TRUE(CheckRequestKey(std::string(128, 'x')).ok());
  for (const std::string& wrong :
       {std::string(129, 'x'), std::string("a b"), std::string("\xc3\xa4"), std::string(1, '\0')}) {
    EXPECT_EQ(FieldViolationsOf(CheckRequestKey(wrong)).at(0).path, "request_id");
  }
}

}  // namespace
}  // namespace chainfleet
