#include "client/cli/views/rank_view.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/views/report_view.h"

namespace chainfleet {
namespace {

// Chance that a correct sampler has any '*' at a point. With chains of few effective draws the chance is up to three
// times as large, because draws that count for ranks are only about independent.
constexpr double kSuspicious = 0.01;

// One character for each count: '.' for none, then eighths of the largest.
std::string BarLine(const v1::Job::Diagnostic::Ranks& ranks) {
  static constexpr const char* kBars[] = {".",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
  const auto& counts = ranks.counts();
  const int64_t most = counts.empty() ? 0 : std::max<int64_t>(1, *std::ranges::max_element(counts));
  std::string line;
  for (const int64_t count : counts) line += kBars[std::clamp<int64_t>((8 * count + most - 1) / most, 0, 8)];
  return line;
}

// True if the ranks are less level than any of a point with a right sampler, but for about 1 % of such points.
bool AreUneven(const v1::Job& job, const v1::Job::Diagnostic& found) {
  const auto tests = std::ranges::count(job.diagnostics(), found.point(), [](const auto& d) { return d.point(); });
  return found.ranks().has_p_value() && found.ranks().p_value() < kSuspicious / static_cast<double>(tests);
}

}  // namespace

bool HasRanks(const v1::Job& job) {
  return std::ranges::any_of(job.diagnostics(), [](const auto& found) { return found.has_ranks(); });
}

Table RankTable(const v1::Job& job) {
  std::vector<std::string> columns = {"QUANTITY", ">CHAINS", ">ESS", "RANKS", ">P VALUE"};
  if (job.points_size() > 0) columns.insert(columns.begin(), "POINT");
  Table table(columns);
  for (const v1::Job::Diagnostic& found : job.diagnostics()) {
    const v1::Job::Diagnostic::Ranks& ranks = found.ranks();
    const char* const mark = AreUneven(job, found) ? "*" : " ";
    std::vector<std::string> cells = {found.quantity(), absl::StrCat(found.chains()),
                                      Fixed(found.ess_bulk() / std::max(1, found.chains()), 0), BarLine(ranks),
                                      ranks.has_p_value() ? absl::StrCat(Significant(ranks.p_value(), 2), mark) : "- "};
    if (job.points_size() > 0) cells.insert(cells.begin(), PointLabel(job, found.point()));
    table.AddRow(cells);
  }
  return table;
}

std::string ExplainRanks(const v1::Job& job) {
  if (!HasRanks(job)) return "";
  const bool any = std::ranges::any_of(job.diagnostics(), [&](const auto& found) { return AreUneven(job, found); });
  const bool untested =
      std::ranges::any_of(job.diagnostics(), [](const auto& found) { return !found.ranks().has_p_value(); });
  return absl::StrCat(
      "RANKS counts chains by the rank of their true value, from the lowest to the highest. It is level if the "
      "settings\n"
      "sample the posterior. U shape: the draws are too narrow; hill: too wide; slope: they are biased.\n",
      untested ? "P VALUE -: too few draws or chains for a test. It needs 20 chains, and a mean ESS of 20.\n" : "",
      any ? "* The ranks are not level: do not trust these settings. What to do: docs/guides/diagnostics.md\n" : "");
}

}  // namespace chainfleet
