#include "client/cli/views/job_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/output.h"
#include "client/cli/views/rank_view.h"
#include "client/cli/views/report_view.h"
#include "core/base/escaped.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

std::string InSeconds(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

double StepsPerSecond(const v1::Job& job) {
  double sum = 0;
  for (const v1::Chain& chain : job.chains()) {
    if (chain.state() == v1::LEASED && std::isfinite(chain.stats().steps_per_second()))
      sum += chain.stats().steps_per_second();
  }
  return sum;
}

// The largest R-hat over deciding quantities and points; nullopt if there is none.
std::optional<double> WorstRhat(const v1::Job& job) {
  std::optional<double> worst;
  for (const v1::Job::Diagnostic& found : job.diagnostics()) {
    if (const std::optional<double> rhat = JudgedRhat(found)) worst = std::max(worst.value_or(0), *rhat);
  }
  return worst;
}

// The smallest ESS, bulk or tail, over deciding quantities and points; 0 if one has none, nullopt without quantities.
std::optional<double> LeastEss(const v1::Job& job) {
  std::optional<double> least;
  for (const v1::Job::Diagnostic& found : job.diagnostics()) {
    if (found.descriptive()) continue;
    for (const double ess : {found.ess_bulk(), found.ess_tail()}) {
      const double known = std::isnan(ess) ? 0 : ess;
      least = std::min(least.value_or(known), known);
    }
  }
  return least;
}

// Users know a leased chain as a running one.
std::string StateWord(v1::ChainState state) { return state == v1::LEASED ? "RUNNING" : v1::ChainState_Name(state); }

// "######....  60 %".
std::string Bar(int64_t done, int64_t total) {
  constexpr int64_t kCells = 10;
  const int64_t percent = total > 0 ? std::clamp<int64_t>(100 * done / total, 0, 100) : 0;
  std::string cells(static_cast<size_t>(kCells), '.');
  cells.replace(0, static_cast<size_t>(percent * kCells / 100), static_cast<size_t>(percent * kCells / 100), '#');
  return absl::StrFormat("%s %3d %%", cells, percent);
}

// The reasons of a table's chains. One that several chains share, such as a module's error, is printed only for the
// first of them.
class Reasons {
 public:
  std::string Of(const v1::Chain& chain) {
    const auto [first, is_new] = first_with_.emplace(chain.reason(), chain.id().index());
    return is_new || chain.reason().empty() ? chain.reason() : absl::StrCat("as chain ", first->second);
  }

 private:
  std::map<std::string, int32_t> first_with_;
};

// The change that a job's user has asked for, while it is under way; empty if there is none.
std::string AskedChange(const v1::Job& job) {
  if (job.has_finished_at() || job.state() == v1::Job::PAUSED) return "";
  switch (job.intent()) {
    case v1::Job::PAUSE:
      return ", pausing";
    case v1::Job::FINISH:
      return ", ending early";
    case v1::Job::CANCEL:
      return ", cancelling";
    case v1::Job::DELETE:
      return ", deleting";
    default:
      return "";
  }
}

// The result of the stop rule; empty while it has none.
std::string DescribeStopped(const v1::Job& job) {
  if (job.points_size() == 0) return job.stopped().empty() ? "" : job.stopped(0).why();
  return absl::StrJoin(job.stopped(), "\n            ", [&](std::string* text, const v1::Job::Stopped& stopped) {
    absl::StrAppend(text, PointLabel(job, stopped.point()), "  ", stopped.why());
  });
}

std::string Percent(const v1::Job& job) {
  if (job.steps_total() == 0) return "-";
  return absl::StrFormat("%.1f %%",
                         100.0 * static_cast<double>(job.steps_done()) / static_cast<double>(job.steps_total()));
}

int64_t ChainsIn(const v1::Job& job, v1::ChainState state) {
  return std::count_if(job.chains().begin(), job.chains().end(), [&](const auto& c) { return c.state() == state; });
}

// "sampler: {emcmc: ...}" is "emcmc".
std::string SamplerName(const v1::JobSpec& spec) {
  const auto* field = v1::JobSpec::Sampler::descriptor()->FindFieldByNumber(spec.sampler().kind_case());
  return field == nullptr ? "" : field->name();
}

// `precision` is that of a Gaussian prior shared by all parameters.
std::string DescribePrior(const v1::JobSpec::Prior& prior, double precision) {
  if (prior.has_laplace()) return absl::StrCat("Laplace prior of scale ", prior.laplace().scale());
  if (prior.has_student_t()) {
    return absl::StrCat("Student-t prior of ", prior.student_t().degrees_of_freedom(), " degrees of freedom and scale ",
                        prior.student_t().scale());
  }
  if (prior.gaussian().layers().empty()) {
    return precision > 0 ? absl::StrCat("prior precision ", precision) : "no prior (flat)";
  }
  const std::map<std::string, double> layers(prior.gaussian().layers().begin(), prior.gaussian().layers().end());
  return absl::StrCat("prior precision ", prior.gaussian().precision(), " (",
                      absl::StrJoin(layers, ", ", absl::PairFormatter(" ")), ")");
}

std::string DescribeLikelihood(const v1::JobSpec::Likelihood& likelihood) {
  if (likelihood.has_gaussian() && likelihood.gaussian().learned()) return "Gaussian likelihood of a learned variance";
  if (likelihood.has_gaussian()) {
    return absl::StrCat("Gaussian likelihood of variance ", likelihood.gaussian().variance());
  }
  if (likelihood.has_heteroscedastic_gaussian()) return "Gaussian likelihood of the network's own variance";
  return likelihood.has_bernoulli() ? "Bernoulli likelihood" : "categorical likelihood";
}

// Returns the number of examples that the likelihood counts as; 0: all of them.
double CountedExamples(const v1::JobSpec::Sampler& sampler) {
  return sampler.has_tempered_mh() ? sampler.tempered_mh().data_size() : sampler.penalty_mh().effective_data_size();
}

// The numbers of the posterior, of the whole job or of one sweep point.
std::string DescribeReport(const v1::Job& job, const v1::Job::Report& report) {
  std::vector<std::string> parts = {absl::StrCat("N = ", report.num_examples())};
  if (const double counted = CountedExamples(job.spec().sampler()); counted > 0) {
    parts.push_back(absl::StrCat("likelihood of ", counted, " examples"));
  }
  // Only workers know the parameters of a stored module.
  if (report.num_parameters() > 0) parts.push_back(absl::StrCat("D = ", report.num_parameters()));
  const auto& sample = job.spec().sample();
  if (!sample.empty()) parts.push_back(absl::StrCat("samples ", absl::StrJoin(sample, " and "), " only"));
  parts.push_back(DescribePrior(job.spec().prior(), report.prior_precision()));
  if (job.spec().has_likelihood()) parts.push_back(DescribeLikelihood(job.spec().likelihood()));
  if (const auto& units = job.inputs().target_units();
      units.stddev() != 0 && (units.mean() != 0 || units.stddev() != 1)) {
    parts.push_back(absl::StrCat("targets of mean ", units.mean(), " and deviation ", units.stddev(), " standardised"));
  }
  parts.push_back(absl::StrCat("T = ", report.temperature()));
  // A full-data step size is alpha itself; h exists only for step sizes on the mean loss.
  if (report.learning_rate() > 0) parts.push_back(absl::StrCat("h = ", report.learning_rate()));
  parts.push_back(absl::StrCat("alpha = ", report.step_size()));
  parts.push_back(absl::StrCat(report.draws_per_chain(), " draws per chain"));
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::optional<double> JudgedRhat(const v1::Job::Diagnostic& found) {
  if (found.descriptive() || found.has_ranks()) return std::nullopt;
  if (found.has_rhat()) return found.rhat();
  if (found.chains() < 2) return std::nullopt;
  return std::numeric_limits<double>::infinity();
}

std::string ExplainRhat(const v1::Job& job) {
  const double worst = WorstRhat(job).value_or(0);
  if (worst < kConverged) return "";
  const bool is_network = std::any_of(job.diagnostics().begin(), job.diagnostics().end(),
                                      [](const auto& found) { return found.descriptive(); });
  if (is_network && std::isfinite(worst)) {
    return "* The chains predict these rows differently. Chains of a network often do: each samples a region of its "
           "own.\n"
           "  The average over them may be worth serving, but it is not a measured posterior. How to decide:\n"
           "  docs/guides/diagnostics.md\n";
  }
  return "* The chains have not converged: do not rely on their averages. What to do: docs/guides/diagnostics.md\n";
}

std::string FormatAge(absl::Duration age) {
  const int64_t s = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s / 3600 % 24);
}

std::string ProgressLine(const v1::Job& job, size_t max_width) {
  std::vector<std::string> parts = {v1::Job::State_Name(job.state()), Percent(job)};
  const double rate = StepsPerSecond(job);
  if (rate > 0) parts.push_back(absl::StrFormat("%.0f steps/s", rate));
  parts.push_back(absl::StrCat(job.num_draws(), " draws"));
  if (const std::optional<double> worst = WorstRhat(job)) parts.push_back(absl::StrCat("R-hat ", Fixed(*worst, 3)));
  if (const std::optional<double> least = LeastEss(job)) parts.push_back(absl::StrCat("ESS ", Fixed(*least, 0)));
  if (job.stopped_size() > 0) {
    parts.push_back(job.points_size() == 0
                        ? "enough: " + job.stopped(0).why()
                        : absl::StrCat(job.stopped_size(), " of ", job.points_size(), " points have enough"));
  }
  if (rate > 0) {
    const double left = static_cast<double>(job.steps_total() - job.steps_done()) / rate;
    parts.push_back(absl::StrCat("ETA ", FormatAge(absl::Seconds(left))));
  }
  const size_t least = std::min(kLeastName, job.id().size());
  std::string rest;
  for (const std::string& part : parts) {
    if (rest.empty() || least + rest.size() + 2 + part.size() <= max_width) absl::StrAppend(&rest, "  ", part);
  }
  return Cropped(job.id(), std::max(least, max_width - std::min(max_width, rest.size()))) + rest;
}

std::string PaintStates(std::string line) {
  static const auto* const painted = new std::vector<std::pair<std::regex, std::string>>{
      {std::regex("\\b(RUNNING|LEASED)\\b"), "\x1b[34m$1\x1b[0m"},
      {std::regex("\\b(SUCCEEDED|SUCCEEDED_EARLY)\\b"), "\x1b[32m$1\x1b[0m"},
      {std::regex("\\b(PENDING|PAUSED)\\b"), "\x1b[90m$1\x1b[0m"},
      {std::regex("\\b(FAILED|DIVERGED)\\b"), "\x1b[31m$1\x1b[0m"}};
  for (const auto& [states, color] : *painted) line = std::regex_replace(line, states, color);
  return line;
}

std::string WithoutAges(const std::string& text) {
  static const auto* const ages =
      new std::regex(R"re( [0-9.]+[smhd]([0-9]{2}[smh])?\b| (?= )|seconds_since_sync"?: ?[-+.e0-9]+)re");
  return std::regex_replace(text, *ages, "");
}

Table JobTable(const std::vector<v1::Job>& jobs, absl::Time now) {
  Table table({"JOB", "=STATE", "SAMPLER", "DATA SET", ">CHAINS", ">PROGRESS", ">DRAWS", ">VERSION", ">AGE"});
  for (const v1::Job& job : jobs) {
    table.AddRow({job.id(), v1::Job::State_Name(job.state()), SamplerName(job.spec()), job.spec().dataset().name(),
                  absl::StrCat(job.num_chains()), Percent(job), absl::StrCat(job.num_draws()),
                  absl::StrCat(job.newest_version()), FormatAge(now - ToTime(job.created_at()))});
  }
  return table;
}

Table ChainTable(const v1::Job& job) {
  const bool metropolis = std::any_of(job.chains().begin(), job.chains().end(),
                                      [](const v1::Chain& chain) { return chain.stats().has_metropolis(); });
  std::vector<std::string> columns = {">CHAIN"};
  if (job.points_size() > 0) columns.push_back("POINT");
  for (const char* column : {"=STATE", ">STEP", ">OF", ">DRAWS", ">ENERGY", ">STEPS/S"}) columns.push_back(column);
  if (metropolis) columns.push_back(">ACCEPTANCE");
  for (const char* column : {"WORKER", "+>ATTEMPTS", "REASON"}) columns.push_back(column);
  Table table(columns);
  Reasons reasons;
  for (const v1::Chain& chain : job.chains()) {
    // After a restart the server knows the step but not the statistics, until the chain's worker reports again.
    const bool running = chain.state() == v1::LEASED, stepped = chain.stats().step_size() > 0;
    std::vector<std::string> cells = {absl::StrCat(chain.id().index())};
    if (job.points_size() > 0) cells.push_back(PointLabel(job, chain.point()));
    cells.insert(cells.end(), {StateWord(chain.state()), absl::StrCat(chain.step()), absl::StrCat(chain.total_steps()),
                               absl::StrCat(chain.num_draws()), stepped ? Significant(chain.stats().energy(), 6) : "",
                               running && stepped ? Fixed(chain.stats().steps_per_second(), 1) : ""});
    if (metropolis) {
      cells.push_back(chain.stats().has_metropolis() ? Fixed(chain.stats().metropolis().acceptance(), 3) : "");
    }
    cells.insert(cells.end(), {chain.worker(), absl::StrCat(chain.attempts()), reasons.Of(chain)});
    table.AddRow(cells);
  }
  return table;
}

Table ProgressTable(const v1::Job& job) {
  std::vector<std::string> columns = {">CHAIN"};
  if (job.points_size() > 0) columns.push_back("POINT");
  for (const char* column : {"=STATE", "=PROGRESS", ">DRAWS", ">STEPS/S", "WORKER", "REASON"})
    columns.push_back(column);
  Table table(columns);
  Reasons reasons;
  for (const v1::Chain& chain : job.chains()) {
    std::vector<std::string> cells = {absl::StrCat(chain.id().index())};
    if (job.points_size() > 0) cells.push_back(PointLabel(job, chain.point()));
    const bool running = chain.state() == v1::LEASED && chain.stats().step_size() > 0;
    cells.insert(cells.end(),
                 {StateWord(chain.state()), Bar(chain.step(), chain.total_steps()), absl::StrCat(chain.num_draws()),
                  running ? Fixed(chain.stats().steps_per_second(), 1) : "", chain.worker(), reasons.Of(chain)});
    table.AddRow(cells);
  }
  return table;
}

Table DiagnosticTable(const v1::Job& job) {
  if (HasRanks(job)) return RankTable(job);
  std::vector<std::string> columns;
  if (job.points_size() > 0) columns.push_back("POINT");
  std::vector<v1::Job::Diagnostic> rows(job.diagnostics().begin(), job.diagnostics().end());
  const auto describing = std::ranges::stable_partition(rows, [](const auto& found) { return !found.descriptive(); });
  for (const char* column : {"QUANTITY", ">R-HAT", ">ESS BULK", ">ESS TAIL", ">MEAN", ">MCSE", ">CHAINS", ">VALUES"}) {
    columns.push_back(column);
  }
  const bool nested = std::ranges::any_of(rows, [](const auto& found) { return found.has_nested_rhat(); });
  if (nested) columns.push_back(">NESTED R-HAT");
  if (!describing.empty()) columns.push_back("DECIDES");
  Table table(columns);
  for (const v1::Job::Diagnostic& found : rows) {
    std::vector<std::string> cells;
    if (job.points_size() > 0) cells.push_back(PointLabel(job, found.point()));
    const char* const mark = found.descriptive() || found.rhat() < kConverged ? " " : "*";
    cells.insert(cells.end(),
                 {found.quantity(), found.has_rhat() ? absl::StrCat(Fixed(found.rhat(), 3), mark) : "- ",
                  Fixed(found.ess_bulk(), 0), Fixed(found.ess_tail(), 0), Significant(found.mean(), 6),
                  Significant(found.mcse_mean(), 2), absl::StrCat(found.chains()), absl::StrCat(found.values())});
    if (nested) cells.push_back(found.has_nested_rhat() ? Fixed(found.nested_rhat(), 3) : "-");
    if (!describing.empty()) cells.push_back(found.descriptive() ? "no" : "yes");
    table.AddRow(cells);
  }
  return table;
}

Table SegmentTable(const std::vector<v1::SegmentRecord>& segments) {
  Table table({">CHAIN", ">INDEX", ">DRAWS", "STEPS", "KINDS", ">SIZE", "WORKER", "DEVICE", "DIGEST", "NOTE"});
  for (const v1::SegmentRecord& record : segments) {
    const v1::Segment& segment = record.segment();
    const std::string kinds = absl::StrJoin(segment.kinds(), ",", [](std::string* text, int kind) {
      text->append(kind == v1::THETA ? "theta" : "theta_a");
    });
    const std::string steps = segment.steps().empty() ? ""
                              : segment.steps_size() == 1
                                  ? absl::StrCat(segment.steps(0))
                                  : absl::StrCat(segment.steps(0), "..", *segment.steps().rbegin());
    table.AddRow({absl::StrCat(record.chain().index()), absl::StrCat(segment.first_index()),
                  absl::StrCat(segment.steps_size()), steps, kinds, FormatBytes(segment.object().size_bytes()),
                  record.worker(), record.device_kind(), segment.digest().substr(0, 12),
                  record.deleted()   ? "deleted"
                  : record.corrupt() ? "CORRUPT"
                                     : ""});
  }
  return table;
}

Table SnapshotTable(const std::vector<v1::Snapshot>& snapshots, absl::Time now) {
  Table table({">VERSION", ">DRAWS", ">AGE", "ALIASES"});
  for (const v1::Snapshot& snapshot : snapshots) {
    table.AddRow({absl::StrCat(snapshot.version()), absl::StrCat(snapshot.num_draws()),
                  FormatAge(now - ToTime(snapshot.created_at())), absl::StrJoin(snapshot.aliases(), ", ")});
  }
  return table;
}

std::string DescribeRetention(const v1::JobSpec::Retention& retention) {
  std::vector<std::string> parts;
  if (retention.has_keep_last())
    parts.push_back(absl::StrCat("the newest ", retention.keep_last(), " draws of each chain"));
  if (retention.has_ttl_seconds()) {
    parts.push_back(absl::StrCat("draws up to ", FormatAge(absl::Seconds(retention.ttl_seconds())), " old"));
  }
  return absl::StrCat("keeps ", absl::StrJoin(parts, ", of these "), ", and all that aliases name");
}

std::string DescribeUntil(const v1::JobSpec::Until& until) {
  std::vector<std::string> traces, parts;
  if (until.has_rhat_below()) traces.push_back(absl::StrCat("R-hat is below ", until.rhat_below()));
  if (until.has_nested_rhat_below()) {
    traces.push_back(absl::StrCat("nested R-hat is below ", until.nested_rhat_below()));
  }
  if (until.has_ess_above()) traces.push_back(absl::StrCat("ESS above ", until.ess_above()));
  if (!traces.empty()) parts.push_back(absl::StrJoin(traces, " and "));
  if (until.has_max_draws()) parts.push_back(absl::StrCat(until.max_draws(), " draws are committed"));
  return absl::StrJoin(parts, ", or ");
}

std::string DescribePosterior(const v1::Job& job) {
  if (job.points_size() == 0) return DescribeReport(job, job.report());
  std::string text = absl::StrCat("one for each of ", job.points_size(), " points");
  for (const v1::Job::Point& point : job.points()) {
    absl::StrAppend(&text, "\n            ", PointLabel(job, point.index()), "  ", DescribeReport(job, point.report()),
                    ", ", point.num_draws(), " committed");
  }
  return text;
}

std::string DescribeStored(const v1::Job& job) {
  return absl::StrCat("up to ", FormatBytes(job.report().stored_bytes()), " of draws, ", job.report().draws_per_chain(),
                      " of each chain");
}

std::string WhyFailed(const v1::Job& job) {
  std::map<std::pair<v1::ChainState, std::string>, std::vector<int32_t>> failed;
  for (const v1::Chain& chain : job.chains()) {
    if (chain.state() != v1::FAILED && chain.state() != v1::DIVERGED) continue;
    failed[{chain.state(), chain.reason()}].push_back(chain.id().index());
  }
  std::vector<std::string> reasons;
  for (const auto& [why, chains] : failed) {
    reasons.push_back(absl::StrCat(chains.size() == 1 ? "chain " : "chains ", absl::StrJoin(chains, ", "), " ",
                                   v1::ChainState_Name(why.first), ": ", Escaped(why.second)));
  }
  return absl::StrJoin(reasons, "; ");
}

std::string DescribeJob(const v1::Job& job, absl::Time now, std::optional<int64_t> versions) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    absl::StrAppendFormat(&text, "%-10s  %s\n", name, value);
  };
  const absl::Time created = ToTime(job.created_at());
  add("Job", job.id());
  if (job.tenant() != "default") add("Tenant", job.tenant());
  add("State", absl::StrCat(v1::Job::State_Name(job.state()), AskedChange(job)));
  if (const std::string why = WhyFailed(job); job.state() == v1::Job::FAILED && !why.empty()) add("Reason", why);
  add("Created", absl::StrCat(InSeconds(created), ", ", FormatAge(now - created), " ago"));
  if (job.has_finished_at()) {
    const absl::Time finished = ToTime(job.finished_at());
    add("Finished", absl::StrCat(InSeconds(finished), ", after ", FormatAge(finished - created)));
  }
  add("Progress", absl::StrCat(Percent(job), ", ", job.steps_done(), " of ", job.steps_total(), " steps over ",
                               job.chains_size(), " chains, ", ChainsIn(job, v1::LEASED), " running"));
  add("Draws", absl::StrCat(job.num_draws(), " committed, newest version ", job.newest_version(),
                            versions ? absl::StrCat(" of ", *versions) : ""));
  if (job.aliases_size() > 0) add("Aliases", absl::StrJoin(job.aliases(), ", "));
  if (job.spec().has_retention()) add("Retention", DescribeRetention(job.spec().retention()));
  if (job.spec().has_until()) add("Until", DescribeUntil(job.spec().until()));
  if (const std::string stopped = DescribeStopped(job); !stopped.empty()) add("Enough", stopped);
  add("Posterior", DescribePosterior(job));
  if (job.report().stored_bytes() > 0) add("Stores", DescribeStored(job));
  add("Heat", DescribeHeat(job));
  if (const std::string curvature = DescribeCurvature(job); !curvature.empty()) add("Curvature", curvature);
  if (const std::string evidence = DescribeEvidence(job); !evidence.empty()) add("Log evidence", evidence);
  if (const std::string noise = DescribeNoise(job); !noise.empty()) add("Noise", noise);
  for (const std::string& warning : Warnings(job)) add("WARNING", warning);
  if (!job.dataset_digest().empty()) {
    add("Data set", absl::StrCat(job.spec().dataset().name(), " (SHA-256 ", job.dataset_digest().substr(0, 12), ")"));
  }
  if (job.inputs().class_names_size() > 0) add("Classes", Escaped(absl::StrJoin(job.inputs().class_names(), ", ")));
  absl::StrAppend(&text, "\nJob file\n  ", absl::StrReplaceAll(ToYaml(job.spec()), {{"\n", "\n  "}}));
  text.resize(text.find_last_not_of(" \n") + 1);
  absl::StrAppend(&text, "\n\n", ChainTable(job).Render());
  if (job.diagnostics_size() > 0)
    absl::StrAppend(&text, "\n", DiagnosticTable(job).Render(), ExplainRhat(job), ExplainRanks(job));
  return text;
}

}  // namespace chainfleet
