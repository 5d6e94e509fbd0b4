#include "core/store/audit_log/audit_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

std::vector<std::string> Lines(int first, int count) {
  std::vector<std::string> lines;
  std::string previous(64, '0');
  for (int i = 0; i < count; ++i) {
    lines.push_back(absl::StrCat(R"({"seq":)", first + i, R"(,"method":"a","previous":")", previous, R"("})"));
    previous = Sha256Hex(lines.back());
  }
  return lines;
}

absl::Status Follow(const std::vector<std::string>& lines) {
  AuditChain chain;
  for (const std::string& line : lines) CHAINFLEET_RETURN_IF_ERROR(chain.Follow(line));
  return absl::OkStatus();
}

TEST(AuditChain, TakesWholeChainsFromAnyLineOn) {
  AuditChain chain;
  for (const std::string& line : Lines(7, 5)) ASSERT_TRUE(chain.Follow(line).ok());
  EXPECT_EQ(chain.first(), 7);
  EXPECT_EQ(chain.last(), 11);
  EXPECT_EQ(chain.digest(), Sha256Hex(Lines(7, 5).back()));
}

TEST(AuditChain, FindsLinesThatWereChangedRemovedInsertedOrSwapped) {
  const std::vector<std::string> whole = Lines(1, 5);
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    std::vector<std::string> changed = whole;
    changed[i].replace(changed[i].find("\"a\""), 3, "\"b\"");
    EXPECT_TRUE(absl::IsDataLoss(Follow(changed))) << i;
    std::vector<std::string> swapped = whole;
    std::swap(swapped[i], swapped[i + 1]);
    EXPECT_TRUE(absl::IsDataLoss(Follow(swapped))) << i;
    if (i == 0) continue;  // without its oldest lines a log is whole
    std::vector<std::string> removed = whole;
    removed.erase(removed.begin() + static_cast<int>(i));
    EXPECT_TRUE(absl::IsDataLoss(Follow(removed))) << i;
    std::vector<std::string> inserted = whole;
    inserted.insert(inserted.begin() + static_cast<int>(i), whole[i]);
    EXPECT_TRUE(absl::IsDataLoss(Follow(inserted))) << i;
  }
  for (const char* line : {"", "no JSON", "[]", R"({"seq":"1","previous":""})", R"({"seq":1})"}) {
    EXPECT_TRUE(absl::IsDataLoss(Follow({line}))) << line;
  }
}

}  // namespace
}  // namespace chainfleet
