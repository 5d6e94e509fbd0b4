#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/zarr_folder.h"
#include "core/base/percent.h"

namespace chainfleet {
namespace {

// Packs a folder into one archive, which has its name.
absl::StatusOr<FileToSend> Packed(std::string path) {
  std::error_code gone;  // the transfer reports errors
  if (!std::filesystem::is_directory(path, gone)) return FileToSend{path};
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  CHAINFLEET_ASSIGN_OR_RETURN(std::string archive, PackZarr(path));
  return FileToSend{path + ".zip", std::move(archive)};
}

absl::Status Put(Invocation* run, const v1::PutDatasetRequest::Header& header, const std::vector<std::string>& paths) {
  std::vector<FileToSend> files;
  for (const std::string& path : paths) {
    CHAINFLEET_ASSIGN_OR_RETURN(FileToSend file, Packed(path));
    files.push_back(std::move(file));
  }
  return PutNamed<v1::Dataset>(run, "data set", header.name(), DatasetTable, [&](Client* client, const auto& on_sent) {
    return client->PutDataset(header, files, on_sent);
  });
}

}  // namespace

void AddDataset(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name, target, target_type = "label";
    std::vector<std::string> files, class_names;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* dataset = AddGroup(program, "dataset", "Upload, list and download data sets");
  CLI::App* put = AddVerb(dataset, run, "put", "Upload a data set; repeating the same content is allowed",
                          "  chainfleet dataset put mnist train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz\n"
                          "  chainfleet dataset put mine inputs.npy labels.npy\n"
                          "  chainfleet dataset put mine mine.zarr\n"
                          "  chainfleet dataset put mine file:///data/inputs.npy s3://my-bucket/data/labels.npy\n"
                          "  chainfleet dataset put houses houses.csv --target price --target-type float32\n"
                          "  chainfleet dataset put flowers flowers.csv --class-names setosa,versicolor,virginica",
                          [=] {
                            v1::PutDatasetRequest::Header header;
                            header.set_name(options->name);
                            header.set_target(options->target);
                            header.set_target_type(options->target_type == "label" ? v1::LABELS : v1::FLOAT32_TARGETS);
                            header.mutable_class_names()->Add(options->class_names.begin(), options->class_names.end());
                            return Put(run, header, options->files);
                          });
  put->add_option("NAME", options->name, "Name of the data set")->required();
  put->add_option(
         "FILES", options->files,
         "IDX (also .gz), .npy, .npz, CIFAR .bin or CSV files, or a Zarr group: its folder, or zipped; file:///PATH "
         "and s3://BUCKET/KEY are read by the server, below its --dataset-root")
      ->required()
      ->check([](const std::string& file) { return IsUri(file) ? std::string() : CLI::ExistingPath(file); });
  put->add_option("--target", options->target, "Target column of a CSV, by name or number from 0; default: the last");
  put->add_option("--target-type", options->target_type, "label (classes 0, 1, ...) or float32 (numbers)")
      ->check(CLI::IsMember({"label", "float32"}));
  put->add_option("--class-names", options->class_names,
                  "Names of classes 0, 1, ..., with commas between; jobs that are submitted later show them")
      ->delimiter(',')
      ->option_text("NAMES");
  CLI::App* list = AddVerb(dataset, run, "list", "List all data sets", "  chainfleet dataset list",
                           [=] { return ListNamed(run, "datasets", DatasetTable, &Client::ListDatasets); });
  for (CLI::App* verb : {put, list}) {
    AddServerOptions(verb, run);
    AddOutputOption(verb, run);
  }
  AddShare<v1::Dataset>(dataset, run, "data set", DatasetTable, &Client::ShareDataset);
  AddDatasetGet(dataset, run);
}

}  // namespace chainfleet
