// Tests the document that the report's page draws, and that no text escapes from it. tests/e2e/report_test.py tests the
// page.
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "client/cli/report/page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/report_fixture.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

using Json = nlohmann::json;

// Parses the text between the tags, as the page's script does.
Json DocumentIn(const std::string& page) {
  const std::string tag = "<script type=\"application/json\" id=\"report\">";
  const size_t begin = page.find(tag) + tag.size();
  return Json::parse(page.substr(begin, page.find("</script", begin) - begin));
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Returns the cells of one column of a table.
std::vector<std::string> Column(const Json& table, const std::string& name) {
  std::vector<std::string> cells;
  for (size_t i = 0; i < table.at("columns").size(); ++i) {
    if (table.at("columns")[i].at("name") != name) continue;
    for (const Json& row : table.at("rows")) cells.push_back(row[i]);
  }
  return cells;
}

std::string Fact(const Json& document, const std::string& name) {
  for (const Json& fact : document.at("facts")) {
    if (fact[0] == name) return fact[1];
  }
  return "";
}

TEST(Report, HasTheNumbersOfTheWhole) {
  const Json document = DocumentIn(RenderReport(WholeReport()));
  EXPECT_EQ(document.at("id"), "fashion-emcmc-zlxfm5");
  EXPECT_EQ(document.at("evaluation").at("scores")[4].at("accuracy"), 0.8977);
  EXPECT_EQ(document.at("evaluation").at("scores")[0].at("ece"), "NaN") << "as proto3 JSON has it";
  EXPECT_THAT(Column(document.at("tables").at("diagnostics"), "R-HAT"), ElementsAre("1.004 ", "1.234*"));
  EXPECT_THAT(Fact(document, "Posterior"), HasSubstr("N = 60000, D = 44426"));
  EXPECT_THAT(document.at("job_file").get<std::string>(), HasSubstr("learning_rate:"));
  EXPECT_EQ(document.at("warnings").size(), 3u);
  EXPECT_EQ(document.at("class_names")[9], "Ankle boot");
  EXPECT_EQ(document.at("pictures").at("shape").dump(), "[1,28,28]");
}

TEST(Report, HasNestedRhatWhereChainsShareTheirStarts) {
  const Json alone = DocumentIn(RenderReport(WholeReport())), shared = DocumentIn(RenderReport(NumbersReport()));
  EXPECT_TRUE(alone.at("diagnostics")[0].at("nested_rhat").is_null());
  EXPECT_THAT(Column(alone.at("tables").at("diagnostics"), "NESTED R-HAT"), IsEmpty());
  EXPECT_NEAR(shared.at("diagnostics")[1].at("nested_rhat"), 1.231, 1e-12);
  EXPECT_THAT(Column(shared.at("tables").at("diagnostics"), "NESTED R-HAT"), ElementsAre("1.001", "1.231"));
}

TEST(Report, HasConformalSetsAndWeightsOfChainsWhereTheyWereEvaluated) {
  ReportContents contents = WholeReport();
  const Json tables = DocumentIn(RenderReport(contents)).at("tables");
  EXPECT_THAT(Column(tables.at("conformal"), "CONFORMAL LEVEL %"), ElementsAre("50", "80", "90", "95", "99"));
  EXPECT_THAT(Column(tables.at("conformal"), "THRESHOLD")[2], "0.2824");
  EXPECT_THAT(Column(tables.at("conformal"), "COVERAGE %")[2], "90.40");
  EXPECT_THAT(Column(tables.at("conformal"), "MEAN CLASSES")[2], "5.00");
  EXPECT_THAT(Column(tables.at("weights"), "STACKING WEIGHT"), ElementsAre("0.4000", "0.3000", "0.2000", "0.1000"));
  EXPECT_THAT(Column(tables.at("weights"), "PSEUDO-BMA WEIGHT")[0], "1.0000");
  const Json numbers = DocumentIn(RenderReport(NumbersReport())).at("tables");
  EXPECT_THAT(Column(numbers.at("conformal"), "MEAN WIDTH")[2], "5");
  contents.evaluation->clear_conformal();
  contents.evaluation->clear_weights();
  const Json without = DocumentIn(RenderReport(contents)).at("tables");
  EXPECT_THAT(without.at("conformal").at("rows"), IsEmpty());
  EXPECT_THAT(without.at("weights").at("rows"), IsEmpty());
}

// The job of the fixture keeps 8 steps with two draws each, theta and theta_a.
TEST(Report, ExplainsRanksWhereAJobCalibrates) {
  ReportContents contents = WholeReport();
  EXPECT_FALSE(DocumentIn(RenderReport(contents)).at("calibrates"));
  contents.job.mutable_diagnostics(0)->mutable_ranks()->add_counts(3);
  EXPECT_TRUE(DocumentIn(RenderReport(contents)).at("calibrates"));
}

TEST(Report, CountsADrawAsOneNetworkEverywhere) {
  const Json document = DocumentIn(RenderReport(WholeReport()));
  EXPECT_EQ(document.at("num_draws"), 16);
  EXPECT_THAT(Fact(document, "Draws"), HasSubstr("16 committed"));
  EXPECT_THAT(Fact(document, "Posterior"), HasSubstr("4 draws per chain"));
  EXPECT_THAT(Column(document.at("tables").at("chains"), "DRAWS"), ElementsAre("4", "4", "4", "4"));
  EXPECT_THAT(Column(document.at("tables").at("scores"), "DRAWS"), ElementsAre("8", "8", "8", "8", "16"));
  const Json& evaluation = document.at("evaluation");
  EXPECT_EQ(evaluation.at("draws_used"), "16");
  EXPECT_EQ(evaluation.at("draws_in_version"), "16");
  EXPECT_EQ(evaluation.at("curve").back().at("num_draws"), "16");
}

TEST(Report, NeedsNothingBesideItself) {
  const std::string page = RenderReport(WholeReport());
  const std::regex outside("\\b(src|href)\\s*=\\s*[\"']|url\\(|@import|<link|<img|<iframe");
  // The library's own text has addresses in comments; it cannot follow them, because the policy lets nothing through.
  std::string ours = page.substr(0, page.find("/*!"));
  ours += page.substr(page.find("'use strict';\nconst report"));
  std::smatch match;
  EXPECT_FALSE(std::regex_search(ours, match, outside)) << match.str() << match.suffix().str().substr(0, 40);
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"));
  EXPECT_THAT(page, HasSubstr("The above copyright notice and this permission notice")) << "the library's license";
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(Report, TextOfUsersStaysText) {
  const std::string page = RenderReport(WholeReport());
  for (const std::string text : {"</script><script>alert(1)</script>", "<!--<script>",
                                 "]]>\xe2\x80\xa8\xe2\x80\xa9'\"&\\", "\x01\n{{digests}}"}) {
    const std::string hostile = RenderReport(HostileReport(text));
    EXPECT_EQ(DocumentIn(hostile).at("name"), text);
    EXPECT_EQ(Count(hostile, "<script"), Count(page, "<script"));
    EXPECT_EQ(Count(hostile, "</script"), Count(page, "</script"));
    EXPECT_EQ(Count(hostile, "<!--"), Count(page, "<!--"));
    const std::string json = ReportJson(HostileReport(text));
    for (const char* never : {"<", ">", "&", "\xe2"}) EXPECT_THAT(json, Not(HasSubstr(never)));
  }
  EXPECT_THAT(DocumentIn(RenderReport(HostileReport("a\xff"))).at("name"), "a\xef\xbf\xbd") << "no UTF-8";
}

TEST(Report, StandsNumbersThatAreNone) {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity(), -1e308, 0.0}) {
    EXPECT_EQ(DocumentIn(RenderReport(ReportOf(number))).at("num_chains"), 4);
  }
}

TEST(Report, StandsWhateverAServerSends) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_TRUE(DocumentIn(RenderReport(RandomReport(seed))).contains("evaluation"));
  }
}

TEST(Report, ShowsOnePointOfASweep) {
  ReportContents contents = WholeReport();
  v1::Job& job = contents.job;
  for (int point = 0; point < 2; ++point) {
    job.add_points()->set_index(point);
    job.mutable_points(point)->set_name("eta=0." + std::to_string(point + 1));
    job.mutable_points(point)->set_num_draws(3);
    job.mutable_points(point)->mutable_report()->set_temperature(point + 7);
  }
  for (int i = 2; i < 4; ++i) job.mutable_chains(i)->set_point(1);
  job.mutable_diagnostics(1)->set_point(1);
  contents.point = 1;
  const Json document = DocumentIn(RenderReport(contents));
  EXPECT_EQ(document.at("point"), "eta=0.2");
  EXPECT_EQ(document.at("num_chains"), 2);
  EXPECT_EQ(document.at("num_draws"), 6) << "of the point: two of each of its 3 steps";
  EXPECT_THAT(Column(document.at("tables").at("chains"), "CHAIN"), ElementsAre("2", "3"));
  EXPECT_THAT(Column(document.at("tables").at("diagnostics"), "QUANTITY"), ElementsAre("theta.norm"));
  EXPECT_THAT(Fact(document, "Posterior"), HasSubstr("T = 8"));
  job.mutable_spec()->mutable_sampler()->mutable_penalty_mh()->set_effective_data_size(128);
  EXPECT_THAT(Fact(DocumentIn(RenderReport(contents)), "Posterior"), HasSubstr(", likelihood of 128 examples, "));
  EXPECT_THAT(document.at("traces"), IsEmpty()) << "of chains of point 0";
}

TEST(Report, ShowsPredictedRowsForNumbers) {
  const Json document = DocumentIn(RenderReport(NumbersReport()));
  const Json& numbers = document.at("numbers");
  const size_t rows = numbers.at("rows").size(), levels = numbers.at("levels").size();
  EXPECT_EQ(rows, 300u);
  EXPECT_EQ(numbers.at("targets").size(), rows);
  EXPECT_EQ(numbers.at("predicted").at("scores").at("mean").size(), rows);
  EXPECT_EQ(numbers.at("predicted").at("quantiles").size(), rows * levels);
  EXPECT_THAT(PredictedLevels(), IsSupersetOf({testing::DoubleNear(0.05, 1e-12), testing::DoubleNear(0.95, 1e-12)}));
  EXPECT_TRUE(document.at("pictures").is_null());
}

}  // namespace
}  // namespace chainfleet
