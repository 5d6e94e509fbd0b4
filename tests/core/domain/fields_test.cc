#include "core/domain/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(OutOfBounds, IsEmptyExactlyWithinTheBounds) {
  const std::vector<std::pair<Bounds, std::vector<std::pair<double, bool>>>> cases = {
      {{}, {{-1e300, true}, {kInfinity, false}, {-kInfinity, false}, {std::nan(""), false}}},
      {Above(0), {{1e-300, true}, {0, false}, {-1, false}, {kInfinity, false}, {std::nan(""), false}}},
      {AtLeast(0), {{0, true}, {-1e-300, false}}},
      {Between(1, 3), {{1, true}, {3, true}, {0.5, false}, {3.5, false}}},
      {Below(1, 3), {{1, true}, {2.5, true}, {3, false}, {0.5, false}}},
      {Inside(1, 3), {{1, false}, {2, true}, {3, false}}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const auto& [value, within] : cases[i].second) {
      EXPECT_EQ(OutOfBounds(value, cases[i].first).empty(), within) << "case " << i << ", value " << value;
    }
  }
}

TEST(OutOfBounds, SaysTheRuleAndTheValue) {
  EXPECT_EQ(OutOfBounds(-1, Above(0)), "must be above 0, is -1");
  EXPECT_EQ(OutOfBounds(9, Between(1, 3)), "must be at least 1 and at most 3, is 9");
  EXPECT_EQ(OutOfBounds(1, Inside(0, 1)), "must be above 0 and below 1, is 1");
  EXPECT_EQ(OutOfBounds(std::nan(""), AtLeast(0)), "must be finite and at least 0, is nan");
  EXPECT_EQ(OutOfBounds(kInfinity, {}), "must be finite, is inf");
}

enum class Colour { kRed, kGreen };
std::initializer_list<const char*> EnumNames(Colour) {
  static constexpr std::initializer_list<const char*> kNames = {"red", "green"};
  return kNames;
}

TEST(EnumName, RoundTripsAndKnowsNoOther) {
  EXPECT_EQ(EnumName(Colour::kGreen), "green");
  EXPECT_EQ(EnumFromName<Colour>("red"), Colour::kRed);
  EXPECT_EQ(EnumFromName<Colour>("gree"), std::nullopt);
  EXPECT_EQ(EnumFromName<Colour>(""), std::nullopt);
  EXPECT_EQ(AllEnumNames<Colour>(), "red, green");
}

struct Settings {
  static constexpr char kName[] = "settings";
  double rate = 1;
  int64_t count = 1;
  std::optional<double> limit = {};
  std::vector<double> weights = {};
  std::map<std::string, double> layers = {};
  static void Fields(auto& self, auto&& visit) {
    visit("rate", self.rate, Above(0));
    visit("count", self.count, Between(1, 10));
    visit("limit", self.limit, AtLeast(0));
    visit("weights", self.weights, AtLeast(0));
    visit("layers", self.layers, AtLeast(0));
  }
};

std::vector<std::string> Paths(const Settings& settings, const std::string& path) {
  std::vector<FieldViolation> violations;
  CheckBounds(settings, path, &violations);
  std::vector<std::string> paths;
  for (const FieldViolation& violation : violations) paths.push_back(violation.path);
  return paths;
}

TEST(CheckBounds, NamesEveryFieldItemAndKeyOutOfBounds) {
  EXPECT_THAT(Paths({}, "sampler"), IsEmpty()) << "what is not given is not checked";
  const Settings wrong{
      .rate = 0, .count = 11, .limit = -1, .weights = {1, -1, -2}, .layers = {{"fc1", -1}, {"fc2", 1}}};
  EXPECT_THAT(Paths(wrong, "sampler"), ElementsAre("sampler.rate", "sampler.count", "sampler.limit",
                                                   "sampler.weights[1]", "sampler.weights[2]", "sampler.layers.fc1"));
  EXPECT_THAT(Paths({.rate = 0}, ""), ElementsAre("rate"));
}

struct Other {
  static constexpr char kName[] = "other";
};

TEST(AlternativeNames, FollowTheVariantInOrder) {
  EXPECT_EQ((AlternativeNames<std::variant<Settings, Other>>()), "settings, other");
}

}  // namespace
}  // namespace chainfleet
