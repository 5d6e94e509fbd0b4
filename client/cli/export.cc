#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/output_file.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs.h"
#include "client/cli/zarr_folder.h"
#include "client/lib/draw_reader.h"
#include "core/formats/npz.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

template <typename T>
void Append(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// All draws of the job as arrays over draws: chain, index, step, weight, draws_theta [draws, D], draws_theta_a.
class ArraysExport {
 public:
  absl::Status Add(const CheckedSegment& segment) {
    const SegmentContent& content = segment.content;
    for (size_t i = 0; i < content.draws.size(); ++i) {
      const SegmentDraw& draw = content.draws[i];
      Append(content.chain.index, &chain_);
      Append(content.first_index + static_cast<int64_t>(i), &index_);
      Append(draw.step, &step_);
      Append(draw.weight, &weight_);
      for (size_t k = 0; k < content.kinds.size(); ++k) {
        const std::vector<float>& theta = draw.theta[k];
        Array& array = kinds_["draws_" + ToString(content.kinds[k])];
        array.shape = {num_draws_ + 1, static_cast<int64_t>(theta.size())};
        array.bytes.append(reinterpret_cast<const char*>(theta.data()), theta.size() * sizeof(float));
      }
      ++num_draws_;
    }
    return absl::OkStatus();
  }

  absl::Status WriteTo(const std::string& path, bool zarr) {
    const std::map<std::string, Array> arrays = Take();
    if (zarr) return WriteZarrFolder(path, arrays);
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(arrays));
    return WriteOutputFile(path, bytes);
  }

 private:
  std::map<std::string, Array> Take() {
    std::map<std::string, Array> arrays = std::move(kinds_);
    arrays["chain"] = {ArrayType::kInt32, {num_draws_}, std::move(chain_)};
    arrays["index"] = {ArrayType::kInt64, {num_draws_}, std::move(index_)};
    arrays["step"] = {ArrayType::kInt64, {num_draws_}, std::move(step_)};
    arrays["weight"] = {ArrayType::kFloat64, {num_draws_}, std::move(weight_)};
    return arrays;
  }

  int64_t num_draws_ = 0;
  std::string chain_, index_, step_, weight_;
  std::map<std::string, Array> kinds_;
};

// One file per chain: the tensors of its segments joined along their first axis, the draws.
class SafetensorsExport {
 public:
  explicit SafetensorsExport(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Add(const CheckedSegment& segment) {
    if (!tensors_.empty() && segment.content.chain.index != chain_) CHAINFLEET_RETURN_IF_ERROR(WriteChain());
    chain_ = segment.content.chain.index;
    metadata_ = {{"job", segment.content.chain.job}, {"chain", absl::StrCat(chain_)}};
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(segment.bytes));
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      const TensorView& tensor = file.tensors[i];
      if (tensors_.size() <= i) {
        tensors_.push_back({tensor, ""});
        tensors_[i].view.shape[0] = 0;
      }
      tensors_[i].view.shape[0] += tensor.shape[0];
      tensors_[i].bytes.append(tensor.data, static_cast<size_t>(tensor.size_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status WriteChain() {
    if (tensors_.empty()) return absl::OkStatus();
    std::vector<TensorView> views;
    for (Tensor& tensor : tensors_) {
      tensor.view.data = tensor.bytes.data();
      tensor.view.size_bytes = static_cast<int64_t>(tensor.bytes.size());
      views.push_back(tensor.view);
    }
    const std::string path = absl::StrFormat("%s/chain-%04d.safetensors", folder_, chain_);
    const absl::Status status = WriteOutputFile(path, WriteSafetensors(views, metadata_));
    tensors_.clear();
    return status;
  }

 private:
  struct Tensor {
    TensorView view;
    std::string bytes;
  };
  const std::string folder_;
  int32_t chain_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<Tensor> tensors_;
};

struct ExportOptions {
  std::string job, point, format, output;
  bool skip_corrupt = false;
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

// Passes over the draws of `record`: as if deleted, so that its record still links those around it.
void LeaveOut(const std::string& why, v1::SegmentRecord* record) {
  std::cerr << "warning: chain " << record->chain().index() << ", " << record->segment().steps_size() << " draws from "
            << record->segment().first_index() << " left out: " << why << '\n';
  record->set_deleted(true);
}

// ReadDraws without the segments that are deleted, whose objects are gone or that the server has marked, and with
// `skip_corrupt` without those whose bytes turn out not to be those of their record.
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
    if (!gone && reason != "OBJECT_MISSING" && !(skip_corrupt && reason == "DIGEST_MISMATCH")) {
      if (status.ok() && deleted > 0) std::cerr << deleted << " draws were deleted and are left out\n";
      return status;
    }
    text->Clear();
    // What was read is not read again: the next round begins behind the segment that failed.
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

absl::Status Export(Invocation* run, const ExportOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::ListSegmentsRequest request;
  request.set_job(options.job);
  request.set_point(options.point);
  CHAINFLEET_ASSIGN_OR_RETURN(const auto segments, client.ListSegments(request));
  if (segments.empty()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", options.job, " has no committed draws yet")),
                      "NO_DRAWS");
  }
  LiveText text(stderr);
  ExitOnInterrupt("\ninterrupted: the export is not complete\n");
  ArraysExport arrays;
  SafetensorsExport safetensors(options.output);
  const bool to_chains = options.format == "safetensors", to_zarr = options.format == "zarr";
  if (to_chains || to_zarr) CHAINFLEET_RETURN_IF_ERROR(MakeOutputFolder(options.output));
  int64_t num_draws = 0, num_bytes = 0;
  absl::Status status =
      ReadReadableDraws(&client, segments, options.skip_corrupt, &text, [&](const CheckedSegment& segment) {
        num_draws += static_cast<int64_t>(segment.content.draws.size());
        num_bytes += static_cast<int64_t>(segment.bytes.size());
        text.Show(absl::StrCat("read ", num_draws, " draws, ", FormatBytes(num_bytes)));
        return to_chains ? safetensors.Add(segment) : arrays.Add(segment);
      });
  text.Clear();
  CHAINFLEET_RETURN_IF_ERROR(status);
  const int64_t committed = NumDraws(segments);
  if (num_draws == 0) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("job ", options.job, ": none of its ", committed,
                                                                 " committed draws is readable")),
                      "NO_DRAWS");
  }
  CHAINFLEET_RETURN_IF_ERROR(to_chains ? safetensors.WriteChain() : arrays.WriteTo(options.output, to_zarr));
  std::cout << num_draws << (num_draws < committed ? absl::StrCat(" of ", committed) : "") << " draws of "
            << segments[0].chain().job() << " in " << options.output << ", every checksum right\n";
  return absl::OkStatus();
}

}  // namespace

void AddExport(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* verb =
      AddVerb(program, run, "export", "Write all committed draws to files, checking every digest on the way",
              "  chainfleet export @latest --format npz --output draws.npz\n"
              "  chainfleet export @latest --format safetensors --output draws/\n\n"
              "npz: one file with draws_theta and draws_theta_a [draws, D] and, per draw, chain, index, step, weight.\n"
              "zarr: a folder with these arrays, of Zarr version 2, uncompressed.\n"
              "safetensors: one file per chain, chain-0000.safetensors, with a tensor [draws, ...] for each parameter "
              "of each kind\n"
              "(\"theta/NAME\"), and steps and weights [draws].",
              [=] { return Export(run, *options); });
  AddJobArgument(verb, &options->job);
  AddPointOption(verb, &options->point);
  verb->add_option("--format", options->format, "safetensors, npz or zarr")
      ->required()
      ->check(CLI::IsMember({"safetensors", "npz", "zarr"}));
  verb->add_option("-o,--output", options->output, "File (npz) or folder (safetensors, zarr)")
      ->required()
      ->option_text("PATH");
  verb->add_flag("--skip-corrupt", options->skip_corrupt,
                 "Leave out draws whose bytes do not have their checksum (those marked corrupt always are)");
  AddServerOptions(verb, run);
}

}  // namespace chainfleet
