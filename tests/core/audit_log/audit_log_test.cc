#include "core/store/audit_log/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/store/draw_codec/sha256.h"
#include "nlohmann/json.hpp"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest() { std::filesystem::remove_all(folder_); }
  ~AuditLogTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<AuditLog> Open(AuditLog::Options options = {}) {
    return AuditLog::Open(folder_, &clock_, std::move(options)).value();
  }
  static std::vector<std::string> All(const AuditLog& log) {
    std::vector<std::string> lines;
    for (std::string from;;) {
      const auto page = log.Read(from);
      EXPECT_TRUE(page.ok()) << page.status();
      lines.insert(lines.end(), page->lines.begin(), page->lines.end());
      if ((from = page->next).empty()) return lines;
    }
  }
  // Each line has the digest of the one before.
  static void ExpectChain(const std::vector<std::string>& lines) {
    for (size_t i = 1; i < lines.size(); ++i) {
      EXPECT_EQ(json::parse(lines[i])["previous"], Sha256Hex(lines[i - 1])) << lines[i];
      EXPECT_EQ(json::parse(lines[i])["seq"], json::parse(lines[i - 1])["seq"].get<int64_t>() + 1) << lines[i];
    }
  }

  FakeClock clock_;
  const std::string folder_ =
      ::testing::TempDir() + "/audit-" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(AuditLogTest, ALineHasItsTimeItsFieldsAndTheDigestOfTheLineBefore) {
  const auto log = Open();
  log->Append({{"method", "CreateJob"}, {"version", int64_t{7}}});
  clock_.Advance(absl::Seconds(5));
  log->Append({{"method", "quoted \" and \n broken \xff"}});
  const std::vector<std::string> lines = All(*log);
  ASSERT_THAT(lines, SizeIs(2));
  const json first = json::parse(lines[0]);
  EXPECT_EQ(first["seq"], 1);
  EXPECT_EQ(first["at"], "2023-11-14T22:13:20+00:00");
  EXPECT_EQ(first["method"], "CreateJob");
  EXPECT_EQ(first["version"], 7);
  EXPECT_EQ(first["previous"], std::string(64, '0'));
  ExpectChain(lines);
}

TEST_F(AuditLogTest, TextsAreShortAlsoAsTheyAreWritten) {
  const auto log = Open();
  for (const char c : {'x', '"', '\x01', '\xff'}) {
    log->Append({{"name", std::string(10'000, c)}});
    const std::string line = log->Read("")->lines.back();
    EXPECT_LT(line.size(), 600u);
    EXPECT_GT(line.size(), 350u) << "most of what has room is there";
  }
}

TEST_F(AuditLogTest, ReadsTheLinesOfOneTenantWhateverOthersWrite) {
  const auto log = Open({.file_bytes = 1000});
  log->Append({{"tenant", "vision"}, {"method", "a"}});
  log->Append({{"peer", "no tenant"}});
  for (int i = 0; i < 20; ++i) {
    log->Append(
        {{"tenant", "vision-2"}, {"job", R"(x","tenant":"vision","y":")"}, {"error", R"(\","tenant":"vision")"}});
  }
  log->Append({{"tenant", "vision"}, {"method", "b"}});
  std::vector<std::string> methods;
  for (std::string from;;) {
    const auto page = log->Read(from, "vision");
    ASSERT_TRUE(page.ok()) << page.status();
    for (const std::string& line : page->lines) methods.push_back(json::parse(line).value("method", "another's"));
    if ((from = page->next).empty()) break;
  }
  EXPECT_THAT(methods, testing::ElementsAre("a", "b"));
}

TEST_F(AuditLogTest, GoesOnAfterARestart) {
  Open()->Append({{"method", "a"}});
  Open()->Append({{"method", "b"}});
  const auto log = Open();
  log->Append({{"method", "c"}});
  EXPECT_THAT(All(*log), SizeIs(3));
  ExpectChain(All(*log));
}

TEST_F(AuditLogTest, RemovesThePartOfALineThatACrashLeft) {
  Open()->Append({{"method", "a"}});
  std::ofstream(folder_ + "/audit-000001.jsonl", std::ios::app) << "{\"seq\":2,\"at";
  const auto log = Open();
  log->Append({{"method", "b"}});
  EXPECT_THAT(All(*log), SizeIs(2));
  ExpectChain(All(*log));
}

TEST_F(AuditLogTest, RefusesToContinueWhatIsNoAuditLog) {
  Open()->Append({{"method", "a"}});
  std::ofstream(folder_ + "/audit-000001.jsonl", std::ios::app) << "not a line\n";
  EXPECT_EQ(ReasonOf(AuditLog::Open(folder_, &clock_, {}).status()), "AUDIT_LOG");
}

TEST_F(AuditLogTest, KeepsTheNewestFilesAndOneChainOverAllOfThem) {
  auto log = Open({.file_bytes = 1000, .files = 3});
  for (int i = 0; i < 50; ++i) log->Append({{"method", "a"}});
  const std::string from = log->Read("")->next;
  for (int i = 0; i < 50; ++i) log->Append({{"method", "b"}});
  const std::vector<std::string> lines = All(*log);
  EXPECT_EQ(json::parse(lines.back())["seq"], 100);
  EXPECT_LT(lines.size(), 30u);
  ExpectChain(lines);
  EXPECT_EQ(ReasonOf(log->Read(from).status()), "BAD_PAGE_TOKEN") << "deleted";
  const int files = static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  EXPECT_EQ(files, 3);
  log = Open({.file_bytes = 1000, .files = 3});
  log->Append({{"method", "c"}});
  EXPECT_EQ(json::parse(All(*log).back())["seq"], 101);
  ExpectChain(All(*log));
}

TEST_F(AuditLogTest, ReadsByPages) {
  const auto log = Open();
  for (int i = 0; i < 3000; ++i) log->Append({{"error", std::string(1000, 'x')}});
  EXPECT_LT(log->Read("")->lines.size(), 1000u);
  const std::vector<std::string> lines = All(*log);
  EXPECT_THAT(lines, SizeIs(3000));
  EXPECT_LT(lines[0].size(), 600u) << "long values are cut";
  ExpectChain(lines);
}

TEST_F(AuditLogTest, RefusesPagesThatItNeverGave) {
  const auto log = Open();
  for (const char* from : {"x", "1", "0:0", "2:0", "1:-1", "1:2:3", "1:99999999999999999999"}) {
    EXPECT_EQ(ReasonOf(log->Read(from).status()), "BAD_PAGE_TOKEN") << from;
  }
  EXPECT_THAT(log->Read("1:12345")->lines, IsEmpty());
}

TEST_F(AuditLogTest, GoesOnInTheNextFileOnceItCanBeOpened) {
  int lost = 0;
  const auto log = Open({.file_bytes = 1, .on_failure = [&] { ++lost; }});
  log->Append({{"method", "a"}});
  std::filesystem::create_directory(folder_ + "/audit-000002.jsonl");  // in its place
  for (const char* method : {"b", "c"}) log->Append({{"method", method}});
  EXPECT_EQ(lost, 2);
  std::filesystem::remove(folder_ + "/audit-000002.jsonl");
  log->Append({{"method", "d"}});
  const std::vector<std::string> lines = All(*log);
  EXPECT_THAT(lines, SizeIs(2));
  ExpectChain(lines);
}

TEST_F(AuditLogTest, CountsTheLinesThatAFullDiskRefuses) {
  std::filesystem::create_directories(folder_);
  std::filesystem::create_symlink("/dev/full", folder_ + "/audit-000001.jsonl");
  int lost = 0;
  const auto log = Open({.on_failure = [&] { ++lost; }});
  log->Append({{"method", "a"}});
  log->Append({{"method", "b"}});
  EXPECT_EQ(lost, 2);
}

}  // namespace
}  // namespace chainfleet
