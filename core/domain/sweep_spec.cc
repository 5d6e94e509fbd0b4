#include "core/domain/sweep_spec.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

std::string NumberText(double value) {
  std::string text = absl::StrCat(value);
  if (double read; absl::SimpleAtod(text, &read) && read == value) return text;
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Returns "0: eta=0.0004; 1: eta=0.001".
std::string AllNames(const SweepSpec& sweep) {
  constexpr int32_t kMostListed = 32;
  const int32_t points = NumPoints(sweep);
  std::string text;
  for (int32_t point = 0; point < std::min(points, kMostListed); ++point) {
    absl::StrAppend(&text, point == 0 ? "" : "; ", point, ": ", PointName(sweep, point));
  }
  if (points > kMostListed) absl::StrAppend(&text, "; ... ", points, " in all");
  return text;
}

absl::Status NoSuchPoint(const std::string& message) {
  return WithReason(absl::InvalidArgumentError(message), "NO_SUCH_POINT");
}

// True if a point has all the values of `text`, NAME=VALUE with commas.
class Conditions {
 public:
  static absl::StatusOr<Conditions> Parse(const std::vector<SweepAxis>& axes, const std::string& text) {
    Conditions conditions;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
      const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
      const auto axis = std::ranges::find(axes, pair.first, &SweepAxis::name);
      double value;
      if (axis == axes.end() || !absl::SimpleAtod(pair.second, &value)) {
        return NoSuchPoint(absl::StrCat("\"", part, "\" is neither a number of a point nor a setting that is swept"));
      }
      conditions.wanted_.push_back({static_cast<size_t>(axis - axes.begin()), value});
    }
    return conditions;
  }

  bool HoldFor(const std::vector<double>& values) const {
    return std::ranges::all_of(wanted_, [&](const auto& wanted) { return values[wanted.first] == wanted.second; });
  }

 private:
  std::vector<std::pair<size_t, double>> wanted_;
};

absl::StatusOr<int32_t> FindByValues(const SweepSpec& sweep, const std::string& text) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Conditions conditions, Conditions::Parse(AxesOf(sweep), text));
  std::vector<int32_t> fitting;
  for (int32_t point = 0; point < NumPoints(sweep); ++point) {
    if (conditions.HoldFor(ValuesAt(sweep, point))) fitting.push_back(point);
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.empty()) return NoSuchPoint(absl::StrCat("no point has ", text));
  return NoSuchPoint(absl::StrCat(fitting.size(), " points have ", text));
}

absl::StatusOr<int32_t> Find(const SweepSpec& sweep, const std::string& text) {
  if (text.find_first_not_of("0123456789") != std::string::npos) return FindByValues(sweep, text);
  int32_t point;
  if (absl::SimpleAtoi(text, &point) && point < NumPoints(sweep)) return point;
  return NoSuchPoint(absl::StrCat("there is no point ", text));
}

}  // namespace

std::vector<SweepAxis> AxesOf(const SweepSpec& sweep) {
  std::vector<SweepAxis> axes;
  SweepSpec::Fields(sweep, [&](const char* name, const std::vector<double>& values) {
    if (!values.empty()) axes.push_back({name, values});
  });
  return axes;
}

int32_t NumPoints(const SweepSpec& sweep) {
  size_t points = 1;
  for (const SweepAxis& axis : AxesOf(sweep)) {
    points *= axis.values.size();
    if (points > limits::kMaxSweepPoints) return limits::kMaxSweepPoints + 1;
  }
  return static_cast<int32_t>(points);
}

std::vector<double> ValuesAt(const SweepSpec& sweep, int32_t point) {
  const std::vector<SweepAxis> axes = AxesOf(sweep);
  std::vector<double> values(axes.size());
  auto left = static_cast<size_t>(point);
  for (size_t i = axes.size(); i-- > 0; left /= axes[i].values.size()) {
    values[i] = axes[i].values[left % axes[i].values.size()];
  }
  return values;
}

std::string PointName(const SweepSpec& sweep, int32_t point) {
  const std::vector<SweepAxis> axes = AxesOf(sweep);
  const std::vector<double> values = ValuesAt(sweep, point);
  std::string name;
  for (size_t i = 0; i < axes.size(); ++i) {
    absl::StrAppend(&name, i == 0 ? "" : ",", axes[i].name, "=", NumberText(values[i]));
  }
  return name;
}

absl::StatusOr<int32_t> FindPoint(const SweepSpec& sweep, const std::string& text) {
  if (!sweep.any()) {
    if (text.empty() || text == "0") return 0;
    return NoSuchPoint("the job has no sweep, so no point " + text + ": leave it out");
  }
  const std::string all = AllNames(sweep);
  if (text.empty() && NumPoints(sweep) > 1) {
    return WithReason(absl::InvalidArgumentError(
                          "the job has a sweep, each point of which is a posterior of its own: say which, " + all),
                      "POINT_REQUIRED");
  }
  const absl::StatusOr<int32_t> point = text.empty() ? 0 : Find(sweep, text);
  if (point.ok()) return point;
  return NoSuchPoint(absl::StrCat(std::string(point.status().message()), "; the points are ", all));
}

}  // namespace chainfleet
