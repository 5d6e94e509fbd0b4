#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/arviz_export.h"
#include "client/cli/draw_arrays.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/output_file.h"
#include "client/cli/point_asked.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_file.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/table.h"
#include "client/cli/zarr_folder.h"
#include "client/lib/draw_reader.h"
#include "core/formats/npz.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPieceBytes = 1 << 20;
constexpr int64_t kChunkBytes = 16 << 20;
constexpr char kManifest[] = "manifest.json";

TensorType TypeOf(ArrayType type) {
  return type == ArrayType::kInt64     ? TensorType::kInt64
         : type == ArrayType::kFloat64 ? TensorType::kFloat64
                                       : TensorType::kFloat32;
}

struct ExportOptions {
  std::string job, point, format, output;
  std::vector<int32_t> chains;
  bool skip_corrupt = false, weighted = false;
  std::string traces, kind = "theta", dataset;
  bool no_log_likelihood = false, include_failed = false;
};

int64_t NumDraws(const std::vector<v1::SegmentRecord>& segments) {
  int64_t count = 0;
  for (const v1::SegmentRecord& record : segments) count += record.segment().steps_size();
  return count;
}

int64_t NumDeleted(const std::vector<v1::SegmentRecord>& segments) {
  int64_t count = 0;
  for (const v1::SegmentRecord& record : segments) count += record.deleted() ? record.segment().steps_size() : 0;
  return count;
}

// Skips the draws of `record` by marking it as deleted, so that it still links its neighbours.
void LeaveOut(const std::string& why, v1::SegmentRecord* record) {
  std::cerr << "warning: chain " << record->chain().index() << ", " << record->segment().steps_size() << " draws from "
            << record->segment().first_index() << " left out: " << why << '\n';
  record->set_deleted(true);
}

// As ReadDraws, without segments that are deleted, lost or marked corrupt, and with `skip_corrupt` also without
// segments whose bytes do not match their record.
absl::Status ReadReadableDraws(Client* client, std::vector<v1::SegmentRecord> segments, bool skip_corrupt,
                               LiveText* text, const std::function<absl::Status(const CheckedSegment&)>& on_segment) {
  int64_t deleted = NumDeleted(segments);
  for (v1::SegmentRecord& record : segments) {
    if (!record.deleted() && record.corrupt()) LeaveOut("marked corrupt", &record);
  }
  while (true) {
    size_t num_read = 0;
    const absl::Status status = ReadDraws(client, segments, [&](const CheckedSegment& segment) {
      num_read = static_cast<size_t>(&segment.record - segments.data()) + 1;
      return on_segment(segment);
    });
    const std::string reason = ReasonOf(status);
    const bool gone = reason == "DRAWS_DELETED";
    text->Clear();
    if (!gone && reason != "OBJECT_MISSING" && !(skip_corrupt && reason == "DIGEST_MISMATCH")) {
      if (status.ok() && deleted > 0) std::cerr << "warning: " << deleted << " draws were deleted and are left out\n";
      return status;
    }
    // Do not read segments twice: the next round begins after the segment that failed.
    for (size_t i = 0; i < num_read; ++i) segments[i].set_deleted(true);
    while (segments[num_read].deleted()) ++num_read;
    if (gone) {
      deleted += segments[num_read].segment().steps_size();
      segments[num_read].set_deleted(true);
    } else {
      LeaveOut(std::string(status.message()), &segments[num_read]);
    }
  }
}

// The facts that a reader of the draws needs; docs/guides/export.md lists them.
Json ManifestOf(const v1::Job& job, const ExportOptions& options, const DrawArrays& draws) {
  Json manifest = {{"format", "chainfleet-draws/2"}, {"job", job.id()}, {"weighted", options.weighted}};
  if (!options.point.empty()) manifest["point"] = options.point;
  for (const auto& [chain, count] : draws.rows()) manifest["chains"].push_back({{"chain", chain}, {"draws", count}});
  for (const auto& [name, shape] : draws.parameters()) {
    manifest["parameters"].push_back({{"name", name}, {"shape", shape}});
  }
  if (job.has_inputs()) {
    const v1::Job::Inputs& inputs = job.inputs();
    manifest["inputs"] = {
        {"shape", std::vector<int64_t>(inputs.shape().begin(), inputs.shape().end())},
        {"scale", inputs.type() == v1::UINT8 ? 1.0 / 255 : 1.0},
        {"mean", std::vector<double>(inputs.normalisation().mean().begin(), inputs.normalisation().mean().end())},
        {"stddev",
         std::vector<double>(inputs.normalisation().stddev().begin(), inputs.normalisation().stddev().end())}};
  }
  if (job.inputs().has_target_units()) {
    const v1::TargetUnits& units = job.inputs().target_units();
    manifest["targets"] = {{"mean", units.mean()}, {"stddev", units.stddev()}};
  }
  if (const auto& names = job.inputs().class_names(); !names.empty()) {
    manifest["class_names"] = std::vector<std::string>(names.begin(), names.end());
  }
  manifest["job_file"] = Json::parse(ToJson(job.spec(), false));
  return manifest;
}

void AddNumbers(const std::string& name, const std::vector<double>& values, const std::string& dimension,
                std::vector<StreamedArray>* arrays) {
  arrays->push_back(
      Streamed(name,
               {ArrayType::kFloat64,
                {static_cast<int64_t>(values.size())},
                std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double))},
               {dimension}));
}

// Adds the manifest's numbers on inputs and targets to the arrays; none for a job without a data set.
void AddUnits(const Json& manifest, std::vector<StreamedArray>* arrays) {
  for (const char* const field : {"mean", "stddev"}) {
    if (manifest.contains("inputs")) {
      AddNumbers(absl::StrCat("input_", field), manifest["inputs"][field], "input_channel", arrays);
    }
    if (manifest.contains("targets")) {
      AddNumbers(absl::StrCat("target_", field), {manifest["targets"][field].get<double>()}, "target", arrays);
    }
  }
}

absl::Status ToNpz(const ExportOptions& options, const Json& manifest, const DrawArrays& draws) {
  std::vector<StreamedArray> arrays = draws.Stacked();
  AddUnits(manifest, &arrays);
  const std::vector<std::pair<std::string, std::string>> others = {{kManifest, manifest.dump(2) + "\n"}};
  return WriteOutputFile(options.output, [&](const std::string& path) { return WriteNpzFile(path, arrays, others); });
}

absl::Status ToZarr(const ExportOptions& options, const Json& manifest, const DrawArrays& draws) {
  std::vector<StreamedArray> arrays = draws.Stacked();
  AddUnits(manifest, &arrays);
  return WriteZarr(arrays, manifest.dump(), kChunkBytes, PutInFolder(options.output));
}

// Writes the header, then the tensors one after the other.
absl::Status WriteTensors(const std::vector<StreamedArray>& tensors, const std::map<std::string, std::string>& metadata,
                          const std::string& path) {
  std::vector<TensorView> views;
  for (const StreamedArray& tensor : tensors) {
    views.push_back({tensor.name, TypeOf(tensor.type), tensor.shape, nullptr, tensor.size_bytes()});
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << SafetensorsHeader(views, metadata);
  std::string piece;
  for (const StreamedArray& tensor : tensors) {
    for (int64_t at = 0; at < tensor.size_bytes(); at += kPieceBytes) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, tensor.size_bytes() - at)));
      CHAINFLEET_RETURN_IF_ERROR(tensor.read(at, piece.data(), static_cast<int64_t>(piece.size())));
      file << piece;
    }
  }
  file.close();
  return file ? absl::OkStatus() : absl::ResourceExhaustedError(absl::StrCat("cannot write ", path));
}

absl::Status ToSafetensors(const ExportOptions& options, const Json& manifest, const DrawArrays& draws) {
  for (const auto& [chain, count] : draws.rows()) {
    const std::map<std::string, std::string> metadata = {
        {"job", manifest["job"]}, {"chain", absl::StrCat(chain)}, {"manifest", manifest.dump()}};
    const std::string path = absl::StrFormat("%s/chain-%04d.safetensors", options.output, chain);
    CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(path, [&, chain = chain](const std::string& file) {
      return WriteTensors(draws.OfChain(chain), metadata, file);
    }));
  }
  return WriteOutputFile(options.output + "/" + kManifest, manifest.dump(2) + "\n");
}

// A job or one of its points has no draws.
std::string WhyNoDraws(const v1::Job& job) {
  if (!IsFinal(job.state())) {
    return absl::StrCat("job ", job.id(), " has no committed draws yet: wait for them, `chainfleet watch ", job.id(),
                        "` shows its chains");
  }
  const std::string why = WhyFailed(job);
  return absl::StrCat("job ", job.id(), " ended ", v1::Job::State_Name(job.state()), " without the draws to export",
                      why.empty() ? "" : ": ", why, "; submit its file again to sample anew");
}

absl::StatusOr<std::vector<v1::SegmentRecord>> ChosenSegments(Client* client, const ExportOptions& options) {
  v1::ListSegmentsRequest request;
  request.set_job(options.job);
  request.set_point(options.point);
  CHAINFLEET_ASSIGN_OR_RETURN(auto segments, client->ListSegments(request));
  for (const int32_t chain : options.chains) {
    if (std::ranges::any_of(segments, [chain](const auto& record) { return record.chain().index() == chain; }))
      continue;
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("job ", options.job, " has no draws of chain ", chain)), "NO_DRAWS");
  }
  if (!options.chains.empty()) {
    std::erase_if(segments,
                  [&](const auto& record) { return std::ranges::count(options.chains, record.chain().index()) == 0; });
  }
  if (!segments.empty()) return segments;
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(options.job));
  return WithReason(absl::FailedPreconditionError(WhyNoDraws(job)), "NO_DRAWS");
}

absl::Status ForArviz(Client* client, const ExportOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(options.job));
  CHAINFLEET_RETURN_IF_ERROR(MakeEmptyOutputFolder(options.output));
  const ArvizOptions arviz{.point = options.point,
                           .dataset = options.dataset,
                           .chains = options.chains,
                           .kind = options.kind == "theta" ? DrawKind::kTheta : DrawKind::kThetaA,
                           .log_likelihood = !options.no_log_likelihood,
                           .include_failed = options.include_failed};
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string done, ExportArviz(client, job, arviz, options.output));
  std::cout << done << ", every checksum right\n";
  return absl::OkStatus();
}

// Keeps the traces of the chains and of the point that the options choose.
absl::Status KeepChosen(const v1::Job& job, const ExportOptions& options, std::vector<v1::Traces>* traces) {
  std::optional<int32_t> point;
  if (!options.point.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(point, PointAsked(job, options.point));
  }
  std::set<int32_t> kept;
  for (v1::Traces& of : *traces) {
    auto& chains = *of.mutable_chains();
    const auto end = std::remove_if(chains.begin(), chains.end(), [&](const v1::Traces::Chain& chain) {
      return (point && chain.point() != *point) ||
             (!options.chains.empty() && std::ranges::count(options.chains, chain.chain()) == 0);
    });
    chains.erase(end, chains.end());
    for (const v1::Traces::Chain& chain : chains) kept.insert(chain.chain());
  }
  for (const int32_t chain : options.chains) {
    if (kept.contains(chain)) continue;
    return WithReason(absl::NotFoundError(absl::StrCat("job ", job.id(), " has no traced values of chain ", chain,
                                                       point ? " at point " + options.point : "")),
                      "NOT_TRACED");
  }
  return absl::OkStatus();
}

absl::Status Traces(Client* client, const ExportOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(options.job));
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<v1::Traces> traces, ReadTraces(client, job.id(), ""));
  CHAINFLEET_RETURN_IF_ERROR(KeepChosen(job, options, &traces));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t rows, WriteTraces(traces, options.traces));
  std::cout << rows << " traced steps of " << traces.size() << " quantities in " << options.traces << "\n";
  return absl::OkStatus();
}

absl::Status CheckOptions(const ExportOptions& options) {
  const auto usage = [](const char* message) { return WithReason(absl::InvalidArgumentError(message), kUsageReason); };
  const bool arviz = options.format == "arviz";
  if (!options.traces.empty() && !options.format.empty()) return usage("--traces is an export of its own");
  if (options.traces.empty() && options.format.empty()) return usage("give --format and --output, or --traces FILE");
  if (options.format.empty() != options.output.empty()) return usage("--format and --output belong together");
  if (arviz && options.output.ends_with(".nc")) {
    return usage(
        "--format arviz writes a folder of Zarr: give a name such as idata.zarr, and open it with "
        "arviz.from_zarr");
  }
  if ((arviz || !options.traces.empty()) && (options.weighted || options.skip_corrupt)) {
    return usage("--weighted and --skip-corrupt are for npz, zarr and safetensors");
  }
  if (!arviz &&
      (options.kind != "theta" || !options.dataset.empty() || options.no_log_likelihood || options.include_failed)) {
    return usage("--kind, --dataset, --no-log-likelihood and --include-failed are for --format arviz");
  }
  return absl::OkStatus();
}

absl::Status Export(Invocation* run, const ExportOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckOptions(options));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  ExitOnInterrupt("\ninterrupted: the export is not complete\n");
  if (!options.traces.empty()) return Traces(&client, options);
  if (options.format == "arviz") return ForArviz(&client, options);
  CHAINFLEET_ASSIGN_OR_RETURN(const auto segments, ChosenSegments(&client, options));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(segments[0].chain().job()));
  LiveText text(stderr);
  if (options.format != "npz") CHAINFLEET_RETURN_IF_ERROR(MakeEmptyOutputFolder(options.output));
  CHAINFLEET_ASSIGN_OR_RETURN(
      DrawArrays draws,
      DrawArrays::Make(FolderOfOutput(options.output), RowsOf(segments, !options.weighted), !options.weighted));
  int64_t num_draws = 0, num_bytes = 0;
  const absl::Status status =
      ReadReadableDraws(&client, segments, options.skip_corrupt, &text, [&](const CheckedSegment& segment) {
        num_draws += static_cast<int64_t>(segment.content.draws.size());
        num_bytes += static_cast<int64_t>(segment.bytes.size());
        text.Show(absl::StrCat("read ", num_draws, " draws, ", FormatBytes(num_bytes)));
        return draws.Add(segment);
      });
  text.Clear();
  CHAINFLEET_RETURN_IF_ERROR(status);
  const int64_t committed = NumDraws(segments);
  if (num_draws == 0) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", options.job, ": none of its ", committed,
                                                                 " committed draws is readable")),
                      "NO_DRAWS");
  }
  const auto write = options.format == "npz" ? &ToNpz : options.format == "zarr" ? &ToZarr : &ToSafetensors;
  CHAINFLEET_RETURN_IF_ERROR(write(options, ManifestOf(job, options, draws), draws));
  int64_t rows = 0;
  for (const auto& [chain, count] : draws.rows()) rows += count;
  std::cout << num_draws << (num_draws < committed ? absl::StrCat(" of ", committed) : "") << " draws of " << job.id()
            << (rows > num_draws ? absl::StrCat(", repeated by weight to ", rows, ",") : "") << " in " << options.output
            << ", every checksum right\n";
  return absl::OkStatus();
}

}  // namespace

void AddExport(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = AddVerb(
      program, run, "export", "Write all committed draws, or traces, to files; every digest is checked",
      "  chainfleet export @latest --format npz --output draws.npz\n"
      "  chainfleet export @latest --format safetensors --output draws/\n"
      "  chainfleet export @latest --format arviz --output idata.zarr\n"
      "  chainfleet export @latest --traces traces.csv\n\n"
      "Every parameter of each kind is an array of its own, \"theta/NAME\". A draw that a Metropolis chain held for "
      "several steps is\nrepeated as often, so that a plain mean estimates the posterior mean; --weighted writes it "
      "once, with its weight.\n"
      "npz: one file with arrays [chain, draw, ...], NaN where a chain is shorter.\n"
      "zarr: a folder with the same, of Zarr version 2, uncompressed: xarray.open_zarr(PATH, group=\"theta\").\n"
      "safetensors: one file per chain, chain-0000.safetensors, with tensors [draw, ...].\n"
      "These formats also hold a manifest, which says how the inputs were standardised.\n"
      "arviz: a folder for arviz.from_zarr with the groups posterior, sample_stats, log_likelihood and observed_data,\n"
      "as Job.to_arviz() of the Python package gives them. Draws with weights are refused.\n"
      "--traces: the newest traced values, a line for each chain and step, with a column for each quantity.",
      [=] { return Export(run, *options); });
  AddJobArgument(verb, &options->job);
  AddPointOption(verb, &options->point);
  verb->add_option("--format", options->format, "safetensors, npz, zarr or arviz")
      ->check(CLI::IsMember({"safetensors", "npz", "zarr", "arviz"}))
      ->option_text("FORMAT");
  verb->add_option("-o,--output", options->output, "File (npz), or new or empty folder (safetensors, zarr, arviz)")
      ->option_text("PATH");
  verb->add_option("--traces", options->traces, "Write the traced values instead of draws: an .npz or .csv")
      ->check(EndsInNpzOrCsv())
      ->option_text("FILE");
  verb->add_option("--kind", options->kind, "arviz: theta or theta_a; default: theta")
      ->check(CLI::IsMember({"theta", "theta_a"}))
      ->option_text("KIND");
  verb->add_option("--dataset", options->dataset,
                   "arviz: rows of log_likelihood; default: those that the job learned from")
      ->option_text("NAME");
  verb->add_flag("--no-log-likelihood", options->no_log_likelihood, "arviz: leave it out, so that no worker is needed");
  verb->add_flag("--include-failed", options->include_failed, "arviz: also chains that FAILED or DIVERGED");
  verb->add_option("--chains", options->chains, "Only these chains, by index with commas")
      ->delimiter(',')
      ->check(CountAtLeast(0))
      ->option_text("LIST");
  verb->add_flag("--weighted", options->weighted, "Write each draw once with its weight, instead of repeating it");
  verb->add_flag("--skip-corrupt", options->skip_corrupt,
                 "Leave out draws whose checksum does not match (draws marked corrupt are always left out)");
  AddServerOptions(verb, run);
}

}  // namespace chainfleet
