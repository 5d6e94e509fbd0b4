#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/dataset_files.h"
#include "client/cli/output_file.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/domain/no_such.h"

namespace chainfleet {
namespace {

struct DatasetGetOptions {
  std::string name, format, output;
};

absl::StatusOr<v1::Dataset> StoredDataset(Client* client, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<v1::Dataset> datasets, client->ListDatasets());
  const auto found = std::ranges::find(datasets, name, &v1::Dataset::name);
  if (found != datasets.end()) return std::move(*found);
  return NoSuch("dataset", name);
}

// Checks, as far as possible before there is data, that the file can be written.
absl::Status CheckFolder(const DatasetGetOptions& options) {
  if (options.format == "zarr") return MakeOutputFolder(options.output);
  const std::filesystem::path folder = std::filesystem::path(options.output).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", options.output, ": there is no such folder"));
}

absl::Status Download(Client* client, const v1::Dataset& dataset, DatasetFiles* files) {
  LiveText text(stderr);
  ExitOnInterrupt(absl::StrCat("\ninterrupted: data set ", dataset.name(), " was not written\n"));
  int64_t num_bytes = 0;
  absl::Status status;
  for (int64_t first = 0; first < dataset.num_rows() && status.ok();) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(RowsPerCall(dataset), dataset.num_rows() - first)));
    std::iota(rows.begin(), rows.end(), first);
    first += static_cast<int64_t>(rows.size());
    const absl::StatusOr<v1::DatasetRowValues> values = client->ReadRows(dataset.name(), rows);
    status = values.ok() ? files->Add(*values) : values.status();
    if (!status.ok()) break;
    num_bytes += static_cast<int64_t>(values->inputs().size());
    text.Show(absl::StrCat("read ", first, " of ", dataset.num_rows(), " rows, ", FormatBytes(num_bytes)));
  }
  text.Clear();
  CHAINFLEET_RETURN_IF_ERROR(status);
  // The name may get other content between two calls. Rows of both would form a data set that never existed.
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Dataset now, StoredDataset(client, dataset.name()));
  if (now.digest() == dataset.digest() && now.created_at().seconds() == dataset.created_at().seconds() &&
      now.created_at().nanos() == dataset.created_at().nanos()) {
    return absl::OkStatus();
  }
  return ReplacedWhileRead(dataset);
}

absl::Status GetDataset(Invocation* run, const DatasetGetOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckDatasetPath(options.format, options.output));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Dataset dataset, StoredDataset(&client, options.name));
  CHAINFLEET_RETURN_IF_ERROR(CheckDatasetFormat(dataset, options.format));
  CHAINFLEET_RETURN_IF_ERROR(CheckFolder(options));
  DatasetFiles files(dataset, options.format);
  CHAINFLEET_RETURN_IF_ERROR(Download(&client, dataset, &files));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> paths, files.WriteTo(options.output));
  std::cout << dataset.num_rows() << " rows of " << dataset.name() << " written; to put them again:\n"
            << "  chainfleet dataset put NAME " << absl::StrJoin(paths, " ")
            << (dataset.target_type() == v1::FLOAT32_TARGETS ? " --target-type float32" : "") << "\n";
  if (dataset.class_names_size() > 0)
    std::cerr << "note: files hold no names of classes; `describe dataset " << dataset.name() << "` lists them\n";
  for (const std::string& difference : files.Differences()) std::cerr << "note: " << difference << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddDatasetGet(CLI::App* dataset, Invocation* run) {
  const auto options = std::make_shared<DatasetGetOptions>();
  CLI::App* verb =
      AddVerb(dataset, run, "get", "Write a data set to files; `dataset put` of these files gives the same content",
              "  chainfleet dataset get mine --format npz -o mine.npz\n"
              "  chainfleet dataset get fashion-mnist --format idx -o data/train\n\n"
              "npz: one file with arrays x [rows, ...] and y [rows]; any data set.\n"
              "zarr: a folder with the same, of Zarr version 2.\n"
              "idx: PATH-images-idxD-ubyte and PATH-labels-idx1-ubyte; uint8 inputs with labels to 255.\n"
              "cifar: records of CIFAR-10 in FILE.bin; uint8 inputs [3, 32, 32] with 10 classes or fewer. Not\n"
              "CIFAR-100, whose coarse labels are not stored.\n"
              "csv: FILE.csv with columns x0, x1, ... and, last, y; float32 inputs of one axis. Names of columns\n"
              "are not stored.",
              [=] { return GetDataset(run, *options); });
  verb->add_option("NAME", options->name, "Name of the data set")->required();
  verb->add_option("--format", options->format, absl::StrJoin(kDatasetFormats, ", "))
      ->required()
      ->check(CLI::IsMember(kDatasetFormats));
  verb->add_option("-o,--output", options->output, "File (npz, cifar, csv), folder (zarr) or start of two files (idx)")
      ->required()
      ->option_text("PATH");
  AddServerOptions(verb, run);
}

}  // namespace chainfleet
