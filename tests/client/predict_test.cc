// Tests the verb predict with a server that returns the test's answers.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chainfleet/v1/predict.grpc.pb.h"
#include "client/cli/verbs/verbs.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;

class FakePredictService final : public v1::PredictService::Service {
 public:
  grpc::Status Predict(grpc::ServerContext*, const v1::PredictRequest* request,
                       v1::PredictResponse* response) override {
    asked = *request;
    *response = answer;
    return grpc::Status::OK;
  }

  v1::PredictRequest asked;
  v1::PredictResponse answer;
};

class PredictVerbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/x.npy", std::ios::binary)
        << WriteNpy({ArrayType::kFloat32, {1, 1}, std::string(sizeof(float), '\0')});
    v1::PredictResponse& answer = service_.answer;
    answer.set_num_rows(1);
    answer.mutable_scores()->add_mean(2.5);
    answer.mutable_scores()->add_variance_aleatoric(1);
    answer.mutable_scores()->add_variance_epistemic(0.5);
    for (const double quantile : {1.25, 3.75}) answer.add_quantiles(quantile);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Returns the output. Throws CLI::ParseError for refused arguments.
  std::string Run(const std::vector<std::string>& options, absl::StatusCode code = absl::StatusCode::kOk) {
    std::vector<std::string> arguments = {"predict",          "wine",      "--input",
                                          folder_ + "/x.npy", "--address", server_.address()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    std::reverse(arguments.begin(), arguments.end());  // order that CLI11 expects
    CLI::App program;
    Invocation run;
    AddPredict(&program, &run);
    std::ostringstream printed;
    std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
    const auto restore = std::unique_ptr<std::streambuf, void (*)(std::streambuf*)>(
        before, [](std::streambuf* buffer) { std::cout.rdbuf(buffer); });
    program.parse(arguments);
    EXPECT_EQ(run.status.code(), code) << run.status;
    return printed.str();
  }

  const std::string folder_ = ::testing::TempDir() + "/predict-" + std::to_string(getpid());
  FakePredictService service_;
  LoopbackServer server_{&service_};
};

TEST_F(PredictVerbTest, SendsThePriorityAndRefusesOneThatIsNone) {
  Run({});
  EXPECT_EQ(service_.asked.priority(), "");
  for (const char* priority : {"low", "normal", "high"}) {
    Run({"--priority", priority});
    EXPECT_EQ(service_.asked.priority(), priority);
  }
  EXPECT_THROW(Run({"--priority", "urgent"}), CLI::ValidationError);
}

TEST_F(PredictVerbTest, AsksForTheDrawsOfFailedChains) {
  Run({});
  EXPECT_FALSE(service_.asked.selection().include_failed());
  Run({"--include-failed"});
  EXPECT_TRUE(service_.asked.selection().include_failed());
}

TEST_F(PredictVerbTest, WritesACsv) {
  Run({"--quantiles", "0.1,0.9", "--output", folder_ + "/p.csv"});
  std::ostringstream text;
  text << std::ifstream(folder_ + "/p.csv").rdbuf();
  EXPECT_EQ(text.str(),
            "row,mean,quantiles_0,quantiles_1,variance_aleatoric,variance_epistemic\n0,2.5,1.25,3.75,1,0.5\n");
}

TEST_F(PredictVerbTest, WritesConformalSetsToACsv) {
  v1::PredictResponse& answer = service_.answer;
  answer.Clear();
  answer.set_num_rows(1);
  answer.set_num_classes(2);
  for (const double p : {0.25, 0.75}) answer.mutable_scores()->add_mean_probability(p);
  for (const int member : {0, 1}) answer.add_prediction_set(member);
  const auto written = [&] {
    Run({"--conformal", "eval-abcdefghij", "--output", folder_ + "/p.csv"});
    std::ostringstream text;
    text << std::ifstream(folder_ + "/p.csv").rdbuf();
    return text.str();
  };
  EXPECT_EQ(written(),
            "row,mean_probability_0,mean_probability_1,prediction_set_0,prediction_set_1\n0,0.25,0.75,0,1\n");
  for (const char* name : {"cat", "dog"}) answer.add_class_names(name);
  EXPECT_EQ(written(),
            "row,mean_probability_cat,mean_probability_dog,prediction_set_cat,prediction_set_dog\n0,0.25,0.75,0,1\n");
}

TEST_F(PredictVerbTest, RefusesAFormatOfStdoutBesideAFile) {
  for (const std::string format : {"json", "yaml", "name"}) {
    Run({"--output", folder_ + "/p.npz", "-o", format}, absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/p.npz"));
  Run({"--output", folder_ + "/p.npz", "-o", "table"});
}

TEST_F(PredictVerbTest, SendsTheChoiceOfDraws) {
  Run({"--kinds", "theta,theta_a", "--chains", "0,3", "--members", "4", "--every", "2", "--max-draws", "9", "--version",
       "5"});
  const v1::DrawSelection& selection = service_.asked.selection();
  EXPECT_THAT(selection.kinds(), ElementsAre(v1::THETA, v1::THETA_A));
  EXPECT_THAT(selection.chains(), ElementsAre(0, 3));
  EXPECT_EQ(selection.members(), 4);
  EXPECT_EQ(selection.every(), 2);
  EXPECT_EQ(selection.max_draws(), 9);
  EXPECT_EQ(selection.version(), 5);
}

TEST_F(PredictVerbTest, RefusesOutputsOfOtherFormatsAndCountsOutOfRange) {
  EXPECT_THROW(Run({"--output", folder_ + "/p.txt"}), CLI::ValidationError);
  for (const std::string count : {"0", "1.5", "2147483648", "99999999999999999999"}) {
    for (const std::string flag : {"--members", "--chains"}) {
      if (flag == "--chains" && count == "0") continue;
      try {
        Run({flag, count});
        FAIL() << flag << " " << count << " was taken";
      } catch (const CLI::ValidationError& error) {
        EXPECT_EQ(error.what(), absl::StrCat(flag, ": \"", count, "\" is not a whole number from ",
                                             flag == "--chains" ? 0 : 1, " to 2147483647"));
      }
    }
  }
}

TEST_F(PredictVerbTest, ShowsTheErrorOfEachQuantile) {
  const std::string unknown = Run({"--quantiles", "0.1,0.9"});
  EXPECT_THAT(service_.asked.quantiles(), ElementsAre(0.1, 0.9));
  EXPECT_THAT(unknown, ContainsRegex("Q 0.1 +MC ERROR +Q 0.9 +MC ERROR"));
  EXPECT_THAT(unknown, ContainsRegex("1.25 +- +3.75 +-"));
  service_.answer.add_quantile_errors(0.125);
  service_.answer.add_quantile_errors(std::nan(""));
  EXPECT_THAT(Run({"--quantiles", "0.1,0.9"}), ContainsRegex("1.25 +0.125 +3.75 +-")) << "no density there";
}

TEST_F(PredictVerbTest, WritesTheErrorsOfQuantilesThatAreKnown) {
  const std::string path = folder_ + "/p.npz";
  const auto written = [&] {
    Run({"--quantiles", "0.1,0.9", "--output", path});
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    const auto arrays = ReadNpz(bytes.str());
    EXPECT_TRUE(arrays.ok()) << arrays.status();
    return *arrays;
  };
  EXPECT_FALSE(written().contains("quantiles_error"));
  const std::vector<double> errors = {0.125, 0.5};
  for (const double error : errors) service_.answer.add_quantile_errors(error);
  const auto arrays = written();
  ASSERT_TRUE(arrays.contains("quantiles_error"));
  EXPECT_THAT(arrays.at("quantiles_error").shape, ElementsAre(1, 2));
  EXPECT_EQ(arrays.at("quantiles_error").bytes,
            std::string(reinterpret_cast<const char*>(errors.data()), 2 * sizeof(double)));
}

}  // namespace
}  // namespace chainfleet
