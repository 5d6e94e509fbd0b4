#include "client/cli/json_path.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

constexpr char kJobs[] = R"({"jobs": [{"id": "a", "n": "1", "tags": ["x", "y"]}, {"id": "b\"c", "ok": true}]})";

TEST(JsonPath, ReadsFieldsAndItems) {
  EXPECT_EQ(ReadJsonPath(kJobs, "{.jobs[*].id}"), "a\nb\"c\n");
  EXPECT_EQ(ReadJsonPath(kJobs, "$.jobs[0].tags[1]"), "y\n");
  EXPECT_EQ(ReadJsonPath(kJobs, ".jobs[1].ok"), "true\n");
  EXPECT_EQ(ReadJsonPath(kJobs, ".jobs[0].tags"), "[\"x\",\"y\"]\n");
}

TEST(JsonPath, LeavesOutWhatTheRecordLacks) {
  EXPECT_EQ(ReadJsonPath(kJobs, ".jobs[*].ok"), "true\n");
  EXPECT_EQ(ReadJsonPath(kJobs, ".jobs[7].id"), "");
  EXPECT_EQ(ReadJsonPath(kJobs, ".jobs.id"), "");
}

TEST(JsonPath, RefusesOtherText) {
  EXPECT_EQ(CheckJsonPath("{.jobs[*].id}"), "");
  for (const char* wrong : {"", "jobs", ".jobs[", ".jobs[-1]", "..id", ".jobs[?(@.n)]", ".jobs[99999999999]"}) {
    EXPECT_NE(CheckJsonPath(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace chainfleet
