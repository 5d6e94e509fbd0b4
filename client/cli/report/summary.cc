#include "client/cli/report/summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output.h"
#include "client/cli/report/scale.h"
#include "client/cli/report/score_charts.h"
#include "client/cli/views/evaluation_view.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/markup.h"
#include "client/cli/views/report_view.h"
#include "client/cli/views/table.h"
#include "google/protobuf/util/time_util.h"

namespace chainfleet {
namespace {

std::string Counted(int64_t number) { return TickLabel(static_cast<double>(number), 1); }

std::string Tile(const std::string& value, const std::string& name, const std::string& beside,
                 const std::string& verdict = "") {
  return absl::StrCat("<li><span>", Escape(name), "</span><b", verdict.empty() ? "" : " class=\"" + verdict + "\"", ">",
                      Escape(value), "</b><span>", Escape(beside), "</span></li>\n");
}

std::string ClassTiles(const v1::Scores& best, const v1::Scores* single) {
  const auto against = [&](double value, int decimals, const std::string& unit) {
    return single == nullptr ? "" : absl::StrCat("mean single draw ", Fixed(value, decimals), unit);
  };
  std::string html = Tile(Fixed(100 * best.accuracy(), 2) + " %", "Accuracy",
                          against(single == nullptr ? NAN : 100 * single->accuracy(), 2, " %"));
  html += Tile(Fixed(best.nll(), 4), "NLL, nats per row", against(single == nullptr ? NAN : single->nll(), 4, ""));
  html += Tile(Fixed(best.ece(), 4), "ECE", "0: as sure as right");
  if (best.has_ood_auroc()) html += Tile(Fixed(best.ood_auroc(), 4), "OOD AUROC", "1: told apart, 0.5: a coin");
  return html;
}

std::string NumberTiles(const v1::Scores& best, const v1::Scores* single) {
  std::string html = Tile(Significant(best.rmse(), 4), "RMSE, in the target's units",
                          single == nullptr ? "" : "mean single draw " + Significant(single->rmse(), 4));
  html += Tile(Fixed(best.nll(), 4), "NLL, nats per row",
               single == nullptr ? "" : "mean single draw " + Fixed(single->nll(), 4));
  if (best.has_coverage_90())
    html += Tile(Fixed(100 * best.coverage_90(), 1) + " %", "Within the central 90 %", "of 90");
  return html;
}

std::string ConvergenceTile(const v1::Job& job) {
  const v1::Job::Diagnostic* worst = nullptr;
  double rhat = -1;
  for (const v1::Job::Diagnostic& found : job.diagnostics()) {
    const double of_this = JudgedRhat(found).value_or(-1);
    if (of_this <= rhat) continue;
    worst = &found;
    rhat = of_this;
  }
  if (worst == nullptr) return "";
  return Tile(Fixed(rhat, 3), "Worst R-hat",
              absl::StrCat(worst->quantity(), rhat < kConverged ? ", below 1.01" : ", not below 1.01"),
              rhat < kConverged ? "good" : "bad");
}

void AddAbsent(const std::string& what, const std::string& how, const std::string& command, std::string* html) {
  absl::StrAppend(html, "<li><b>", Escape(what), ".</b> ", Escape(how));
  if (!command.empty()) absl::StrAppend(html, " <code>", Escape(command), "</code>");
  absl::StrAppend(html, "</li>\n");
}

// The command that makes the page anew with `options` added.
std::string Command(const ReportContents& contents, const std::string& options) {
  std::string command = "chainfleet report " + contents.job.id();
  if (contents.point < contents.job.points_size()) absl::StrAppend(&command, " --point ", contents.point);
  if (contents.evaluation) {
    absl::StrAppend(&command, " --dataset ", contents.evaluation->dataset());
    const std::string& ood = contents.evaluation->ood_dataset();
    if (!ood.empty()) absl::StrAppend(&command, " --ood ", ood);
  }
  return absl::StrCat(command, options, " -o report.html");
}

void AddAbsentScores(const ReportContents& contents, std::string* html) {
  const v1::Evaluation& evaluation = *contents.evaluation;
  const bool numbers = OfNumbers(evaluation);
  if (!numbers && evaluation.ood_dataset().empty()) {
    AddAbsent("Out of distribution",
              "Scores of telling another data set's inputs apart:", Command(contents, " --ood NAME"), html);
  }
  if (evaluation.curve().empty() && !numbers) {
    AddAbsent("Scores over the number of draws",
              "This evaluation was made without them; a new one has them:", Command(contents, ""), html);
  }
  if (evaluation.corrupted().empty()) {
    AddAbsent("Corrupted inputs", "For images:", Command(contents, " --corruptions all"), html);
  }
  if (evaluation.flatness().empty()) {
    AddAbsent("Flatness", "Fisher spectrum, and the loss along lines:", Command(contents, " --flatness"), html);
  }
  if (evaluation.examples().empty() && !numbers) {
    AddAbsent("Most and least certain inputs",
              "This evaluation was made without them; a new one has them:", Command(contents, ""), html);
  }
}

}  // namespace

v1::Job JobOfPoint(const v1::Job& job, int32_t point) {
  v1::Job one = job;
  if (point < job.points_size()) *one.mutable_report() = job.points(point).report();
  one.clear_points();
  one.clear_chains();
  one.clear_diagnostics();
  for (const v1::Chain& chain : job.chains()) {
    if (chain.point() == point) *one.add_chains() = chain;
  }
  for (const v1::Job::Diagnostic& diagnostic : job.diagnostics()) {
    if (diagnostic.point() == point) *one.add_diagnostics() = diagnostic;
  }
  return one;
}

std::string HeadingHtml(const ReportContents& contents) {
  const v1::Job& job = contents.job;
  const bool bad = job.state() == v1::Job::FAILED || job.state() == v1::Job::CANCELLED;
  const bool good = job.state() == v1::Job::SUCCEEDED || job.state() == v1::Job::SUCCEEDED_EARLY;
  std::string html =
      absl::StrCat("<p class=\"eyebrow\">chainfleet report</p>\n<h1>", Escape(job.spec().name()),
                   " <span class=\"state", good ? " good" : (bad ? " bad" : ""), "\">",
                   v1::Job::State_Name(job.state()), "</span></h1>\n<p class=\"sub\">", Escape(job.id()));
  if (contents.point < job.points_size()) absl::StrAppend(&html, ", point ", Escape(job.points(contents.point).name()));
  if (contents.evaluation) {
    const v1::Evaluation& evaluation = *contents.evaluation;
    absl::StrAppend(&html, ", version ", evaluation.version(), ", scored on ", Counted(evaluation.num_rows()),
                    " rows of ", Escape(evaluation.dataset()));
    if (!evaluation.ood_dataset().empty()) {
      absl::StrAppend(&html, " against ", Counted(evaluation.num_ood_rows()), " of ", Escape(evaluation.ood_dataset()));
    }
  }
  return html + "</p>\n";
}

std::string TilesHtml(const ReportContents& contents) {
  const v1::Job job = JobOfPoint(contents.job, contents.point);
  std::string html = "<ul class=\"tiles\">\n";
  const v1::Scores* best = contents.evaluation ? BestAverage(*contents.evaluation) : nullptr;
  if (best != nullptr) {
    const v1::Scores* single = SingleDraws(*contents.evaluation);
    html += best->has_rmse() ? NumberTiles(*best, single) : ClassTiles(*best, single);
    html += Tile(absl::StrCat(best->num_draws()), "Draws averaged",
                 absl::StrCat("of ", job.chains_size(), " chains; ", contents.evaluation->draws_used(), " of ",
                              contents.evaluation->draws_in_version(), " steps read"));
  } else {
    html += Tile(absl::StrCat(job.num_draws()), "Draws committed", absl::StrCat("by ", job.chains_size(), " chains"));
  }
  return absl::StrCat(html, ConvergenceTile(job), "</ul>\n");
}

std::string WarningsHtml(const v1::Job& job) {
  const std::vector<std::string> warnings = Warnings(job);
  if (warnings.empty()) return "";
  std::string html = "<div class=\"warnings\" role=\"note\"><b>Warnings</b><ul>\n";
  for (const std::string& warning : warnings) absl::StrAppend(&html, "<li>", Escape(warning), "</li>\n");
  return html + "</ul></div>\n";
}

std::string FactsHtml(const v1::Job& job) {
  using google::protobuf::util::TimeUtil;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"Job", job.id()},
      {"Posterior", DescribePosterior(job)},
      {"Draws", absl::StrCat(job.num_draws(), " committed, newest version ", job.newest_version())},
      {"Steps", absl::StrCat(job.steps_done(), " of ", job.steps_total(), " over ", job.num_chains(), " chains")},
      {"Heat", DescribeHeat(job)},
      {"Curvature", DescribeCurvature(job)},
      {"Log evidence", DescribeEvidence(job)},
      {"Noise", DescribeNoise(job)},
      {"Created", TimeUtil::ToString(job.created_at())},
      {"Finished", job.has_finished_at() ? TimeUtil::ToString(job.finished_at()) : ""},
      {"Trained on", job.spec().dataset().name()},
      {"SHA-256", job.dataset_digest()},
  };
  std::string html = "<dl>\n";
  for (const auto& [name, value] : facts) {
    if (!value.empty()) absl::StrAppend(&html, "<dt>", name, "</dt><dd>", Escape(value), "</dd>\n");
  }
  return absl::StrCat(html, "</dl>\n<details><summary>Job file: submit it again for the same draws</summary><pre>",
                      Escape(ToYaml(job.spec())), "</pre></details>\n");
}

std::string AbsentHtml(const ReportContents& contents) {
  std::string html;
  if (contents.evaluation) {
    AddAbsentScores(contents, &html);
  } else if (contents.job.spec().dataset().name().empty()) {
    AddAbsent("Scores", "This job samples an analytic density: there are no rows to score.", "", &html);
  } else {
    AddAbsent("Scores, calibration, entropies, certain and uncertain inputs",
              "They need a stored data set with labels or targets (chainfleet dataset list):",
              Command(contents, " --dataset NAME"), &html);
  }
  const auto of_point = [&](const v1::Traces& traces) {
    return std::ranges::any_of(traces.chains(), [&](const auto& chain) { return chain.point() == contents.point; });
  };
  if (std::ranges::none_of(contents.traces, of_point)) {
    AddAbsent(
        "Traces",
        "The server keeps them in memory, from its last start on and after burn-in: make the report while chains run, "
        "or soon after.",
        "", &html);
  }
  return html.empty() ? "" : absl::StrCat("<ul class=\"absent\">\n", html, "</ul>\n");
}

}  // namespace chainfleet
