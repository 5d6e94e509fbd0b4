#include "client/cli/output.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_file.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/rank_view.h"
#include "client/cli/views/resource_view.h"
#include "core/base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Job RunningJob() {
  v1::Job job;
  job.set_id("toy-abcdef");
  job.mutable_spec()->set_name("toy");
  job.mutable_spec()->mutable_collect()->add_kinds("theta");
  job.set_state(v1::Job::RUNNING);
  job.set_num_draws(16);
  job.set_steps_done(250);
  job.set_steps_total(1000);
  for (int i = 0; i < 2; ++i) {
    v1::Chain* chain = job.add_chains();
    chain->mutable_id()->set_index(i);
    chain->set_state(i == 0 ? v1::LEASED : v1::PENDING);
    chain->set_step(125);
    chain->mutable_stats()->set_steps_per_second(75);
  }
  return job;
}

std::string One(OutputFormat format, const v1::Job& job) {
  std::ostringstream out;
  PrintOne(out, format, job, job.id(), [] { return "the table\n"; });
  return out.str();
}

std::string Two(OutputFormat format) {
  v1::Dataset a, b;
  a.set_name("a");
  b.set_name("b");
  std::ostringstream out;
  PrintList(out, format, {"datasets", {&a, &b}, {"a", "b"}, [](size_t, bool) { return "the table\n"; }});
  return out.str();
}

TEST(Output, OneResultInEveryFormat) {
  const v1::Job job = RunningJob();
  EXPECT_EQ(One(OutputFormat::kTable, job), "the table\n");
  EXPECT_EQ(One(OutputFormat::kName, job), "toy-abcdef\n");
  EXPECT_THAT(One(OutputFormat::kJson, job), HasSubstr("\n \"num_draws\": \"16\",\n"));
  EXPECT_THAT(One(OutputFormat::kJson, job),
              HasSubstr("\"newest_version\": \"0\""));  // defaults too: the same keys always
  const std::string line = One(OutputFormat::kJsonl, job);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_THAT(One(OutputFormat::kYaml, job), HasSubstr("num_draws: 16\n"));
}

TEST(Output, ShowsACallerAndTheLimitsOfItsTenant) {
  v1::Caller caller;
  caller.set_principal("oidc:ada");
  caller.set_tenant("vision");
  caller.set_role(v1::WRITER);
  EXPECT_THAT(CallerTable(caller).Render(), HasSubstr("  never\n"));
  caller.mutable_expires_at()->set_seconds(1795861800);
  EXPECT_EQ(CallerTable(caller).Render(),
            "PRINCIPAL  TENANT  ROLE    EXPIRES\n"
            "oidc:ada   vision  writer  2026-11-28 10:30Z\n");
  const auto add = [&](const std::string& name, std::optional<int64_t> used, std::optional<int64_t> limit) {
    v1::TenantLimit* added = caller.add_limits();
    added->set_name(name);
    if (used) added->set_used(*used);
    if (limit) added->set_limit(*limit);
  };
  add("jobs", 3, 10000);
  add("stored_bytes", 2'000'000, std::nullopt);
  add("rows_per_second", std::nullopt, 5);
  EXPECT_EQ(LimitTable(caller).Render(),
            "RESOURCE           USED  LIMIT\n"
            "jobs                  3  10000\n"
            "stored_bytes     2.0 MB   none\n"
            "rows_per_second       -      5\n");
}

TEST(Output, RecordsThatFollowEachOtherStayApart) {
  const auto records = [](OutputFormat format) {
    std::ostringstream out;
    for (const char* const name : {"a", "b"}) {
      v1::Alias alias;
      alias.set_name(name);
      PrintRecord(out, format, alias, name, [] { return "the table\n"; });
    }
    return out.str();
  };
  EXPECT_EQ(records(OutputFormat::kYaml), "---\nname: \"a\"\n---\nname: \"b\"\n");
  EXPECT_EQ(records(OutputFormat::kName), "a\nb\n");
  EXPECT_EQ(records(OutputFormat::kTable), "the table\nthe table\n");
  EXPECT_EQ(records(OutputFormat::kJson), records(OutputFormat::kJsonl));
}

TEST(Output, ManyResultsInEveryFormat) {
  EXPECT_EQ(Two(OutputFormat::kTable), "the table\n");
  EXPECT_EQ(Two(OutputFormat::kName), "a\nb\n");
  EXPECT_THAT(Two(OutputFormat::kJsonl), ::testing::MatchesRegex("\\{\"name\":\"a\".*\\}\n\\{\"name\":\"b\".*\\}\n"));
  EXPECT_THAT(Two(OutputFormat::kJson), HasSubstr("{\n \"datasets\": [\n  {\n"));
  EXPECT_THAT(Two(OutputFormat::kYaml), HasSubstr("datasets:\n  - name: \"a\"\n"));
}

TEST(Output, AnEmptyListIsStillAList) {
  std::ostringstream out;
  PrintList(out, OutputFormat::kJson, {"jobs", {}, {}, nullptr});
  EXPECT_EQ(out.str(), "{\n \"jobs\": []\n}\n");
}

TEST(Output, TheYamlOfASpecIsAJobFileOfTheSameSpec) {
  v1::JobSpec spec;
  spec.set_name("123");
  spec.mutable_sampler()->mutable_sgld();
  spec.mutable_step_size()->set_constant(1e-7);
  spec.set_minibatches("null");
  spec.mutable_model()->add_hidden(20);
  spec.set_seed(9);
  const auto file = ParseJobFile("again", ToYaml(spec));
  ASSERT_TRUE(file.ok()) << file.status() << "\n" << ToYaml(spec);
  EXPECT_EQ(file->spec.SerializeAsString(), spec.SerializeAsString()) << ToYaml(spec);
}

TEST(JobView, ProgressHasRateAndTimeLeftOnlyWhileChainsRun) {
  v1::Job job = RunningJob();
  EXPECT_EQ(ProgressLine(job), "toy-abcdef  RUNNING  25.0 %  75 steps/s  16 draws  ETA 10s");
  job.mutable_chains(0)->set_state(v1::SUCCEEDED);
  EXPECT_EQ(ProgressLine(job), "toy-abcdef  RUNNING  25.0 %  16 draws");
}

TEST(JobView, LiveViewsFitATerminalWhateverTheNames) {
  v1::Job job = RunningJob();
  job.set_id(std::string(63, 'n') + "-abcdef");
  job.set_state(v1::Job::SUCCEEDED_EARLY);
  job.add_stopped()->set_why(std::string(99, 'y'));
  EXPECT_THAT(ProgressLine(job), AllOf(HasSubstr(job.id()), HasSubstr("enough: yyy")));
  EXPECT_EQ(ProgressLine(job, 80), "nnnnnnnnnnn...nnn-abcdef  SUCCEEDED_EARLY  25.0 %  75 steps/s  16 draws  ETA 10s");
  EXPECT_EQ(ProgressLine(job, 40), "nnnnnnnnnn...nnn-abcdef  SUCCEEDED_EARLY");
  for (int i = 0; i < 12; ++i) {
    job.add_points()->set_name(std::string(40 + i, 'p'));
    v1::Chain* chain = job.add_chains();
    chain->mutable_id()->set_index(i + 2);
    chain->set_point(i);
    chain->set_state(i % 2 == 0 ? v1::CANCELLED : v1::SUCCEEDED);
    chain->set_num_draws(1'000'000);
    chain->set_worker(std::string(70, 'w'));
    for (int word = 0; word < 1000 + i; ++word) chain->mutable_reason()->append("größer ");
  }
  for (const size_t width : {80u, 41u}) {
    const std::string table = ProgressTable(job).Render({.max_width = width});
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(CountCharacters(line), width) << line;
    EXPECT_THAT(table, AllOf(HasSubstr("  SUCCEEDED  ..........   0 %"), HasSubstr("  CANCELLED  ")));
  }
}

TEST(JobView, AcceptanceIsShownOfMetropolisChainsAndNoiseThatBendsTheLawIsNamed) {
  v1::Job job = RunningJob();
  EXPECT_THAT(ChainTable(job).Render(), Not(HasSubstr("ACCEPTANCE")));
  v1::MetropolisStats* stats = job.mutable_chains(0)->mutable_stats()->mutable_metropolis();
  stats->set_acceptance(0.4321);
  EXPECT_THAT(ChainTable(job).Render(), AllOf(HasSubstr("ACCEPTANCE"), HasSubstr("0.432")));
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), Not(HasSubstr("Noise")));
  stats->set_noise_variance(1.5);
  stats->set_skew(-0.25);
  stats->set_kurtosis(3.5);
  stats->set_guarded(0.009);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              HasSubstr("variance 1.5, skew -0.25, kurtosis 3.5 of the energy difference over T, acceptance 0.432, "
                        "0.9 % of steps beyond correction"));
}

TEST(JobView, NamesTheClassesOfTheDataSet) {
  v1::Job job = RunningJob();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), Not(HasSubstr("Classes")));
  for (const char* name : {"cat", "\x1b[31mdog"}) job.mutable_inputs()->add_class_names(name);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), HasSubstr("Classes     cat, \\u001b[31mdog\n"));
}

TEST(JobView, TheLikelihoodIsSaidWhereTheJobNamesOne) {
  v1::Job job = RunningJob();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), Not(HasSubstr("likelihood")));
  job.mutable_spec()->mutable_likelihood()->mutable_gaussian()->set_variance(0.25);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), HasSubstr(", Gaussian likelihood of variance 0.25, T = "));
  job.mutable_spec()->mutable_likelihood()->mutable_gaussian()->set_learned(true);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              HasSubstr(", Gaussian likelihood of a learned variance, T = "));
}

TEST(JobView, ShowsWhatWasMeasuredAsRangesOverTheChains) {
  v1::Job job = RunningJob();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              AllOf(HasSubstr("effective temperature not measured"), Not(HasSubstr("Curvature"))));
  v1::RunReport* first = job.mutable_chains(0)->mutable_stats()->mutable_report();
  first->set_step_size(2e-6);
  first->set_effective_temperature(0.1101);
  first->set_gradient_variance(1.1e5);
  v1::RunReport* second = job.mutable_chains(1)->mutable_stats()->mutable_report();
  *second = *first;
  second->set_effective_temperature(0.125);
  second->set_curvature(9.5e5);
  second->set_stable_below(2.1e-6);
  const std::string text = DescribeJob(job, absl::FromUnixSeconds(0));
  EXPECT_THAT(text, HasSubstr("Heat        effective temperature 0.11 to 0.125, of a mini-batch gradient variance "
                              "1.1e+05 at alpha = 2e-06\n"));
  EXPECT_THAT(text, HasSubstr("Curvature   9.5e+05, alpha is stable below 2.1e-06\n"));
}

TEST(JobView, NamesTheChainsOfWarningsAndCountsThoseLeftOut) {
  v1::Job job = RunningJob();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), Not(HasSubstr("WARNING")));
  job.mutable_chains(1)->add_warnings("the step size is too large");
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), HasSubstr("WARNING     chain 1: the step size is too large"));
  for (int i = 0; i < 10; ++i) job.mutable_chains(1)->add_warnings("the step size is too large");
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), HasSubstr("WARNING     and 3 more, see -o json"));
}

TEST(JobView, DiagnosticsNameWhatHasNotConverged) {
  v1::Job job = RunningJob();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), Not(HasSubstr("R-HAT")));
  for (const auto& [quantity, rhat] :
       std::vector<std::pair<std::string, double>>{{"energy", 1.004}, {"theta.norm", 1.234}}) {
    v1::Job::Diagnostic* found = job.add_diagnostics();
    found->set_quantity(quantity);
    found->set_rhat(rhat);
    found->set_ess_bulk(812.4);
    found->set_ess_tail(640);
    found->set_mean(1234.5678);
    found->set_mcse_mean(0.0321);
    found->set_chains(4);
    found->set_values(500);
  }
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              HasSubstr("QUANTITY     R-HAT  ESS BULK  ESS TAIL     MEAN   MCSE  CHAINS  VALUES\n"
                        "energy      1.004        812       640  1234.57  0.032       4     500\n"
                        "theta.norm  1.234*       812       640  1234.57  0.032       4     500\n"));
  EXPECT_THAT(ProgressLine(job), HasSubstr("16 draws  R-hat 1.234  ESS 640  ETA")) << "of bulk and tail";
  job.mutable_diagnostics(1)->set_ess_bulk(77.4);
  EXPECT_THAT(ProgressLine(job), HasSubstr("16 draws  R-hat 1.234  ESS 77  ETA"));
  job.mutable_diagnostics(1)->clear_rhat();
  job.mutable_diagnostics(1)->set_ess_bulk(812);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)), HasSubstr("theta.norm      -        812"));
}

TEST(JobView, QuantitiesThatDescribeAreLastAndNotJudged) {
  v1::Job job = RunningJob();
  for (const auto& [quantity, rhat] :
       std::vector<std::pair<std::string, double>>{{"theta.norm", 3.5}, {"theta.probability[7]", 1.02}}) {
    v1::Job::Diagnostic* found = job.add_diagnostics();
    found->set_quantity(quantity);
    found->set_chains(4);
    found->set_rhat(rhat);
    found->set_ess_bulk(rhat < 2 ? 100 : 7);
    found->set_ess_tail(90);
    found->set_descriptive(rhat > 2);
  }
  EXPECT_THAT(ProgressLine(job), HasSubstr("  R-hat 1.020  ESS 90  "));
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              HasSubstr("QUANTITY               R-HAT  ESS BULK  ESS TAIL  MEAN  MCSE  CHAINS  VALUES  DECIDES\n"
                        "theta.probability[7]  1.020*       100        90     0     0       4       0  yes\n"
                        "theta.norm            3.500          7        90     0     0       4       0  no\n"));
}

TEST(JobView, NestedRhatHasAColumnWhereChainsShareStarts) {
  v1::Job job = RunningJob();
  for (const char* quantity : {"energy", "theta.norm"}) {
    v1::Job::Diagnostic* found = job.add_diagnostics();
    found->set_quantity(quantity);
    found->set_rhat(1);
  }
  job.mutable_diagnostics(0)->set_nested_rhat(1.0204);
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              HasSubstr("QUANTITY     R-HAT  ESS BULK  ESS TAIL  MEAN  MCSE  CHAINS  VALUES  NESTED R-HAT\n"
                        "energy      1.000          0         0     0     0       0       0         1.020\n"
                        "theta.norm  1.000          0         0     0     0       0       0             -\n"));
}

TEST(JobView, RanksHaveATableOfTheirOwn) {
  v1::Job job = RunningJob();
  for (const auto& [quantity, p_value] :
       std::vector<std::pair<std::string, double>>{{"theta.norm", 0.006}, {"theta.intercept", 0.003}}) {
    v1::Job::Diagnostic* found = job.add_diagnostics();
    found->set_quantity(quantity);
    found->set_chains(100);
    found->set_ess_bulk(4200);
    for (const int64_t count : {16, 0, 1, 8}) found->mutable_ranks()->add_counts(count);
    found->mutable_ranks()->set_p_value(p_value);
  }
  job.add_diagnostics()->mutable_ranks();
  EXPECT_THAT(DescribeJob(job, absl::FromUnixSeconds(0)),
              AllOf(HasSubstr("QUANTITY         CHAINS  ESS  RANKS  P VALUE\n"
                              "theta.norm          100   42  \u2588.\u2581\u2584    0.006\n"
                              "theta.intercept     100   42  \u2588.\u2581\u2584    0.003*\n"),
                    HasSubstr("U shape: the draws are too narrow; hill: too wide"),
                    HasSubstr("P VALUE -: too few draws or chains"), HasSubstr("* The ranks are not level"),
                    Not(HasSubstr("not converged"))));
  job.mutable_diagnostics(1)->mutable_ranks()->set_p_value(0.5);
  EXPECT_THAT(ExplainRanks(job), Not(HasSubstr("*")));
  job.mutable_diagnostics()->RemoveLast();
  EXPECT_THAT(ExplainRanks(job), Not(HasSubstr("P VALUE"))) << "each quantity has one";
  EXPECT_EQ(JudgedRhat(job.diagnostics(0)), std::nullopt);
  EXPECT_EQ(ExplainRanks(RunningJob()), "");
}

TEST(JobView, ExplainsAnRhatThatIsNotBelowItsBound) {
  v1::Job network = RunningJob(), density = RunningJob();
  for (v1::Job* job : {&network, &density}) {
    job->add_diagnostics()->set_rhat(1.004);
    job->add_diagnostics()->set_rhat(4.5);
    for (v1::Job::Diagnostic& found : *job->mutable_diagnostics()) found.set_chains(4);
  }
  EXPECT_THAT(DescribeJob(density, absl::FromUnixSeconds(0)), HasSubstr("\n* The chains have not converged: "));
  network.add_diagnostics()->set_descriptive(true);
  EXPECT_THAT(DescribeJob(network, absl::FromUnixSeconds(0)),
              AllOf(HasSubstr("\n* The chains predict these rows differently. Chains of a network often do"),
                    Not(HasSubstr("not converged"))));
  network.mutable_diagnostics(0)->clear_rhat();
  EXPECT_THAT(ExplainRhat(network), HasSubstr("have not converged")) << "predictions that are no numbers are a fault";
  density.mutable_diagnostics(1)->set_rhat(1.009);
  EXPECT_EQ(ExplainRhat(density), "");
}

TEST(JobView, AQuantityThatCannotBeJudgedIsTheWorst) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto add = [](v1::Job* job, double ess_bulk, double ess_tail, std::optional<double> rhat) {
    v1::Job::Diagnostic* found = job->add_diagnostics();
    found->set_chains(4);
    found->set_ess_bulk(ess_bulk);
    found->set_ess_tail(ess_tail);
    if (rhat) found->set_rhat(*rhat);
  };
  v1::Job first = RunningJob(), last = RunningJob(), alone = RunningJob();
  add(&first, kNan, kNan, std::nullopt);
  for (v1::Job* job : {&first, &last}) add(job, 320, 300, 1.003);
  add(&last, kNan, kNan, std::nullopt);
  for (const v1::Job& job : {first, last}) EXPECT_THAT(ProgressLine(job), HasSubstr("  R-hat inf  ESS 0  "));
  add(&alone, 320, 300, std::nullopt);
  alone.mutable_diagnostics(0)->set_chains(1);
  EXPECT_THAT(ProgressLine(alone), AllOf(HasSubstr("  ESS 300  "), Not(HasSubstr("R-hat"))))
      << "it has none to agree with";
}

TEST(JobView, AgesHaveTwoUnits) {
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "59s");
  EXPECT_EQ(FormatAge(absl::Seconds(60)), "1m00s");
  EXPECT_EQ(FormatAge(absl::Minutes(125)), "2h05m");
  EXPECT_EQ(FormatAge(absl::Hours(102)), "4d06h");
  EXPECT_EQ(FormatAge(absl::Seconds(-1)), "0s");  // clocks of two machines
}

TEST(OutcomeOf, IsAFailureWithTheReasonsOfTheChains) {
  v1::Job job = RunningJob();
  job.set_state(v1::Job::SUCCEEDED_EARLY);
  EXPECT_TRUE(OutcomeOf(job).ok());
  job.set_state(v1::Job::FAILED);
  job.mutable_chains(1)->set_state(v1::DIVERGED);
  job.mutable_chains(1)->set_reason("energy is not finite");
  EXPECT_EQ(std::string(OutcomeOf(job).message()),
            "job toy-abcdef ended FAILED: chain 1 DIVERGED: energy is not finite");
  job.mutable_chains(0)->set_state(v1::DIVERGED);
  job.mutable_chains(0)->set_reason("energy is not finite");
  EXPECT_EQ(std::string(OutcomeOf(job).message()),
            "job toy-abcdef ended FAILED: chains 0, 1 DIVERGED: energy is not finite");
  job.set_state(v1::Job::CANCELLED);
  EXPECT_EQ(ExitCodeOf(OutcomeOf(job)), kExitFailed);
}

TEST(PaintStates, GivesEachStateItsColorAndLeavesNamesAlone) {
  EXPECT_EQ(PaintStates("0  LEASED  12"), "0  \x1b[34mLEASED\x1b[0m  12");
  EXPECT_EQ(PaintStates("toy-running  SUCCEEDED"), "toy-running  \x1b[32mSUCCEEDED\x1b[0m");
  EXPECT_EQ(PaintStates("SUCCEEDED_EARLY"), "\x1b[32mSUCCEEDED_EARLY\x1b[0m");
  EXPECT_EQ(PaintStates("PENDING DIVERGED"), "\x1b[90mPENDING\x1b[0m \x1b[31mDIVERGED\x1b[0m");
}

TEST(JobView, AgesAreNoChange) {
  const std::string shown = WithoutAges("JOB  DRAWS  AGE\na       12  59s\n");
  EXPECT_EQ(shown, WithoutAges("JOB  DRAWS    AGE\na       12  1m00s\n"));
  EXPECT_NE(shown, WithoutAges("JOB  DRAWS    AGE\na       13  1m00s\n"));
  EXPECT_EQ(WithoutAges("w  10.0s  yes\n"), WithoutAges("w   0.1s  yes\n"));
  EXPECT_EQ(WithoutAges("{\"chains\":1,\"seconds_since_sync\":1e-05}"),
            WithoutAges("{\"chains\":1,\"seconds_since_sync\":2.5}"));
}

}  // namespace
}  // namespace chainfleet
