#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/array_csv.h"
#include "client/cli/draw_choice.h"
#include "client/cli/exit_code.h"
#include "client/cli/input_array.h"
#include "client/cli/output_file.h"
#include "client/cli/predict_rows.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/base/limits.h"
#include "core/domain/prediction_rows.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "core/wire/predict_wire.h"

namespace chainfleet {
namespace {

constexpr int64_t kTableRows = 10;

struct PredictOptions {
  std::string job, point, input, output, priority, weights, conformal;
  DrawChoice draws;
  int64_t min_draws = 0, rows = kTableRows;
  double level = 0;
  bool anytime = false, members_too = false, pseudo_bma = false;
  std::vector<double> quantiles;
};

v1::PredictRequest RequestOf(const PredictOptions& options) {
  v1::PredictRequest request;
  request.set_job(options.job);
  v1::DrawSelection* selection = request.mutable_selection();
  *selection = SelectionOf(options.draws);
  selection->set_point(options.point);
  selection->set_weights(options.weights);
  selection->set_pseudo_bma(options.pseudo_bma);
  request.set_conformal(options.conformal);
  request.set_conformal_level(options.level);
  request.set_min_draws(options.min_draws);
  request.set_anytime(options.anytime);
  request.set_member_probabilities(options.members_too);
  request.set_priority(options.priority);
  request.mutable_quantiles()->Add(options.quantiles.begin(), options.quantiles.end());
  return request;
}

absl::StatusOr<Prediction> PredictAll(Client* client, const PredictOptions& options, const Array& inputs) {
  v1::PredictRequest request = RequestOf(options);
  Prediction all;
  LiveText text(stderr);
  CHAINFLEET_RETURN_IF_ERROR(PredictRows(client, inputs, &request, [&](Prediction part) {
    AppendRows(std::move(part), &all);
    text.Show(absl::StrCat(all.num_rows, " of ", inputs.shape[0], " rows"));
    return absl::OkStatus();
  }));
  text.Clear();
  if (std::ssize(all.class_names) != NumClasses(all.targets)) all.class_names.clear();
  return all;
}

template <typename T>
Array ArrayOf(const std::vector<T>& values, std::vector<int64_t> shape) {
  return {std::is_same_v<T, double> ? ArrayType::kFloat64 : ArrayType::kFloat32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

// Adds every array of `sorts` as prefix, name and suffix: [rows...], or [rows..., K].
template <typename Sorts>
void AddArrays(const Sorts& sorts, const std::string& prefix, const std::string& suffix,
               const std::vector<int64_t>& rows, const Targets& targets, std::map<std::string, Array>* arrays) {
  const auto add = [&](const auto& of) {
    for (const auto& array : of.kArrays) {
      if ((of.*array.values).empty()) continue;
      std::vector<int64_t> shape = rows;
      if (array.per_class) shape.push_back(NumClasses(targets));
      (*arrays)[absl::StrCat(prefix, array.name, suffix)] = ArrayOf(of.*array.values, shape);
    }
  };
  std::visit(add, sorts);
}

// Adds, for each chain and kind, member_KIND_CHAIN_weights [S], and _probabilities [S, n, K] or _mean and _variance [S,
// n].
void AddMembers(const Prediction& all, const Members& members, std::map<std::string, Array>* arrays) {
  const std::string prefix = absl::StrCat("member_", ToString(members.kind), "_", members.chain.index, "_");
  const auto draws = static_cast<int64_t>(members.weights.size());
  (*arrays)[prefix + "weights"] = ArrayOf(members.weights, {draws});
  AddArrays(members.outputs, prefix, "", {draws, all.num_rows}, all.targets, arrays);
}

bool WritesCsv(const PredictOptions& options) { return options.output.ends_with(".csv"); }

absl::Status WriteFile(const PredictOptions& options, const Prediction& all) {
  std::map<std::string, Array> arrays;
  AddArrays(all.scores.of, "", "", {all.num_rows}, all.targets, &arrays);
  AddArrays(all.errors.of, "", "_error", {all.num_rows}, all.targets, &arrays);
  for (const Members& members : all.members) AddMembers(all, members, &arrays);
  if (!options.quantiles.empty()) {
    const auto levels = static_cast<int64_t>(options.quantiles.size());
    arrays["quantiles"] = ArrayOf(all.quantiles, {all.num_rows, levels});
    if (!all.quantile_errors.empty()) {
      arrays["quantiles_error"] = ArrayOf(all.quantile_errors, {all.num_rows, levels});
    }
    if (!WritesCsv(options)) arrays["quantile_levels"] = ArrayOf(options.quantiles, {levels});
  }
  if (!all.interval.empty()) arrays["interval"] = ArrayOf(all.interval, {all.num_rows, 2});
  if (!all.prediction_set.empty()) {
    const std::vector<double> set(all.prediction_set.begin(), all.prediction_set.end());
    arrays["prediction_set"] = ArrayOf(set, {all.num_rows, NumClasses(all.targets)});
  }
  if (WritesCsv(options)) {
    std::map<std::string, std::vector<std::string>> columns;
    for (const auto& [name, per_class] : ScoresOfTarget(all.targets)) {
      if (!per_class || all.class_names.empty()) continue;
      columns[name] = columns[absl::StrCat(name, "_error")] = all.class_names;
    }
    if (!all.class_names.empty()) columns["prediction_set"] = all.class_names;
    return WriteOutputFile(options.output, CsvOf(arrays, all.num_rows, columns));
  }
  std::vector<std::pair<std::string, std::string>> names;
  if (!all.class_names.empty()) names.emplace_back("class_names.npy", WriteNpyOfTexts(all.class_names));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(arrays, names));
  return WriteOutputFile(options.output, bytes);
}

Table TableOf(const PredictOptions& options, const Prediction& all, const Numbers&) {
  std::vector<std::string> header = {">ROW", ">MEAN", ">MC ERROR", ">VARIANCE ALEATORIC", ">VARIANCE EPISTEMIC"};
  if (!all.interval.empty()) header.insert(header.end(), {">LOWER", ">UPPER"});
  for (const double level : options.quantiles) {
    header.push_back(absl::StrCat(">Q ", level));
    header.emplace_back(">MC ERROR");
  }
  Table table(header);
  const NumberScores& scores = all.scores.numbers();
  for (size_t row = 0; row < static_cast<size_t>(std::min(options.rows, all.num_rows)); ++row) {
    std::vector<std::string> cells = {absl::StrCat(row), absl::StrCat(scores.mean[row]),
                                      all.errors.any() ? absl::StrCat(all.errors.numbers().mean[row]) : "-",
                                      absl::StrCat(scores.variance_aleatoric[row]),
                                      absl::StrCat(scores.variance_epistemic[row])};
    for (size_t end = 2 * row; !all.interval.empty() && end < 2 * row + 2; ++end) {
      cells.push_back(absl::StrCat(all.interval[end]));
    }
    const size_t levels = options.quantiles.size();
    for (size_t at = row * levels; at < (row + 1) * levels; ++at) {
      cells.push_back(absl::StrCat(all.quantiles[at]));
      cells.push_back(all.quantile_errors.empty() || std::isnan(all.quantile_errors[at])
                          ? "-"
                          : absl::StrCat(all.quantile_errors[at]));
    }
    table.AddRow(cells);
  }
  return table;
}

Table TableOf(const PredictOptions& options, const Prediction& all, const Classes& classes) {
  const std::vector<std::string>& names = all.class_names;
  std::vector<std::string> header = {
      ">ROW", names.empty() ? ">CLASS" : "CLASS", ">PROBABILITY", ">MC ERROR", ">ENTROPY", ">MUTUAL INFORMATION"};
  if (!all.prediction_set.empty()) header.emplace_back("PREDICTION SET");
  Table table(header);
  const int64_t k = classes.count;
  for (int64_t row = 0; row < std::min(options.rows, all.num_rows); ++row) {
    const ClassScores& scores = all.scores.classes();
    const auto begin = scores.mean_probability.begin() + row * k;
    const int64_t best = std::max_element(begin, begin + k) - begin;
    const auto at = static_cast<size_t>(row);
    const double error =
        all.errors.any() ? all.errors.classes().mean_probability[static_cast<size_t>(row * k + best)] : NAN;
    const auto name = [&](int64_t c) { return names.empty() ? absl::StrCat(c) : names.at(static_cast<size_t>(c)); };
    std::vector<std::string> cells = {absl::StrCat(row),
                                      name(best),
                                      Fixed(begin[best], 4),
                                      Fixed(error, 4),
                                      Fixed(scores.predictive_entropy[at], 4),
                                      Fixed(scores.mutual_information[at], 4)};
    std::vector<std::string> set;
    for (int64_t c = 0; !all.prediction_set.empty() && c < k; ++c) {
      if (all.prediction_set[static_cast<size_t>(row * k + c)] != 0) set.push_back(name(c));
    }
    if (!all.prediction_set.empty()) cells.push_back(set.empty() ? "none" : absl::StrJoin(set, ", "));
    table.AddRow(cells);
  }
  return table;
}

std::string PredictionTable(const PredictOptions& options, const Prediction& all) {
  const Table table = std::visit([&](const auto& sort) { return TableOf(options, all, sort); }, all.targets);
  std::string text = table.Render();
  if (all.num_rows > options.rows) {
    absl::StrAppend(&text, "... and ", all.num_rows - options.rows,
                    " more rows: --rows, or --output FILE.npz or FILE.csv for all\n");
  }
  return text;
}

// Checks options before the inputs are sent.
absl::Status CheckOptions(const PredictOptions& options, const OutputFormat& format) {
  const auto usage = [](const auto&... why) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(why...)), kUsageReason);
  };
  if (!options.output.empty() && format != OutputFormat::kTable) {
    return usage("--output writes the predictions to a file, and -o prints them: leave one of the two out");
  }
  if (WritesCsv(options) && options.members_too) {
    return usage("--member-probabilities has more axes than a CSV: write an .npz");
  }
  for (const double level : options.quantiles) {
    if (!(level > 0 && level < 1)) return usage("--quantiles: ", level, " is not a level above 0 and below 1");
  }
  return absl::OkStatus();
}

absl::Status Predict(Invocation* run, const PredictOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckOptions(options, run->format));
  CHAINFLEET_ASSIGN_OR_RETURN(const Array inputs, ReadInputArray(options.input));
  if (run->timeout == absl::InfiniteDuration()) run->timeout = limits::kPredictDeadline;
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const Prediction all, PredictAll(&client, options, inputs));
  std::cerr << all.job << " version " << all.version << (all.point.empty() ? "" : " at " + all.point) << ": average of "
            << all.draws_used << " of " << all.draws_in_version << " draws\n";
  if (options.output.empty()) {
    PrintOne(std::cout, run->format, ToProto(all), all.job, [&] { return PredictionTable(options, all); });
    return absl::OkStatus();
  }
  CHAINFLEET_RETURN_IF_ERROR(WriteFile(options, all));
  std::cerr << all.num_rows << " rows written to " << options.output << "\n";
  return absl::OkStatus();
}

void AddChoiceOfDraws(CLI::App* verb, PredictOptions* options) {
  AddDrawChoice(verb, &options->draws);
  verb->add_option("--weights", options->weights,
                   "Id of an evaluation with --stack: weight the chains by its stacking weights")
      ->option_text("ID");
  verb->add_flag("--pseudo-bma", options->pseudo_bma, "Use the pseudo-BMA weights of --weights in place of stacking")
      ->needs("--weights")
      ->option_text(" ");
  verb->add_flag("--anytime", options->anytime,
                 "Average as many draws as fit into --timeout, the newest of each chain first; the reported errors "
                 "do not cover drift of the chains");
  verb->add_option("--min-draws", options->min_draws,
                   "Accept an average over at least N draws if time or workers run out")
      ->check(CountAtLeast(1))
      ->option_text("N");
}

}  // namespace

void AddPredict(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = AddVerb(
      program, run, "predict",
      "Average predictions over a job's draws: class probabilities or numbers, with their uncertainty",
      "  chainfleet predict @latest --input x.npy\n"
      "  chainfleet predict fashion-emcmc --input t10k-images-idx3-ubyte.gz --output p.npz "
      "--kinds theta --members 2\n"
      "  chainfleet predict wine --input x.npy --quantiles 0.05,0.5,0.95 --anytime --timeout 200ms\n\n"
      "p.npz holds mean_probability and log_probability [rows, classes]; max_probability, predictive_entropy,\n"
      "expected_entropy, mutual_information and variation_ratio [rows], in nats. For a regression: mean,\n"
      "variance_aleatoric and variance_epistemic [rows], quantiles [rows, levels] and quantile_levels. The Monte "
      "Carlo\n"
      "error of each is in NAME_error. Members are member_KIND_CHAIN_weights [draws], _probabilities [draws, rows,\n"
      "classes] or _mean and _variance [draws, rows]; draws oldest first. A CSV has a line for each row, with the\n"
      "same names; NAME_k is the value of class k, or NAME_CLASS if the job's data set names its classes, or of the "
      "k-th\nquantile. class_names [classes] has these names. --conformal adds prediction_set [rows, classes], 1 or 0, "
      "or\n"
      "interval [rows, 2].",
      [=] { return Predict(run, *options); });
  AddJobArgument(verb, &options->job)->description("Job id, name (the newest job of that name), @latest, or an alias");
  AddPointOption(verb, &options->point);
  verb->add_option("--input", options->input,
                   "uint8, float32 or float64 .npy [rows, ...]; numeric CSV [rows, columns], inputs only; IDX images;\n"
                   ".gz of these is fine; or a Zarr array, or x of a Zarr group, as a folder or zipped")
      ->required()
      ->check(CLI::ExistingPath)
      ->option_text("FILE");
  verb->add_option("--output", options->output,
                   "Write the predictions to an .npz or .csv file instead of printing them")
      ->check(EndsInNpzOrCsv())
      ->option_text("FILE");
  AddChoiceOfDraws(verb, options.get());
  verb->add_option("--quantiles", options->quantiles,
                   "Also report these quantiles of predicted numbers, such as 0.05,0.5,0.95")
      ->delimiter(',')
      ->option_text("LEVELS");
  verb->add_option("--conformal", options->conformal,
                   "Id of an evaluation with --calibrate: also report split-conformal sets of classes, or intervals\n"
                   "of numbers, by the draws of that evaluation")
      ->option_text("ID");
  verb->add_option("--level", options->level, "Share of rows that --conformal covers, 0.001 to 0.999; default: 0.9")
      ->needs("--conformal")
      ->option_text("SHARE");
  verb->add_flag("--member-probabilities", options->members_too, "Also report the probabilities of each single draw");
  verb->add_option("--priority", options->priority, "low, normal or high: order of requests that wait; default: normal")
      ->check(CLI::IsMember({"low", "normal", "high"}))
      ->option_text("PRIORITY");
  verb->add_option("--rows", options->rows, "Rows to print")->check(CountAtLeast(1))->option_text("N");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
