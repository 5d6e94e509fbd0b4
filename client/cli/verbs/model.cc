#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/percent.h"

namespace chainfleet {
namespace {

absl::Status Put(Invocation* run, const std::string& name, const std::string& file) {
  bool is_program = false;
  CHAINFLEET_RETURN_IF_ERROR(
      PutNamed<v1::StoredModel>(run, "model", name, ModelTable, [&](Client* client, const auto& on_sent) {
        auto stored = client->PutModel(name, {file}, on_sent);
        is_program = stored.ok() && !stored->has_signature();
        return stored;
      }));
  if (is_program) {
    std::cerr << "warning: TorchScript is deprecated and will not be taken by a later release: use torch.export.save\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddModel(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name, file;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* model = AddGroup(program, "model", "Upload and list networks of your own");
  CLI::App* put =
      AddVerb(model, run, "put",
              "Upload a network that torch.export.save wrote, or weights; repeating the same file is allowed",
              "  chainfleet model put mine net.pt2          # a job file then says  model: {exported: mine}\n"
              "  chainfleet model put map best.safetensors  # and  init: {weights: [map]}\n"
              "  chainfleet model put run7 s3://my-bucket/run7/best.safetensors",
              [=] { return Put(run, options->name, options->file); });
  put->add_option("NAME", options->name, "Name of the model")->required();
  put->add_option(
         "FILE", options->file,
         "The .pt2 file, or a state_dict as safetensors: weights at which chains start. Or a TorchScript file, "
         "a program that workers run: put only what you trust. file:///PATH and s3://BUCKET/KEY are read by the "
         "server, below its --dataset-root")
      ->required()
      ->check([](const std::string& file) { return IsUri(file) ? std::string() : CLI::ExistingFile(file); });
  CLI::App* list = AddVerb(model, run, "list", "List all stored networks", "  chainfleet model list",
                           [=] { return ListNamed(run, "models", ModelTable, &Client::ListModels); });
  for (CLI::App* verb : {put, list}) {
    AddServerOptions(verb, run);
    AddOutputOption(verb, run);
  }
  AddShare<v1::StoredModel>(model, run, "model", ModelTable, &Client::ShareModel);
}

}  // namespace chainfleet
