#include "core/domain/dataset.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

std::string Wrong(const std::vector<std::string>& names, const Targets& targets = Classes{2}) {
  return std::string(CheckClassNames(names, targets).message());
}

TEST(ClassNames, AreNoneOrOneForEachClass) {
  EXPECT_EQ(Wrong({}), "");
  EXPECT_EQ(Wrong({"cat", "dog, \"sleeping\""}), "");
  EXPECT_EQ(Wrong({"cat"}), "class_names: there are 1 names, and 2 classes");
  EXPECT_EQ(Wrong({"cat", "dog"}, Numbers()), "class_names: the targets are numbers, which have no classes");
}

TEST(ClassNames, AreDifferentTexts) {
  EXPECT_EQ(Wrong({"cat", "cat"}), "class_names: two classes are called \"cat\"");
  EXPECT_EQ(Wrong({"cat", ""}), "class_names: a name is empty");
  EXPECT_EQ(Wrong({"cat", "\x1b[2J"}), "class_names: a name has control characters");
}

TEST(ClassNames, AreBoundedTogether) {
  const std::string half(limits::kMaxClassNamesBytes / 2, 'a');
  EXPECT_EQ(Wrong({half, half.substr(1) + "b"}), "");
  EXPECT_NE(Wrong({half, half + "b"}), "");
}

}  // namespace
}  // namespace chainfleet
