#include "tests/client/report_fixture.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/rng_key.h"
#include "google/protobuf/reflection.h"
#include "google/protobuf/util/json_util.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kChains = 4, kExamples = 12, kSide = 28;

void Parse(const std::string& json, Message* message) {
  if (!google::protobuf::util::JsonStringToMessage(json, message).ok()) message->Clear();
}

v1::Job FixtureJob() {
  v1::Job job;
  Parse(R"({
    "id": "fashion-emcmc-zlxfm5", "state": "SUCCEEDED", "intent": "RUN", "num_draws": "8", "newest_version": "1",
    "steps_done": "22512", "steps_total": "22512", "num_chains": 4,
    "created_at": "2026-03-14T09:26:53Z", "finished_at": "2026-03-14T09:27:20Z",
    "dataset_digest": "9f2c1d3a5b7e9f2c1d3a5b7e9f2c1d3a5b7e9f2c1d3a5b7e9f2c1d3a5b7e9f2c",
    "spec": {"name": "fashion-emcmc", "model": {"builtin": "lenet5"}, "dataset": {"name": "fashion-mnist"},
             "prior": {"gaussian": {"precision": 25}}, "sampler": {"emcmc": {"eta": 0.0004}}, "temperature": 0.0001,
             "learning_rate": {"cyclical": {"initial": 0.2, "cycles": "4"}}, "num_epochs": "12", "chains": 4,
             "collect": {"last_epochs_of_cycle": "1", "kinds": ["theta", "theta_a"]}, "seed": "7"},
    "report": {"num_examples": "60000", "prior_precision": 25, "temperature": 0.0001, "learning_rate": 0.2,
               "step_size": 3.3e-06, "num_parameters": "44426", "draws_per_chain": "2"},
    "diagnostics": [
      {"quantity": "energy", "chains": 4, "values": "400", "rhat": 1.004, "ess_bulk": 812, "ess_tail": 640, "mean": 5000.4,
       "mcse_mean": 0.41},
      {"quantity": "theta.norm", "chains": 4, "values": "400", "rhat": 1.234, "ess_bulk": 31, "ess_tail": 44,
       "mean": 42.17, "mcse_mean": 0.03}]})",
        &job);
  for (int i = 0; i < kChains; ++i) {
    v1::Chain* chain = job.add_chains();
    chain->mutable_id()->set_job(job.id());
    chain->mutable_id()->set_index(i);
    chain->set_state(v1::SUCCEEDED);
    chain->set_step(5628);
    chain->set_total_steps(5628);
    chain->set_num_draws(2);
    chain->set_lease_epoch(i == 2 ? 2 : 1);
    chain->mutable_stats()->set_energy(5000 + i);
    chain->mutable_stats()->set_step_size(3.3e-6);
  }
  for (const int chain : {0, 2, 3}) {
    job.mutable_chains(chain)->add_warnings(
        absl::StrFormat("step size 3.3e-06 is above the stability bound 1.%de-06 of the curvature", chain));
  }
  return job;
}

void AddScores(const std::string& what, int64_t draws, double accuracy, double nll, double ece,
               v1::Evaluation* evaluation) {
  v1::Scores* scores = evaluation->add_scores();
  scores->set_what(what);
  scores->set_num_draws(draws);
  scores->set_accuracy(accuracy);
  scores->set_nll(nll);
  scores->set_ece(ece);
  scores->set_brier(0.5 * nll);
}

void FillBest(v1::Scores* best) {
  best->set_ood_auroc(0.8928);
  best->set_entropy_divergence(3.21);
  for (int bin = 0; bin < 15; ++bin) {
    v1::ReliabilityBin* found = best->add_reliability();
    found->set_lower(bin / 15.0);
    found->set_upper((bin + 1) / 15.0);
    if (bin < 3) continue;
    found->set_count(static_cast<int64_t>(120 * std::exp(0.28 * (bin - 3))) + (bin == 14 ? 5600 : 0));
    found->set_mean_confidence((bin + 0.5) / 15);
    found->set_accuracy(std::clamp((bin + 0.5) / 15 + 0.05 * std::sin(1.7 * bin), 0.0, 1.0));
  }
  for (int bin = 0; bin < 30; ++bin) {
    best->add_entropy_histogram(static_cast<int64_t>(5200 * std::exp(-bin / 2.5)) + (bin < 22 ? 40 : 0));
    best->add_ood_entropy_histogram(static_cast<int64_t>(240 * std::exp(-std::pow((bin - 17) / 6.5, 2))));
  }
}

void FillCorrupted(v1::Evaluation* evaluation) {
  const std::vector<std::string> names = {"gaussian_noise", "shot_noise",  "impulse_noise",
                                          "defocus_blur",   "motion_blur", "brightness",
                                          "contrast",       "pixelate",    "rotate"};
  for (size_t i = 0; i < names.size(); ++i) {
    for (int severity = 1; severity <= 5; ++severity) {
      v1::CorruptedScores* corrupted = evaluation->add_corrupted();
      corrupted->set_corruption(names[i]);
      corrupted->set_severity(severity);
      const double harm = severity * (0.02 + 0.017 * static_cast<double>((i * 5) % 7));
      corrupted->mutable_scores()->set_accuracy(0.8977 - 0.75 * harm);
      corrupted->mutable_scores()->set_nll(0.2763 + 2.4 * harm);
      corrupted->mutable_scores()->set_ece(0.0113 + 0.3 * harm * harm);
    }
  }
}

void FillFlatness(v1::Evaluation* evaluation) {
  for (int chain = 0; chain < kChains; ++chain) {
    v1::Flatness* flatness = evaluation->add_flatness();
    flatness->mutable_chain()->set_index(chain);
    flatness->set_fisher_trace(31.7 + chain);
    for (double rank = 1; rank < 44426; rank *= 1.09) {
      flatness->add_fisher_ranks(static_cast<int64_t>(rank));
      flatness->add_fisher_values((2 + 0.3 * chain) * std::pow(rank, -0.9) * std::exp(-rank / 9000));
    }
    for (int i = 0; i <= 20; ++i) {
      const double at = -1 + 0.1 * i;
      flatness->add_line_positions(at);
      flatness->add_random_line(0.28 + (0.9 + 0.1 * chain) * at * at);
      flatness->add_anchor_line(0.28 + 0.02 * (at - 0.4) * (at - 0.4) + 0.004 * chain);
    }
  }
}

void FillHeldOut(v1::Evaluation* evaluation) {
  evaluation->set_calibration_dataset("fashion-mnist-held-out");
  evaluation->set_num_calibration_rows(5000);
  for (const double level : {0.5, 0.8, 0.9, 0.95, 0.99}) {
    v1::ConformalScore* score = evaluation->add_conformal();
    score->set_level(level);
    score->set_threshold(std::pow(level, 12));
    score->set_coverage(level + 0.004);
    score->set_mean_size(1 / (1.1 - level));
  }
  evaluation->set_stacking_dataset("fashion-mnist-held-out");
  evaluation->set_num_stacking_rows(5000);
  for (int chain = 0; chain < kChains; ++chain) {
    v1::ChainWeight* weight = evaluation->add_weights();
    weight->mutable_chain()->set_index(chain);
    weight->set_stacking(0.1 * (kChains - chain));
    weight->set_pseudo_bma(chain == 0 ? 1 : 0);
  }
}

v1::Evaluation FixtureEvaluation() {
  v1::Evaluation evaluation;
  evaluation.set_job_id("fashion-emcmc-zlxfm5");
  evaluation.set_version(1);
  evaluation.set_dataset("fashion-mnist-test");
  evaluation.set_ood_dataset("mnist-digits");
  evaluation.set_num_rows(10000);
  evaluation.set_num_ood_rows(2000);
  evaluation.set_draws_used(8);
  evaluation.set_draws_in_version(8);
  AddScores("single theta", 8, 0.8926, 0.2934, NAN, &evaluation);
  AddScores("single theta_a", 8, 0.8903, 0.2986, NAN, &evaluation);
  AddScores("theta", 8, 0.8997, 0.2731, 0.0105, &evaluation);
  AddScores("theta_a", 8, 0.8970, 0.2799, 0.0118, &evaluation);
  AddScores("all", 16, 0.8977, 0.2763, 0.0113, &evaluation);
  FillBest(evaluation.mutable_scores(4));
  for (const int64_t steps : {1, 2, 3, 4, 5, 6, 7, 8}) {
    v1::CurvePoint* point = evaluation.add_curve();
    point->set_num_draws(steps);
    point->set_nll(0.274 + 0.019 / static_cast<double>(steps));
    point->set_accuracy(0.8985 - 0.006 / static_cast<double>(steps));
    point->set_ece(0.010 + 0.011 / static_cast<double>(steps));
  }
  FillCorrupted(&evaluation);
  FillFlatness(&evaluation);
  FillHeldOut(&evaluation);
  for (int i = 0; i < 2 * kExamples; ++i) {
    const bool certain = i < kExamples;
    v1::ExampleRow* example = evaluation.add_examples();
    example->set_row(37 * i + 5);
    example->set_label(i % 10);
    example->set_predicted(certain || i % 3 == 0 ? i % 10 : (i + 3) % 10);
    example->set_max_probability(certain ? 0.9999 : 0.22 + 0.01 * i);
    example->set_predictive_entropy(certain ? 0.001 * i : 1.8 + 0.01 * i);
    example->set_mutual_information(certain ? 0.0001 * i : 0.2 + 0.01 * i);
  }
  return evaluation;
}

// A noisy path about `centre`, in two windows of steps with none traced between them.
v1::Traces FixtureTraces(const std::string& quantity, double centre, double spread, double apart) {
  v1::Traces traces;
  traces.set_quantity(quantity);
  for (int chain = 0; chain < kChains; ++chain) {
    v1::Traces::Chain* trace = traces.add_chains();
    trace->set_chain(chain);
    double state = 0;
    for (int i = 0; i < 400; ++i) {
      state = 0.6 * state +
              0.8 * NormalDouble(RngKey{11}, RngStream::kInit, static_cast<uint64_t>(i), static_cast<uint32_t>(chain));
      trace->add_steps((i < 200 ? 1407 : 2407) + 8 * i);
      trace->add_values(centre + spread * (state + apart * chain));
    }
  }
  return traces;
}

// Rings of growing radius, a different one for each example.
v1::DatasetRowValues FixtureRows() {
  v1::DatasetRowValues rows;
  rows.set_type(v1::UINT8);
  for (const int64_t side : {2 * kExamples, 1, kSide, kSide}) rows.add_shape(side);
  std::string* bytes = rows.mutable_inputs();
  for (int i = 0; i < 2 * kExamples; ++i) {
    for (int pixel = 0; pixel < kSide * kSide; ++pixel) {
      const double x = pixel % kSide - kSide / 2.0, y = pixel / kSide - kSide / 2.0;
      bytes->push_back(static_cast<char>(std::lround(127.5 + 127.5 * std::cos(std::hypot(x, y) * (0.2 + 0.05 * i)))));
    }
    rows.add_labels(i % 10);
  }
  return rows;
}

void FillNumberScores(v1::Evaluation* evaluation) {
  for (const char* what : {"single theta", "all"}) {
    v1::Scores* scores = evaluation->add_scores();
    scores->set_what(what);
    scores->set_num_draws(16);
    scores->set_rmse(what == std::string("all") ? 0.31 : 0.36);
    scores->set_nll(0.4);
    scores->set_coverage_90(0.88);
  }
}

// Normal errors of the deviation that is predicted, so that intervals hold what they promise.
PredictedRows FixturePredictedRows() {
  constexpr double kQuantiles[] = {-0.253, 0.253, -0.524, 0.524, -0.842, 0.842,
                                   -1.282, 1.282, -1.645, 1.645, -1.96,  1.96};  // N(0, 1) at PredictedLevels()
  PredictedRows found;
  for (int i = 0; i < 300; ++i) {
    const double mean = 100 + 0.5 * i, deviation = 5 + 0.05 * i;
    found.rows.push_back(2 * i);
    found.actual.add_targets(static_cast<float>(
        mean + deviation * NormalDouble(RngKey{12}, RngStream::kInit, static_cast<uint64_t>(i), uint32_t{0})));
    found.predicted.mutable_scores()->add_mean(mean);
    for (const double quantile : kQuantiles) found.predicted.add_quantiles(mean + deviation * quantile);
  }
  return found;
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

void ReplaceIn(const std::string* text, const double* number, ReportContents* contents) {
  Replace(text, number, &contents->job);
  Replace(text, number, &*contents->evaluation);
  for (v1::Traces& traces : contents->traces) Replace(text, number, &traces);
  if (contents->predicted_rows) Replace(text, number, &contents->predicted_rows->predicted);
}

}  // namespace

ReportContents WholeReport() {
  ReportContents contents;
  contents.job = FixtureJob();
  contents.evaluation = FixtureEvaluation();
  contents.traces = {FixtureTraces("energy", 5000, 8, 0.05), FixtureTraces("theta.norm", 42, 0.02, 1.5)};
  contents.example_rows = FixtureRows();
  contents.num_classes = 10;
  contents.class_names = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat",
                          "Sandal",  "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  contents.server_version = "0.1.0";
  contents.made_at = absl::FromUnixSeconds(1'773'480'500);
  return contents;
}

ReportContents NumbersReport() {
  ReportContents contents = WholeReport();
  for (v1::Job::Diagnostic& found : *contents.job.mutable_diagnostics()) found.set_nested_rhat(found.rhat() - 0.003);
  v1::Evaluation& evaluation = *contents.evaluation;
  evaluation.clear_scores();
  evaluation.clear_ood_dataset();
  evaluation.clear_corrupted();
  evaluation.clear_curve();
  evaluation.clear_examples();
  FillNumberScores(&evaluation);
  contents.example_rows.Clear();
  contents.class_names.clear();
  contents.num_classes = 0;
  contents.predicted_rows = FixturePredictedRows();
  return contents;
}

ReportContents HostileReport(const std::string& text) {
  ReportContents contents = WholeReport();
  ReplaceIn(&text, nullptr, &contents);
  contents.evaluation->mutable_scores(4)->set_what("all");
  contents.class_names.assign(10, text);
  contents.server_version = text;
  return contents;
}

ReportContents ReportOf(double number) {
  ReportContents contents = WholeReport();
  contents.predicted_rows = FixturePredictedRows();
  ReplaceIn(nullptr, &number, &contents);
  return contents;
}

ReportContents RandomReport(uint64_t seed) {
  RandomMessage random(seed);
  ReportContents contents;
  contents.job = random.Make<v1::Job>();
  contents.point = random.Below(3);
  contents.evaluation = random.Make<v1::Evaluation>();
  contents.traces = {random.Make<v1::Traces>(), random.Make<v1::Traces>()};
  contents.example_rows = random.Make<v1::DatasetRowValues>();
  contents.predicted_rows = {{1, 2}, random.Make<v1::DatasetRowValues>(), random.Make<v1::PredictResponse>()};
  contents.num_classes = random.Below(12);
  return contents;
}

}  // namespace chainfleet
