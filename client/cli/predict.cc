#include <google/protobuf/reflection.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/output_file.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs.h"
#include "core/base/file_system.h"
#include "core/base/limits.h"
#include "core/formats/gzip.h"
#include "core/formats/idx.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"

namespace chainfleet {
namespace {

constexpr int64_t kRequestBytes = limits::kMiB;  // of inputs
constexpr int64_t kReplyBytes = limits::kMaxMessageBytes / 2;
constexpr int64_t kFirstRows = 256;  // of the first request, which says how many classes there are
constexpr int64_t kTableRows = 10;

struct PredictOptions {
  std::string job, point, input, output;
  std::vector<std::string> kinds;
  int64_t members = 0;
  int64_t version = 0;
  int64_t rows = kTableRows;
};

absl::StatusOr<Array> ReadInputs(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string bytes, RealFileSystem()->Read(path));
  if (IsGzip(bytes)) {
    auto plain = Gunzip(bytes);
    if (!plain.ok()) return Annotate(plain.status(), path);
    bytes = *std::move(plain);
  }
  const bool is_idx = IsIdx(bytes);
  auto array = is_idx ? ReadIdx(bytes) : ReadNpy(bytes);
  if (!array.ok()) return Annotate(array.status(), path);
  // IDX images are [n, height, width]; networks see one channel.
  if (is_idx && array->shape.size() == 3) array->shape.insert(array->shape.begin() + 1, 1);
  if (array->type != ArrayType::kUint8 && array->type != ArrayType::kFloat32) {
    const char* name = array->type == ArrayType::kInt32   ? "int32 (<i4)"
                       : array->type == ArrayType::kInt64 ? "int64 (<i8)"
                                                          : "float64 (<f8)";
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", name, ": inputs are uint8 (counts as x / 255) or float32"));
  }
  if (array->shape.size() < 2 || array->shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has shape [", absl::StrJoin(array->shape, ", "),
                                                   "]: inputs are [rows, input shape...] with at least one row"));
  }
  return array;
}

// Adds the rows of `reply` to `all`. Errors are known of all rows or of none.
void Merge(const v1::PredictResponse& reply, v1::PredictResponse* all) {
  const int64_t num_rows = all->num_rows() + reply.num_rows();
  const bool known = reply.has_errors() && (all->num_rows() == 0 || all->has_errors());
  all->MergeFrom(reply);  // appends the arrays
  all->set_num_rows(num_rows);
  if (!known) all->clear_errors();
}

// All rows in requests below the message limit, every one on the version that the first reply names.
absl::StatusOr<v1::PredictResponse> PredictAll(Client* client, const PredictOptions& options, const Array& inputs) {
  v1::PredictRequest request;
  request.set_job(options.job);
  request.mutable_selection()->set_members(options.members);
  request.mutable_selection()->set_version(options.version);
  request.mutable_selection()->set_point(options.point);
  for (const std::string& kind : options.kinds)
    request.mutable_selection()->add_kinds(kind == "theta" ? v1::THETA : v1::THETA_A);
  v1::Tensor* tensor = request.mutable_inputs();
  tensor->set_type(inputs.type == ArrayType::kUint8 ? v1::UINT8 : v1::FLOAT32);
  tensor->mutable_shape()->Add(inputs.shape.begin(), inputs.shape.end());

  const int64_t num_rows = inputs.shape[0];
  const int64_t row_bytes = std::max<int64_t>(1, static_cast<int64_t>(inputs.bytes.size()) / num_rows);
  int64_t rows_per_request = std::clamp<int64_t>(kRequestBytes / row_bytes, 1, kFirstRows);
  v1::PredictResponse all;
  LiveText text(stderr);
  for (int64_t row = 0; row < num_rows;) {
    const int64_t count = std::min(rows_per_request, num_rows - row);
    tensor->set_shape(0, count);
    tensor->set_data(inputs.bytes.substr(static_cast<size_t>(row * row_bytes), static_cast<size_t>(count * row_bytes)));
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::PredictResponse reply, client->Predict(request));
    Merge(reply, &all);
    row += count;
    // The same job and draws for all rows, whatever is committed or created meanwhile.
    request.set_job(reply.job_id());
    request.mutable_selection()->set_version(reply.version());
    const int64_t reply_row_bytes = 2 * (2 * reply.num_classes() + 5) * 8;
    rows_per_request = std::max<int64_t>(1, std::min(kRequestBytes / row_bytes, kReplyBytes / reply_row_bytes));
    text.Show(absl::StrCat(row, " of ", num_rows, " rows"));
  }
  text.Clear();
  return all;
}

Array DoubleArray(const std::vector<double>& values, std::vector<int64_t> shape) {
  return {ArrayType::kFloat64, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double))};
}

bool LearnsNumbers(const v1::PredictResponse& all) { return all.num_classes() == 0; }

// Every array of `scores` under its own name and `suffix`: [n], or [n, K].
void AddArrays(const v1::PredictResponse& all, const v1::PredictiveScores& scores, const std::string& suffix,
               std::map<std::string, Array>* arrays) {
  const auto* type = scores.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto field = scores.GetReflection()->GetRepeatedFieldRef<double>(scores, type->field(i));
    const std::vector<double> values(field.begin(), field.end());
    if (values.empty()) continue;
    std::vector<int64_t> shape = {all.num_rows()};
    if (static_cast<int64_t>(values.size()) != all.num_rows()) shape.push_back(all.num_classes());
    (*arrays)[type->field(i)->name() + suffix] = DoubleArray(values, shape);
  }
}

absl::Status WriteNpzFile(const std::string& path, const v1::PredictResponse& all) {
  std::map<std::string, Array> arrays;
  AddArrays(all, all.scores(), "", &arrays);
  AddArrays(all, all.errors(), "_error", &arrays);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(arrays));
  return WriteOutputFile(path, bytes);
}

Table NumberTable(const v1::PredictResponse& all, int64_t max_rows) {
  Table table({">ROW", ">MEAN", ">MC ERROR", ">VARIANCE ALEATORIC", ">VARIANCE EPISTEMIC"});
  for (int row = 0; row < std::min(max_rows, all.num_rows()); ++row) {
    const std::string error = all.has_errors() ? absl::StrCat(all.errors().mean(row)) : "-";
    table.AddRow({absl::StrCat(row), absl::StrCat(all.scores().mean(row)), error,
                  absl::StrCat(all.scores().variance_aleatoric(row)),
                  absl::StrCat(all.scores().variance_epistemic(row))});
  }
  return table;
}

Table ClassTable(const v1::PredictResponse& all, int64_t max_rows) {
  Table table({">ROW", ">CLASS", ">PROBABILITY", ">MC ERROR", ">ENTROPY", ">MUTUAL INFORMATION"});
  const int k = static_cast<int>(all.num_classes());
  for (int row = 0; row < std::min(max_rows, all.num_rows()); ++row) {
    const v1::PredictiveScores& scores = all.scores();
    const auto begin = scores.mean_probability().begin() + row * k;
    const int best = static_cast<int>(std::max_element(begin, begin + k) - begin);
    const double error = all.has_errors() ? all.errors().mean_probability(row * k + best) : NAN;
    table.AddRow({absl::StrCat(row), absl::StrCat(best), Fixed(begin[best], 4), Fixed(error, 4),
                  Fixed(scores.predictive_entropy(row), 4), Fixed(scores.mutual_information(row), 4)});
  }
  return table;
}

std::string PredictionTable(const v1::PredictResponse& all, int64_t max_rows) {
  std::string text = (LearnsNumbers(all) ? NumberTable(all, max_rows) : ClassTable(all, max_rows)).Render();
  if (all.num_rows() > max_rows) {
    absl::StrAppend(&text, "... and ", all.num_rows() - max_rows, " more rows: --rows, or --output FILE.npz for all\n");
  }
  return text;
}

absl::Status Predict(Invocation* run, const PredictOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Array inputs, ReadInputs(options.input));
  if (run->timeout == absl::InfiniteDuration()) run->timeout = limits::kPredictDeadline;
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::PredictResponse all, PredictAll(&client, options, inputs));
  std::cerr << all.job_id() << " version " << all.version() << (all.point().empty() ? "" : " at " + all.point())
            << ": average of " << all.draws_used() << " of " << all.draws_in_version() << " draws\n";
  if (options.output.empty()) {
    PrintOne(std::cout, run->format, all, all.job_id(), [&] { return PredictionTable(all, options.rows); });
    return absl::OkStatus();
  }
  CHAINFLEET_RETURN_IF_ERROR(WriteNpzFile(options.output, all));
  std::cerr << all.num_rows() << " rows written to " << options.output << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddPredict(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = AddVerb(
      program, run, "predict",
      "Bayesian model average over a job's draws: class probabilities, or numbers, and how sure they are",
      "  chainfleet predict @latest --input x.npy\n"
      "  chainfleet predict fashion-emcmc --input t10k-images-idx3-ubyte.gz --output p.npz "
      "--kinds theta --members 2\n\n"
      "p.npz holds mean_probability and log_probability [rows, classes]; max_probability, predictive_entropy,\n"
      "expected_entropy, mutual_information and variation_ratio [rows], in nats. Of a job that learns numbers: mean,\n"
      "variance_aleatoric and variance_epistemic [rows]. The Monte Carlo error of each is in NAME_error.",
      [=] { return Predict(run, *options); });
  AddJobArgument(verb, &options->job)->description("Job id, name (the newest job of that name), @latest, or an alias");
  AddPointOption(verb, &options->point);
  verb->add_option("--input", options->input, "uint8 or float32 .npy [rows, ...], or IDX images; .gz is fine")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  verb->add_option("--output", options->output, "Write an .npz instead of printing")->option_text("FILE.npz");
  verb->add_option("--kinds", options->kinds, "theta, theta_a or both with a comma; default: all the job keeps")
      ->delimiter(',')
      ->check(CLI::IsMember({"theta", "theta_a"}))
      ->option_text("KINDS");
  verb->add_option("--members", options->members, "Only the newest K draws of each chain")
      ->check(CLI::PositiveNumber)
      ->option_text("K");
  verb->add_option("--version", options->version, "Snapshot of the draws; default: the newest")
      ->check(CLI::PositiveNumber)
      ->option_text("V");
  verb->add_option("--rows", options->rows, "Rows to print")->check(CLI::PositiveNumber)->option_text("N");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
