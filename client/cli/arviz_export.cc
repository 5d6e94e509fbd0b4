#include "client/cli/arviz_export.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/draw_arrays.h"
#include "client/cli/output_file.h"
#include "client/cli/point_asked.h"
#include "client/cli/predict_rows.h"
#include "client/cli/terminal.h"
#include "client/cli/zarr_folder.h"
#include "client/lib/draw_reader.h"
#include "core/base/content_limits.h"
#include "core/base/spool_file.h"
#include "core/domain/no_such.h"
#include "core/domain/prediction.h"
#include "core/domain/step_size_schedule.h"
#include "core/domain/sweep_points.h"
#include "core/formats/streamed_array.h"
#include "core/formats/zarr.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {
namespace {

constexpr int64_t kChunkBytes = 16 << 20;
constexpr int64_t kRowBytes = limits::kMaxMessageBytes / 2;  // for one call for rows

using Segments = std::vector<v1::SegmentRecord>;
using Weights = std::map<int32_t, std::vector<double>>;  // draws' weights, by chain
using Arrays = std::vector<StreamedArray>;

// The posterior of the export.
struct Source {
  std::map<int32_t, const v1::Chain*> chains;
  v1::Job::Report report;
  std::string point;
};

absl::StatusOr<Source> SourceOf(const v1::Job& job, const ArvizOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int32_t point, PointAsked(job, options.point));
  Source source{{}, job.report(), ""};
  if (job.points_size() > 0) source = {{}, job.points(point).report(), job.points(point).name()};
  for (const v1::Chain& chain : job.chains()) {
    const bool failed = chain.state() == v1::FAILED || chain.state() == v1::DIVERGED;
    const bool asked = options.chains.empty() || std::ranges::count(options.chains, chain.id().index()) > 0;
    if (chain.point() == point && asked && (!failed || options.include_failed)) {
      source.chains.emplace(chain.id().index(), &chain);
    }
  }
  return source;
}

absl::Status Changed() { return absl::AbortedError("draws were deleted during the export: repeat it"); }

// The segments of these chains. Those that nobody can read count as deleted, so that they still link their neighbours.
absl::StatusOr<Segments> SegmentsOf(Client* client, const std::string& job, const Source& source) {
  v1::ListSegmentsRequest request;
  request.set_job(job);
  if (!source.point.empty()) request.set_point(source.point);
  CHAINFLEET_ASSIGN_OR_RETURN(Segments segments, client->ListSegments(request));
  std::erase_if(segments, [&](const auto& record) { return !source.chains.contains(record.chain().index()); });
  for (v1::SegmentRecord& record : segments) record.set_deleted(record.deleted() || record.corrupt());
  return segments;
}

absl::StatusOr<Weights> WeightsOf(const std::string& job, const Segments& segments) {
  Weights weights;
  for (const v1::SegmentRecord& record : segments) {
    if (record.deleted()) continue;
    const auto& more = record.segment().weights();
    weights[record.chain().index()].insert(weights[record.chain().index()].end(), more.begin(), more.end());
    if (std::ranges::all_of(more, [](double weight) { return weight == 1; })) continue;
    return absl::InvalidArgumentError(
        "the draws are weighted, and ArviZ counts each draw once: --format zarr repeats each draw by its weight, and "
        "Job.to_arviz() of the Python package resamples the draws");
  }
  if (!weights.empty()) return weights;
  return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", job, " has no draws to read")), "NO_DRAWS");
}

// Keeps the draws that the server predicted with, which are the first of each chain.
absl::Status Cut(const Weights& used, Segments* segments, Weights* weights) {
  for (const auto& [chain, counted] : used) {
    std::vector<double>& committed = (*weights)[chain];
    if (committed.size() < counted.size()) return Changed();
    committed.resize(counted.size());
  }
  std::erase_if(*weights, [&](const auto& entry) { return !used.contains(entry.first); });
  std::map<int32_t, size_t> kept;
  std::erase_if(*segments, [&](const v1::SegmentRecord& record) {
    const auto of_chain = weights->find(record.chain().index());
    if (of_chain == weights->end() || kept[of_chain->first] >= of_chain->second.size()) return true;
    kept[of_chain->first] += record.deleted() ? 0 : static_cast<size_t>(record.segment().steps_size());
    return false;
  });
  const bool whole = std::ranges::all_of(*weights, [&](const auto& of) { return kept[of.first] == of.second.size(); });
  return whole ? absl::OkStatus() : Changed();
}

// Returns how many draws of each chain are written, and warns of those that are not.
int64_t NumDraws(const Source& source, const Weights& weights) {
  std::vector<int32_t> empty;
  for (const auto& [chain, about] : source.chains) {
    if (!weights.contains(chain)) empty.push_back(chain);
  }
  if (!empty.empty()) {
    std::cerr << "warning: chains " << absl::StrJoin(empty, ", ") << " have no draws and are left out\n";
  }
  const auto [least, most] =
      std::ranges::minmax_element(weights, {}, [](const auto& of) { return static_cast<int64_t>(of.second.size()); });
  const auto shortest = static_cast<int64_t>(least->second.size());
  if (least->second.size() != most->second.size()) {
    std::cerr << "warning: chain " << least->first << " has " << shortest << " draws, chain " << most->first << " has "
              << most->second.size() << "; the newest " << shortest << " of each chain are written\n";
  }
  return shortest;
}

template <typename T>
StreamedArray Numbers1D(std::string name, ArrayType type, const std::vector<T>& values, std::vector<int64_t> shape = {},
                        std::vector<std::string> dimensions = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  if (dimensions.empty()) dimensions = {name.substr(name.rfind('/') + 1)};
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return Streamed(std::move(name), {type, std::move(shape), std::move(bytes)}, std::move(dimensions));
}

// Adds the arrays of a group with the coordinates of their axes: the indices of the chains, and positions from 0.
void AddGroup(const std::string& group, Arrays arrays, const Weights& chains, Arrays* all) {
  std::map<std::string, int64_t> axes;
  for (StreamedArray& array : arrays) {
    for (size_t a = 0; a < array.shape.size(); ++a) axes[array.dimensions[a]] = array.shape[a];
    array.name = absl::StrCat(group, "/", array.name);
    all->push_back(std::move(array));
  }
  for (const auto& [axis, size] : axes) {
    std::vector<int64_t> values(static_cast<size_t>(size));
    std::iota(values.begin(), values.end(), int64_t{0});
    if (axis == "chain") std::ranges::transform(chains, values.begin(), [](const auto& of) { return of.first; });
    all->push_back(Numbers1D(absl::StrCat(group, "/", axis), ArrayType::kInt64, values));
  }
}

// log p(target given a row's inputs, draw s) in nats, in the targets' own units.
double LogDensity(const NumberMembers& members, int64_t /*num_classes*/, size_t at, double target) {
  const double mean = members.mean[at], variance = members.variance[at], away = target - mean;
  return -0.5 * (std::log(2 * std::numbers::pi * variance) + away * away / variance);
}
double LogDensity(const ClassMembers& members, int64_t num_classes, size_t at, double target) {
  constexpr double kSmallest = std::numeric_limits<float>::denorm_min();  // members are float32
  const size_t of_class = at * static_cast<size_t>(num_classes) + static_cast<size_t>(target);
  return std::log(std::max<double>(members.probabilities[of_class], kSmallest));
}

// log_likelihood and observed_data. The first is spooled [chain, draw, row]: predictions come by rows.
class Likelihood {
 public:
  Likelihood(SpoolFile spool, int64_t num_rows) : spool_(std::move(spool)), num_rows_(num_rows) {}

  // Adds consecutive rows. `labels` or `targets` belong to the rows of `part` from `first` on.
  absl::Status Add(const Prediction& part, const v1::DatasetRowValues& rows, int64_t first) {
    std::vector<double> targets;
    for (int64_t i = first; i < first + part.num_rows; ++i) {
      const auto at = static_cast<int>(i);
      targets.push_back(rows.targets_size() > 0 ? rows.targets(at) : rows.labels(at));
    }
    const int64_t num_classes = NumClasses(part.targets);
    if (const double most = *std::ranges::max_element(targets); num_classes > 0 && most >= num_classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the data set has class ", most, ", the job learned ", num_classes, " classes"));
    }
    for (const Members& members : part.members) {
      const auto [of, added] = weights_.try_emplace(members.chain.index, members.weights);
      if (added) begins_[of->first] = std::exchange(num_draws_, num_draws_ + std::ssize(members.weights));
      if (of->second != members.weights) return Changed();
      CHAINFLEET_RETURN_IF_ERROR(std::visit(
          [&](const auto& outputs) { return AddDraws(outputs, of->first, num_classes, targets); }, members.outputs));
    }
    num_added_ += part.num_rows;
    return absl::OkStatus();
  }

  // Covers the draws that the server predicted with.
  const Weights& weights() const { return weights_; }

  // y [chain, draw, row] with the newest draws of each chain.
  StreamedArray Newest(int64_t num_draws) const {
    Arrays chains;
    for (const auto& [chain, of_chain] : weights_) {
      const int64_t skipped = begins_.at(chain) + std::ssize(of_chain) - num_draws;
      const int64_t begin = skipped * num_rows_ * kItem;
      chains.push_back(
          {"y", ArrayType::kFloat64, {num_draws, num_rows_}, {}, [spool = spool_, begin](auto at, char* to, auto n) {
             return spool.Read(begin + at, to, n);
           }});
    }
    return StackChains(std::move(chains), num_draws, {"chain", "draw", "row"});
  }

 private:
  static constexpr int64_t kItem = sizeof(double);

  template <typename Outputs>
  absl::Status AddDraws(const Outputs& outputs, int32_t chain, int64_t num_classes,
                        const std::vector<double>& targets) {
    std::vector<double> row(targets.size());
    for (size_t draw = 0; draw < weights_.at(chain).size(); ++draw) {
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = LogDensity(outputs, num_classes, draw * row.size() + i, targets[i]);
      }
      const int64_t at = (begins_.at(chain) + static_cast<int64_t>(draw)) * num_rows_ + num_added_;
      CHAINFLEET_RETURN_IF_ERROR(spool_.Write(at * kItem, row.data(), std::ssize(row) * kItem));
    }
    return absl::OkStatus();
  }

  SpoolFile spool_;
  int64_t num_rows_;
  int64_t num_added_ = 0, num_draws_ = 0;
  Weights weights_;
  std::map<int32_t, int64_t> begins_;  // draws of the chains before
};

absl::StatusOr<v1::Dataset> DatasetNamed(Client* client, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::Dataset> datasets, client->ListDatasets());
  const auto found = std::ranges::find(datasets, name, &v1::Dataset::name);
  if (found != datasets.end() && found->num_rows() > 0) return *found;
  return NoSuch("dataset", name);
}

// Predicts all rows of the data set by each draw of the version. Also returns their targets.
absl::StatusOr<Likelihood> LikelihoodOf(Client* client, v1::PredictRequest request, const std::string& dataset,
                                        const std::string& output, StreamedArray* observed) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Dataset stored, DatasetNamed(client, dataset));
  CHAINFLEET_ASSIGN_OR_RETURN(SpoolFile spool, SpoolFile::Make(FolderOfOutput(output)));
  Likelihood likelihood(std::move(spool), stored.num_rows());
  std::vector<int32_t> labels;
  std::vector<float> numbers;
  const bool bytes = stored.input_type() == v1::UINT8;
  const int64_t row_bytes = std::accumulate(stored.input_shape().begin(), stored.input_shape().end(),
                                            bytes ? int64_t{1} : int64_t{4}, std::multiplies<>());
  const int64_t at_once = std::max<int64_t>(1, kRowBytes / (row_bytes + limits::kCountedRowBytes));
  LiveText text(stderr);
  for (int64_t begin = 0; begin < stored.num_rows(); begin += at_once) {
    std::vector<int64_t> asked(static_cast<size_t>(std::min(at_once, stored.num_rows() - begin)));
    std::iota(asked.begin(), asked.end(), begin);
    CHAINFLEET_ASSIGN_OR_RETURN(v1::DatasetRowValues rows, client->ReadRows(dataset, asked));
    const Array inputs{bytes ? ArrayType::kUint8 : ArrayType::kFloat32,
                       {rows.shape().begin(), rows.shape().end()},
                       std::move(*rows.mutable_inputs())};
    int64_t done = 0;
    CHAINFLEET_RETURN_IF_ERROR(PredictRows(client, inputs, &request, [&](const Prediction& part) {
      const absl::Status added = likelihood.Add(part, rows, done);
      done += part.num_rows;
      text.Show(absl::StrCat("predicted ", begin + done, " of ", stored.num_rows(), " rows"));
      return added;
    }));
    labels.insert(labels.end(), rows.labels().begin(), rows.labels().end());
    numbers.insert(numbers.end(), rows.targets().begin(), rows.targets().end());
  }
  text.Clear();
  *observed = numbers.empty() ? Numbers1D("y", ArrayType::kInt32, labels, {}, {"row"})
                              : Numbers1D("y", ArrayType::kFloat32, numbers, {}, {"row"});
  return likelihood;
}

// Returns alpha of the step before each draw. Returns nothing where draws are no steps of a chain (SWAG) and where the
// sampler tunes its own step (mile and smile): their schedule is the rate of the descent before the draws.
std::vector<double> StepSizes(const v1::Job& job, const Source& source, const std::vector<int64_t>& steps) {
  absl::StatusOr<JobSpec> spec = FromProto(job.spec());
  if (!spec.ok()) return {};  // from a newer server
  *spec = SpecAt(*spec, source.chains.begin()->second->point());
  const StepPlan plan = PlanSteps(*spec, source.report.num_examples());
  if (plan.training_steps < plan.total_steps || spec->sampler.is_microcanonical()) return {};
  const StepSizeSchedule schedule(*spec, plan, source.report.num_examples());
  std::vector<double> sizes;
  for (const int64_t step : steps) sizes.push_back(schedule.StepSize(step - 1));
  return sizes;
}

// Traced energies of theta at these steps, NaN where there is none; empty if none of the steps was traced.
absl::StatusOr<std::vector<double>> Energies(Client* client, const std::string& job, const Weights& chains,
                                             const std::vector<int64_t>& steps) {
  const absl::StatusOr<v1::Traces> traces = client->GetTraces(job, "energy");
  if (absl::IsNotFound(traces.status())) return std::vector<double>();
  CHAINFLEET_RETURN_IF_ERROR(traces.status());
  std::map<std::pair<int32_t, int64_t>, double> known;
  for (const v1::Traces::Chain& chain : traces->chains()) {
    const int count = std::min(chain.steps_size(), chain.values_size());
    for (int i = 0; i < count; ++i) known.emplace(std::pair(chain.chain(), chain.steps(i)), chain.values(i));
  }
  std::vector<double> found;
  const size_t num_draws = steps.size() / chains.size();
  for (const auto& [chain, weights] : chains) {
    for (size_t draw = 0; draw < num_draws; ++draw) {
      const auto value = known.find({chain, steps[found.size()]});
      found.push_back(value == known.end() ? std::nan("") : value->second);
    }
  }
  if (std::ranges::all_of(found, [](double value) { return std::isnan(value); })) found.clear();
  return found;
}

absl::StatusOr<Arrays> SampleStats(Client* client, const v1::Job& job, const Source& source, const Weights& weights,
                                   bool of_theta, const std::vector<int64_t>& steps) {
  const int64_t chains = std::ssize(weights), draws = std::ssize(steps) / chains;
  Arrays stats;
  const auto add = [&]<typename T>(const char* name, ArrayType type, const std::vector<T>& values) {
    if (!values.empty()) stats.push_back(Numbers1D(name, type, values, {chains, draws}, {"chain", "draw"}));
  };
  add("step", ArrayType::kInt64, steps);
  std::vector<uint8_t> diverging;
  std::vector<double> acceptance;
  for (const auto& [index, counted] : weights) {
    const v1::Chain& chain = *source.chains.at(index);
    diverging.insert(diverging.end(), static_cast<size_t>(draws), chain.state() == v1::DIVERGED);
    if (chain.stats().has_metropolis()) {
      acceptance.insert(acceptance.end(), static_cast<size_t>(draws), chain.stats().metropolis().acceptance());
    }
  }
  add("diverging", ArrayType::kUint8, diverging);
  stats.back().is_bool = true;
  if (of_theta) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<double> energies, Energies(client, job.id(), weights, steps));
    add("energy", ArrayType::kFloat64, energies);
    for (double& energy : energies) energy = -energy;
    add("lp", ArrayType::kFloat64, energies);
  }
  if (acceptance.size() == steps.size()) add("acceptance_rate", ArrayType::kFloat64, acceptance);
  add("step_size", ArrayType::kFloat64, StepSizes(job, source, steps));
  return stats;
}

absl::StatusOr<DrawArrays> ReadAll(Client* client, const Segments& segments, const std::string& output) {
  CHAINFLEET_ASSIGN_OR_RETURN(DrawArrays draws,
                              DrawArrays::Make(FolderOfOutput(output), RowsOf(segments, false), false));
  LiveText text(stderr);
  int64_t num_read = 0;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(client, segments, [&](const CheckedSegment& segment) {
    num_read += std::ssize(segment.content.draws);
    text.Show(absl::StrCat("read ", num_read, " draws"));
    return draws.Add(segment);
  }));
  text.Clear();
  return draws;
}

// Standardisation and class names as far as the job has them, as Job.to_arviz() of the Python package gives them.
nlohmann::json AttributesOf(const v1::Job& job, const ArvizOptions& options, const Source& source) {
  nlohmann::json told = {{"job", job.id()}, {"kind", ToString(options.kind)}, {"point", source.point}};
  const v1::Job::Inputs& inputs = job.inputs();
  const auto list = [](const auto& values) { return std::vector(values.begin(), values.end()); };
  if (!inputs.normalisation().mean().empty()) {
    told["input_mean"] = list(inputs.normalisation().mean());
    told["input_stddev"] = list(inputs.normalisation().stddev());
  }
  if (inputs.has_target_units()) {
    told["target_mean"] = inputs.target_units().mean();
    told["target_stddev"] = inputs.target_units().stddev();
  }
  if (!inputs.class_names().empty()) told["class_names"] = list(inputs.class_names());
  return told;
}

v1::PredictRequest RequestOf(const std::string& job, const ArvizOptions& options, const Source& source,
                             int64_t version) {
  v1::PredictRequest request;
  request.set_job(job);
  request.set_member_probabilities(true);
  v1::DrawSelection* selection = request.mutable_selection();
  selection->add_kinds(options.kind == DrawKind::kTheta ? v1::THETA : v1::THETA_A);
  selection->set_point(source.point);
  selection->set_include_failed(options.include_failed);
  selection->set_version(version);
  for (const auto& [chain, about] : source.chains) selection->add_chains(chain);
  return request;
}

}  // namespace

absl::StatusOr<std::string> ExportArviz(Client* client, const v1::Job& job, const ArvizOptions& options,
                                        const std::string& output) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Source source, SourceOf(job, options));
  const bool predicts = options.log_likelihood && job.inputs().shape_size() > 0;
  v1::Snapshot version;  // fixes which draws both groups have, also while chains run
  if (predicts) {
    CHAINFLEET_ASSIGN_OR_RETURN(version, client->CreateSnapshot(job.id()));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(Segments segments, SegmentsOf(client, job.id(), source));
  CHAINFLEET_ASSIGN_OR_RETURN(Weights weights, WeightsOf(job.id(), segments));
  std::optional<Likelihood> likelihood;
  StreamedArray observed;
  if (predicts) {
    CHAINFLEET_ASSIGN_OR_RETURN(
        likelihood,
        LikelihoodOf(client, RequestOf(job.id(), options, source, version.version()),
                     options.dataset.empty() ? job.spec().dataset().name() : options.dataset, output, &observed));
    CHAINFLEET_RETURN_IF_ERROR(Cut(likelihood->weights(), &segments, &weights));
  }
  const int64_t num_draws = NumDraws(source, weights);
  CHAINFLEET_ASSIGN_OR_RETURN(const DrawArrays draws, ReadAll(client, segments, output));
  std::vector<int64_t> steps;
  for (const auto& [chain, counted] : weights) {
    steps.insert(steps.end(), draws.steps(chain).end() - num_draws, draws.steps(chain).end());
  }
  Arrays posterior = draws.Newest(options.kind, num_draws), groups;
  if (posterior.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("job ", job.id(), " keeps no draws of ", ToString(options.kind)));
  }
  AddGroup("posterior", std::move(posterior), weights, &groups);
  CHAINFLEET_ASSIGN_OR_RETURN(Arrays stats,
                              SampleStats(client, job, source, weights, options.kind == DrawKind::kTheta, steps));
  AddGroup("sample_stats", std::move(stats), weights, &groups);
  if (likelihood) {
    AddGroup("log_likelihood", {likelihood->Newest(num_draws)}, weights, &groups);
    AddGroup("observed_data", {observed}, weights, &groups);
  }
  const std::string attributes = AttributesOf(job, options, source).dump();
  CHAINFLEET_RETURN_IF_ERROR(WriteZarr(groups, attributes, kChunkBytes, PutInFolder(output)));
  return absl::StrCat(num_draws, " draws of each of ", weights.size(), " chains of ", job.id(), " in ", output);
}

}  // namespace chainfleet
