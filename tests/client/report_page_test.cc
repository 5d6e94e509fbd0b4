#include <cmath>
#include <limits>
#include <pugixml.hpp>
#include <regex>
#include <string>
#include <vector>

#include "client/cli/report/page.h"
#include "client/cli/report/summary.h"
#include "gmock/gmock.h"
#include "google/protobuf/reflection.h"
#include "gtest/gtest.h"
#include "tests/client/report_fixture.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The ids of the page's figures, in their order.
std::vector<std::string> FigureIds(const std::string& page) {
  std::vector<std::string> ids;
  const std::regex figure("<figure id=\"([^\"]*)\"");
  for (std::sregex_iterator it(page.begin(), page.end(), figure), end; it != end; ++it) ids.push_back((*it)[1]);
  return ids;
}

// All drawings as XML; fails the test if one is not well-formed or has a number that is none.
void CheckDrawings(const std::string& page) {
  size_t begin = 0, drawings = 0;
  while ((begin = page.find("<svg viewBox", begin)) != std::string::npos) {
    const size_t end = page.find("</svg>", begin) + 6;
    const std::string svg = page.substr(begin, end - begin);
    pugi::xml_document document;
    const auto parsed = document.load_buffer(svg.data(), svg.size());
    ASSERT_TRUE(parsed) << parsed.description() << "\n" << svg.substr(0, 400);
    for (const auto& node :
         document.select_nodes("//@*[name()!='class' and name()!='id' and name()!='aria-labelledby']")) {
      EXPECT_EQ(std::string(node.attribute().value()).find_first_of("nN"), std::string::npos)
          << node.attribute().name() << "=" << node.attribute().value();
    }
    begin = end;
    ++drawings;
  }
}

// Puts `text` into every string, and `number` into every double, that is set.
void Replace(const std::string* text, const double* number, Message* message) {
  const google::protobuf::Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int n = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
    if (field->is_map()) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING && text != nullptr) {
      for (int i = 0; i < n; ++i) reflection->SetRepeatedString(message, field, i, *text);
      if (!field->is_repeated()) reflection->SetString(message, field, *text);
    } else if (field->type() == FieldDescriptor::TYPE_DOUBLE && number != nullptr) {
      for (int i = 0; i < n; ++i) reflection->SetRepeatedDouble(message, field, i, *number);
      if (!field->is_repeated()) reflection->SetDouble(message, field, *number);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < n; ++i) Replace(text, number, reflection->MutableRepeatedMessage(message, field, i));
      if (!field->is_repeated()) Replace(text, number, reflection->MutableMessage(message, field));
    }
  }
}

TEST(Report, HasAFigureForEachPartOfTheWhole) {
  const std::string page = RenderReport(WholeReport());
  EXPECT_THAT(FigureIds(page),
              ElementsAre("scores", "reliability", "entropy", "curve", "examples", "corruptions", "severity", "fisher",
                          "lines", "diagnostics", "trace-energy", "trace-theta-norm", "chains", "job"));
  CheckDrawings(page);
  EXPECT_THAT(page, Not(HasSubstr("Not in this report")));
  for (const char* words :
       {"fashion-emcmc-zlxfm5", "89.77 %", "0.2763", "mean single draw 89.26 %", "N = 60000, D = 44426", "1.234*",
        "try a learning rate below 0.1", "learning_rate:", "gaussian_noise"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
}

TEST(Report, NeedsNothingBesideItself) {
  const std::string page = RenderReport(WholeReport());
  const std::regex outside("\\b(src|href)\\s*=\\s*(?![\"']?data:)|url\\(|@import|<script|<link|https?://");
  std::smatch match;
  EXPECT_FALSE(std::regex_search(page, match, outside)) << match.str() << match.suffix().str().substr(0, 40);
}

TEST(Report, SaysHowToGetWhatIsAbsent) {
  ReportContents contents = WholeReport();
  contents.traces.clear();
  contents.example_rows.Clear();
  for (const char* field : {"curve", "corrupted", "flatness", "examples", "ood_dataset"}) {
    const auto* descriptor = v1::Evaluation::descriptor()->FindFieldByName(field);
    contents.evaluation->GetReflection()->ClearField(&*contents.evaluation, descriptor);
  }
  std::string page = RenderReport(contents);
  EXPECT_THAT(FigureIds(page), ElementsAre("scores", "reliability", "entropy", "diagnostics", "chains", "job"));
  const std::string again = "chainfleet report fashion-emcmc-zlxfm5 --dataset fashion-mnist-test";
  for (const std::string options : {" --ood NAME", " --corruptions all", " --flatness", ""}) {
    EXPECT_THAT(page, HasSubstr(again + options + " -o report.html"));
  }
  contents.evaluation.reset();
  page = RenderReport(contents);
  EXPECT_THAT(FigureIds(page), ElementsAre("diagnostics", "chains", "job"));
  EXPECT_THAT(page, HasSubstr("chainfleet report fashion-emcmc-zlxfm5 --dataset NAME -o report.html"));
  contents.job.mutable_spec()->clear_dataset();
  EXPECT_THAT(RenderReport(contents), HasSubstr("there are no rows to score"));
}

TEST(Report, TextOfUsersStaysText) {
  const std::string hostile = "</svg></style></pre><img src=x onerror=\"alert(1)\">'&";
  ReportContents contents = WholeReport();
  Replace(&hostile, nullptr, &contents.job);
  Replace(&hostile, nullptr, &*contents.evaluation);
  for (v1::Traces& traces : contents.traces) Replace(&hostile, nullptr, &traces);
  contents.server_version = hostile;
  const std::string page = RenderReport(contents);
  EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(page, Not(HasSubstr("</svg></style>")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;"));
  CheckDrawings(page);
}

TEST(Report, StandsNumbersThatAreNone) {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity(), -1e308, 0.0}) {
    ReportContents contents = WholeReport();
    Replace(nullptr, &number, &contents.job);
    Replace(nullptr, &number, &*contents.evaluation);
    for (v1::Traces& traces : contents.traces) Replace(nullptr, &number, &traces);
    CheckDrawings(RenderReport(contents));
  }
}

TEST(Report, StandsWhateverAServerSends) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomMessage random(seed);
    ReportContents contents;
    contents.job = random.Make<v1::Job>();
    contents.point = random.Below(3);
    contents.evaluation = random.Make<v1::Evaluation>();
    contents.traces = {random.Make<v1::Traces>(), random.Make<v1::Traces>()};
    contents.example_rows = random.Make<v1::DatasetRowValues>();
    contents.num_classes = random.Below(12);
    CheckDrawings(RenderReport(contents));
  }
}

TEST(Report, OfASweepIsAboutOnePoint) {
  v1::Job job = WholeReport().job;
  for (int point = 0; point < 2; ++point) {
    job.add_points()->set_index(point);
    job.mutable_points(point)->set_name("eta=0." + std::to_string(point + 1));
    job.mutable_points(point)->mutable_report()->set_temperature(point + 1);
  }
  for (int i = 2; i < 4; ++i) job.mutable_chains(i)->set_point(1);
  job.mutable_diagnostics(1)->set_point(1);
  const v1::Job second = JobOfPoint(job, 1);
  EXPECT_EQ(second.chains_size(), 2);
  EXPECT_EQ(second.chains(0).id().index(), 2);
  EXPECT_EQ(second.diagnostics(0).quantity(), "theta.norm");
  EXPECT_EQ(second.report().temperature(), 2);
  ReportContents contents = WholeReport();
  contents.job = job;
  contents.point = 1;
  const std::string page = RenderReport(contents);
  EXPECT_THAT(page, HasSubstr("point eta=0.2"));
  EXPECT_THAT(FigureIds(page), Not(testing::Contains("trace-energy"))) << "of chains of point 0";
}

TEST(Report, OfNumbersHasNoChartsOfClasses) {
  ReportContents contents = WholeReport();
  contents.evaluation->clear_scores();
  contents.evaluation->clear_corrupted();
  for (const char* what : {"single theta", "all"}) {
    v1::Scores* scores = contents.evaluation->add_scores();
    scores->set_what(what);
    scores->set_rmse(0.31);
    scores->set_coverage_90(0.88);
  }
  contents.evaluation->clear_curve();
  contents.evaluation->clear_examples();
  const std::string page = RenderReport(contents);
  EXPECT_THAT(page, HasSubstr("RMSE"));
  EXPECT_THAT(page, HasSubstr("88.0 %"));
  EXPECT_THAT(FigureIds(page), Not(testing::Contains("reliability")));
  EXPECT_THAT(page, Not(HasSubstr("Scores over the number of draws"))) << "a new evaluation would not have them either";
}

}  // namespace
}  // namespace chainfleet
