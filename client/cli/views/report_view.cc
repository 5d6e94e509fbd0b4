#include "client/cli/views/report_view.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace chainfleet {
namespace {

constexpr size_t kMostWarnings = 8;

// "0.113", or "0.109 to 0.118" where chains differ, with so many digits; empty if none has the number.
template <typename Message>
std::string Range(const std::vector<Message>& messages, const std::function<std::optional<double>(const Message&)>& of,
                  int digits = 3) {
  std::vector<double> values;
  for (const Message& message : messages) {
    if (const std::optional<double> value = of(message)) values.push_back(*value);
  }
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string low = absl::StrFormat("%.*g", digits, *least), high = absl::StrFormat("%.*g", digits, *most);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

std::vector<v1::RunReport> ReportsOf(const v1::Job& job) {
  std::vector<v1::RunReport> reports;
  for (const v1::Chain& chain : job.chains()) {
    if (chain.stats().has_report()) reports.push_back(chain.stats().report());
  }
  return reports;
}

std::string RangeOf(const std::vector<v1::RunReport>& reports, bool (v1::RunReport::*has)() const,
                    double (v1::RunReport::*value)() const, int digits = 3) {
  return Range<v1::RunReport>(
      reports,
      [=](const v1::RunReport& report) { return (report.*has)() ? std::optional((report.*value)()) : std::nullopt; },
      digits);
}

std::string RangeOf(const std::vector<v1::MetropolisStats>& stats, double (v1::MetropolisStats::*value)() const) {
  return Range<v1::MetropolisStats>(stats, [=](const v1::MetropolisStats& seen) { return (seen.*value)(); });
}

}  // namespace

std::string PointLabel(const v1::Job& job, int32_t point) {
  return absl::StrCat(point, ": ", point < job.points_size() ? job.points(point).name() : "");
}

std::string DescribeHeat(const v1::Job& job) {
  using Report = v1::RunReport;
  const std::vector<Report> reports = ReportsOf(job);
  const std::string heat = RangeOf(reports, &Report::has_effective_temperature, &Report::effective_temperature);
  if (heat.empty()) return "effective temperature not measured";
  return absl::StrCat("effective temperature ", heat, ", of a mini-batch gradient variance ",
                      RangeOf(reports, &Report::has_gradient_variance, &Report::gradient_variance),
                      " at alpha = ", Range<Report>(reports, [](const Report& report) { return report.step_size(); }));
}

std::string DescribeCurvature(const v1::Job& job) {
  using Report = v1::RunReport;
  const std::vector<Report> reports = ReportsOf(job);
  const std::string curvature = RangeOf(reports, &Report::has_curvature, &Report::curvature);
  if (curvature.empty()) return "";
  const std::string bound = RangeOf(reports, &Report::has_stable_below, &Report::stable_below);
  return absl::StrCat(curvature, bound.empty() ? "" : absl::StrCat(", alpha is stable below ", bound));
}

std::string DescribeEvidence(const v1::Job& job) {
  return RangeOf(ReportsOf(job), &v1::RunReport::has_log_evidence, &v1::RunReport::log_evidence, 8);
}

std::string DescribeNoise(const v1::Job& job) {
  using Stats = v1::MetropolisStats;
  std::vector<Stats> noisy;
  for (const v1::Chain& chain : job.chains()) {
    if (chain.stats().metropolis().noise_variance() != 0) noisy.push_back(chain.stats().metropolis());
  }
  if (noisy.empty()) return "";
  const std::string beyond = Range<Stats>(noisy, [](const Stats& seen) { return 100 * seen.guarded(); });
  return absl::StrCat("variance ", RangeOf(noisy, &Stats::noise_variance), ", skew ", RangeOf(noisy, &Stats::skew),
                      ", kurtosis ", RangeOf(noisy, &Stats::kurtosis), " of the energy difference over T, acceptance ",
                      RangeOf(noisy, &Stats::acceptance), ", ", beyond, " % of steps beyond correction");
}

std::vector<std::string> Warnings(const v1::Job& job) {
  std::vector<std::string> lines;
  size_t all = 0;
  for (const v1::Chain& chain : job.chains()) {
    for (const std::string& warning : chain.warnings()) {
      if (++all <= kMostWarnings) lines.push_back(absl::StrCat("chain ", chain.id().index(), ": ", warning));
    }
  }
  if (all > kMostWarnings) lines.push_back(absl::StrCat("and ", all - kMostWarnings, " more, see -o json"));
  return lines;
}

}  // namespace chainfleet
