#include <cstdio>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs.h"

namespace chainfleet {
namespace {

Table ModelTable(const std::vector<v1::StoredModel>& models) {
  Table table({"MODEL", ">SIZE", "SHA-256"});
  for (const v1::StoredModel& model : models) {
    table.AddRow({model.name(), FormatBytes(model.object().size_bytes()), model.object().sha256().substr(0, 12)});
  }
  return table;
}

absl::Status Put(Invocation* run, const std::string& name, const std::string& file) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  LiveText text(stderr);
  ExitOnInterrupt(absl::StrCat("\ninterrupted: model ", name, " was not stored\n"));
  const auto model = client.PutModel(
      name, file, [&](int64_t bytes) { text.Show(absl::StrCat("sending ", name, ": ", FormatBytes(bytes))); });
  text.Clear();
  CHAINFLEET_RETURN_IF_ERROR(model.status());
  PrintOne(std::cout, run->format, *model, model->name(), [&] { return ModelTable({*model}).Render(); });
  return absl::OkStatus();
}

absl::Status List(Invocation* run) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto models, client.ListModels());
  Listing listing{"models", {}, {}, ModelTable(models).Render()};
  for (const v1::StoredModel& model : models) {
    listing.items.push_back(&model);
    listing.names.push_back(model.name());
  }
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

}  // namespace

void AddModel(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name, file;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* model = AddGroup(program, "model", "Put and list TorchScript modules");
  CLI::App* put = AddVerb(model, run, "put", "Send a module that torch.jit.save wrote; the same file again is fine",
                          "  chainfleet model put mine mine.pt    # a job file then says  model: {torchscript: mine}",
                          [=] { return Put(run, options->name, options->file); });
  put->add_option("NAME", options->name, "Name of the model")->required();
  put->add_option("FILE", options->file, "The .pt file. Workers run its code: put only what you trust")
      ->required()
      ->check(CLI::ExistingFile);
  CLI::App* list =
      AddVerb(model, run, "list", "All stored modules", "  chainfleet model list", [=] { return List(run); });
  for (CLI::App* verb : {put, list}) {
    AddServerOptions(verb, run);
    AddOutputOption(verb, run);
  }
}

}  // namespace chainfleet
