#include "client/cli/report/page.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/report/corruption_chart.h"
#include "client/cli/report/example_pictures.h"
#include "client/cli/report/figure.h"
#include "client/cli/report/flatness_chart.h"
#include "client/cli/report/score_charts.h"
#include "client/cli/report/style.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/trace_chart.h"
#include "client/cli/views/evaluation_view.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/markup.h"
#include "core/base/version.h"

namespace chainfleet {
namespace {

using Figures = std::vector<Figure>;

void Add(std::optional<Figure> figure, Figures* figures) {
  if (figure) figures->push_back(*std::move(figure));
}

// Nothing without figures.
std::string Section(const std::string& title, const Figures& figures) {
  if (figures.empty()) return "";
  std::string html = absl::StrCat("<section>\n<h2>", Escape(title), "</h2>\n<div class=\"figures\">\n");
  for (const Figure& figure : figures) html += RenderFigure(figure);
  return html + "</div>\n</section>\n";
}

Figure TableFigure(const std::string& id, const std::string& title, const Table& table, const std::string& caption) {
  return {id, title, absl::StrCat("<div class=\"scroll\">", table.RenderHtml(), "</div>\n"), caption, {}, true};
}

std::string ScoreSections(const v1::Evaluation& evaluation, const ReportContents& contents) {
  Figures scores, corrupted, flatness, examples;
  scores.push_back(TableFigure(
      "scores", "What are the draws worth?", ScoresOf(evaluation),
      "Good: the average of all draws has a lower NLL than the mean single draw: that is what averaging is for. NLL in "
      "nats per row; of ECE and Brier lower is better, of AUROC higher."));
  Add(ReliabilityFigure(evaluation), &scores);
  Add(EntropyFigure(evaluation, contents.num_classes), &scores);
  Add(CurveFigure(evaluation), &scores);
  Add(CorruptionMap(evaluation), &corrupted);
  Add(SeverityFigure(evaluation), &corrupted);
  Add(FisherFigure(evaluation), &flatness);
  Add(LinesFigure(evaluation), &flatness);
  Add(ExamplesFigure(evaluation, contents.example_rows), &examples);
  return absl::StrCat(Section("Scores", scores), Section("Inputs", examples), Section("Corrupted inputs", corrupted),
                      Section("Flatness", flatness));
}

std::string ChainSection(const v1::Job& job, const ReportContents& contents) {
  Figures figures;
  if (job.diagnostics_size() > 0) {
    figures.push_back(
        TableFigure("diagnostics", "Do the chains agree?", DiagnosticTable(job),
                    "Good: R-hat below 1.01 and effective sample sizes (ESS) of hundreds. A * marks what has not "
                    "converged; MCSE is "
                    "the error of the mean. Of a network its predictions decide; energy and norms describe it."));
  }
  for (const v1::Traces& traces : contents.traces) {
    const v1::Job::Diagnostic* found = nullptr;
    for (const v1::Job::Diagnostic& diagnostic : job.diagnostics()) {
      if (diagnostic.quantity() == traces.quantity()) found = &diagnostic;
    }
    Add(TraceFigure(traces, contents.point, found), &figures);
  }
  figures.push_back(
      TableFigure("chains", "Where is each chain?", ChainTable(job),
                  "Good: every chain SUCCEEDED. An epoch above 1 says that a chain moved to another worker: "
                  "its draws are those of one that did not."));
  return Section("Chains", figures);
}

std::string Footer(const ReportContents& contents) {
  return absl::StrCat("<footer>Made ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", contents.made_at, absl::UTCTimeZone()),
                      " by chainfleet ", kVersion,
                      contents.server_version.empty() ? "" : ", server " + Escape(contents.server_version),
                      ". Scores and diagnostics, their formulas and sources: docs/reference/evaluation.md and "
                      "docs/explanation/sampling.md.</footer>\n");
}

}  // namespace

std::string RenderReport(const ReportContents& contents) {
  const v1::Job job = JobOfPoint(contents.job, contents.point);
  std::string html = absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
                                  // Should anything slip through that points elsewhere, the browser does not follow it.
                                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                                  "style-src 'unsafe-inline'; img-src data:\">\n",
                                  "<title>", Escape(job.id()), " - chainfleet report</title>\n<style>", kReportStyle,
                                  "</style>\n</head>\n<body>\n<header>\n", HeadingHtml(contents), TilesHtml(contents),
                                  WarningsHtml(job), "</header>\n<main>\n");
  if (contents.evaluation) html += ScoreSections(*contents.evaluation, contents);
  html += ChainSection(job, contents);
  html +=
      Section("The job", {{"job",
                           "What was sampled?",
                           FactsHtml(job),
                           "Which posterior this is: the temperature and the prior decide it as much as the network.",
                           {},
                           true}});
  const std::string absent = AbsentHtml(contents);
  if (!absent.empty())
    absl::StrAppend(&html, "<section id=\"absent\">\n<h2>Not in this report</h2>\n", absent, "</section>\n");
  return absl::StrCat(html, "</main>\n", Footer(contents), "</body>\n</html>\n");
}

}  // namespace chainfleet
