#include "client/cli/job_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::JobSpec Parse(const std::string& text) {
  const auto file = ParseJobFile("job.yaml", text);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->spec : v1::JobSpec();
}

// "PLACE: MESSAGE" of each violation.
std::vector<std::string> Errors(const std::string& text) {
  const auto file = ParseJobFile("job.yaml", text);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(ReasonOf(file.status()), kJobFileReason);
  std::vector<std::string> errors;
  for (const FieldViolation& v : FieldViolationsOf(file.status())) errors.push_back(v.path + ": " + v.message);
  return errors;
}

TEST(JobFile, ReadsYamlWithEveryTypeOfField) {
  const v1::JobSpec spec = Parse(
      "name: fashion-emcmc\n"
      "model: {builtin: mlp, hidden: [64, 32]}\n"
      "sampler: {emcmc: {eta: 4.0e-4}}\n"
      "learning_rate: {cyclical: {initial: 0.2, cycles: 4}}\n"
      "temperature: 1.0e-4\n"
      "num_epochs: 1.2e1\n"
      "chains: \"4\"\n"
      "collect: {kinds: [theta, theta_a]}\n"
      "seed: 18446744073709551615\n");
  EXPECT_EQ(spec.name(), "fashion-emcmc");
  EXPECT_THAT(spec.model().hidden(), ElementsAre(64, 32));
  EXPECT_EQ(spec.sampler().emcmc().eta(), 4.0e-4);
  EXPECT_EQ(spec.learning_rate().cyclical().initial(), 0.2);
  EXPECT_EQ(spec.temperature(), 1.0e-4);
  EXPECT_EQ(spec.num_epochs(), 12);
  EXPECT_EQ(spec.chains(), 4);
  EXPECT_THAT(spec.collect().kinds(), ElementsAre("theta", "theta_a"));
  EXPECT_EQ(spec.seed(), 18446744073709551615u);
  EXPECT_FALSE(spec.has_batch_size());
}

TEST(JobFile, TakesAPlainNumberForAConstantSchedule) {
  EXPECT_EQ(Parse("name: a\nlearning_rate: 1e-3\n").learning_rate().constant(), 1e-3);
  EXPECT_EQ(Parse("name: a\nstep_size: {constant: 0.5}\n").step_size().constant(), 0.5);
  EXPECT_THAT(Errors("learning_rate: fast\n"),
              ElementsAre("job.yaml:1: learning_rate: expects a number, got \"fast\""));
}

TEST(JobFile, AListOfNumbersIsNotEmpty) {
  EXPECT_THAT(Errors("name: a\nsweep:\n  temperature: [1, 2]\n  eta: []\n"),
              ElementsAre("job.yaml:4: sweep.eta: expects at least one number, or to be left out, got an empty list"));
  EXPECT_THAT(Errors("sweep: {batch_size: [16, 32]}\n"),
              ElementsAre(HasSubstr("unknown field \"sweep.batch_size\": allowed are step_size, learning_rate")));
}

TEST(JobFile, ReadsNamesOfLayersWithTheirNumbers) {
  const v1::JobSpec spec = Parse("name: a\nprior:\n  gaussian:\n    precision: 25\n    layers: {conv1: 1, fc2: 0.5}\n");
  EXPECT_EQ(spec.prior().gaussian().layers().size(), 2u);
  EXPECT_EQ(spec.prior().gaussian().layers().at("fc2"), 0.5);
  EXPECT_THAT(Errors("prior:\n  gaussian:\n    layers: {fc1: x,\n      fc1: 2}\n"),
              ElementsAre("job.yaml:3: prior.gaussian.layers.fc1: expects a number, got \"x\"",
                          "job.yaml:4: prior.gaussian.layers.fc1: given twice, first in line 3"));
  EXPECT_THAT(Errors("prior: {gaussian: {layers: [1]}}\n"),
              ElementsAre("job.yaml:1: prior.gaussian.layers: expects a mapping of names to values, got a list"));
}

TEST(JobFile, ReadsJsonIndentedWithTabs) {
  const v1::JobSpec spec =
      Parse("{\n\t\"name\": \"a\",\n\t\"model\": {\"builtin\": \"lenet5\"},\n\t\"chains\": 2,\n\t\"seed\": \"7\"\n}\n");
  EXPECT_EQ(spec.name(), "a");
  EXPECT_EQ(spec.model().builtin(), "lenet5");
  EXPECT_EQ(spec.chains(), 2);
  EXPECT_EQ(spec.seed(), 7u);
}

TEST(JobFile, TakesAnEmptyValueForTheEmptyMessageAndNullForAnUnsetNumber) {
  const v1::JobSpec spec = Parse("sampler:\n  sgld:\nchains: null\n");
  EXPECT_TRUE(spec.sampler().has_sgld());
  EXPECT_FALSE(spec.has_chains());
}

TEST(JobFile, NamesUnknownFieldsWithTheirLineAndWhatIsAllowed) {
  EXPECT_THAT(Errors("name: a\nsampler:\n  emcmc: {etta: 1}\nlearning_rat: {constant: 1}\n"),
              ElementsAre("job.yaml:3: unknown field \"sampler.emcmc.etta\": allowed are eta, anchor_decay, "
                          "noise_free_fraction; did you mean \"eta\"?",
                          AllOf(HasSubstr("job.yaml:4: unknown field \"learning_rat\": allowed are kind, name, model"),
                                HasSubstr("did you mean \"learning_rate\"?"))));
  EXPECT_THAT(Errors("sampler: {mala: {eta: 1}}"),
              ElementsAre("job.yaml:1: unknown field \"sampler.mala.eta\": no field is allowed here: write {}"));
}

TEST(JobFile, SaysWhatIsExpectedInsteadOfAWrongType) {
  EXPECT_THAT(Errors("name: [a]\nchains: four\ntemperature: {}\nsampler: emcmc\ncollect: {kinds: theta}\n"
                     "num_steps: 1.5\nseed: -1\nmodel: {hidden: [1, x]}\n"),
              ElementsAre("job.yaml:1: name: expects text, got a list",
                          "job.yaml:2: chains: expects a whole number up to 2147483647, got \"four\"",
                          "job.yaml:3: temperature: expects a number, got a mapping",
                          AllOf(HasSubstr("job.yaml:4: sampler: expects a mapping of sgld, emcmc, sgd"),
                                HasSubstr("got \"emcmc\"")),
                          "job.yaml:5: collect.kinds: expects a list, as in [a, b], got \"theta\"",
                          "job.yaml:6: num_steps: expects a whole number, got \"1.5\"",
                          "job.yaml:7: seed: expects a whole number from 0, got \"-1\"",
                          "job.yaml:8: model.hidden[1]: expects a whole number, got \"x\""));
}

TEST(JobFile, RefusesNumbersBeyondTheirType) {
  EXPECT_THAT(Errors("chains: 3000000000"),
              ElementsAre("job.yaml:1: chains: expects a whole number up to 2147483647, got \"3000000000\""));
  EXPECT_THAT(Errors("num_steps: 1e30"), ElementsAre("job.yaml:1: num_steps: expects a whole number, got \"1e30\""));
}

TEST(JobFile, NamesBothMembersOfAOneofGivenTwice) {
  EXPECT_THAT(Errors("learning_rate: {constant: 1}\nstep_size: {constant: 1}\n"),
              ElementsAre("job.yaml:2: learning_rate and step_size exclude each other: give one"));
  EXPECT_THAT(Errors("sampler:\n  sgld: {}\n  emcmc: {}\n"),
              ElementsAre("job.yaml:3: sampler.sgld and sampler.emcmc exclude each other: give one"));
}

TEST(JobFile, RefusesAFieldGivenTwice) {
  EXPECT_THAT(Errors("chains: 1\nseed: 1\nchains: 2\n"),
              ElementsAre("job.yaml:3: chains: given twice, first in line 1"));
}

TEST(JobFile, GivesTheLineOfMalformedYaml) {
  EXPECT_THAT(Errors("name: a\n\nmodel: {builtin: [lenet5}\nseed: 1\n"),
              ElementsAre(HasSubstr("job.yaml:3: not YAML or JSON: ")));
  EXPECT_THAT(Errors("# {\nname: 'a['\nmodel: {builtin: [lenet5\nsampler: {sgld: {}}\n"),
              ElementsAre("job.yaml:3: not YAML or JSON: '[' is not closed"));
  EXPECT_THAT(Errors("model: {builtin: lenet5\nseed: 1\n"),
              ElementsAre("job.yaml:1: not YAML or JSON: '{' is not closed"));
  EXPECT_THAT(Errors("name: a\n  chains: 1\n"), ElementsAre(HasSubstr("job.yaml:2: not YAML or JSON: ")));
}

TEST(JobFile, RefusesWhatIsNotOneMapping) {
  EXPECT_THAT(Errors(""), ElementsAre("job.yaml: is empty"));
  EXPECT_THAT(Errors("# only a comment\n"), ElementsAre("job.yaml: is empty"));
  EXPECT_THAT(Errors("name: a\n---\nname: b\n"), ElementsAre(HasSubstr("several documents")));
  EXPECT_THAT(Errors("- a\n"), ElementsAre(HasSubstr("job.yaml:1: expects a mapping of kind, name, model")));
  EXPECT_THAT(Errors(std::string(2 << 20, 'a')), ElementsAre(HasSubstr("larger than 1 MiB")));
}

TEST(JobFile, PutsTheServersRefusalOnItsLine) {
  const auto file = ParseJobFile(
      "job.yaml", "name: a\nsampler:\n  emcmc:\n    eta: -1\ncollect:\n  kinds:\n    - theta\n    - theta\n");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status refused = InvalidFields({{"sampler.emcmc.eta", "must be positive"},
                                              {"collect.kinds[1]", "is named twice"},
                                              {"sampler.emcmc.beta.x", "is missing"},
                                              {"dataset.name", "is missing"}});
  const absl::Status located = LocateInJobFile(*file, refused);
  EXPECT_EQ(ReasonOf(located), kJobFileReason);
  EXPECT_THAT(FieldViolationsOf(located),
              ElementsAre(FieldViolation{"job.yaml:4", "sampler.emcmc.eta: must be positive"},
                          FieldViolation{"job.yaml:8", "collect.kinds[1]: is named twice"},
                          FieldViolation{"job.yaml:3", "sampler.emcmc.beta.x: is missing"},
                          FieldViolation{"job.yaml", "dataset.name: is missing"}));
}

TEST(JobFile, LeavesOtherErrorsAsTheyAre) {
  const absl::Status status = absl::NotFoundError("data set nowhere");
  EXPECT_EQ(LocateInJobFile(JobFile(), status), status);
}

TEST(JobFile, EveryExampleParses) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CHAINFLEET_JOBS_FOLDER)) {
    std::ifstream stream(entry.path());
    const auto file = ParseJobFile(entry.path().filename(), std::string(std::istreambuf_iterator<char>(stream), {}));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->spec.name(), entry.path().stem());
    ++examples;
  }
  EXPECT_GE(examples, 4);
}

}  // namespace
}  // namespace chainfleet
