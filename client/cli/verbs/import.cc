#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_file.h"
#include "client/cli/state_dicts.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/file_system.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

constexpr size_t kMostMembers = 256;

struct ImportOptions {
  std::string name, model, dataset, likelihood = "{categorical: {}}";
  std::vector<std::string> weights;
  bool raw_inputs = false, raw_targets = false;
};

absl::StatusOr<v1::StoredModel> Send(Invocation* run, Client* client, const std::string& name, const FileToSend& file) {
  LiveText text(stderr);
  const absl::StatusOr<v1::StoredModel> model = client->PutModel(
      name, file, [&](int64_t bytes) { text.Show(absl::StrCat("sending ", file.path, ": ", FormatBytes(bytes))); });
  text.Clear();
  if (!model.ok()) return Annotate(model.status(), file.path);
  if (run->format == OutputFormat::kTable) std::cerr << file.path << " is stored as model " << name << "\n";
  return model;
}

// The networks in the files of --weights, each with the file's name. INVALID_ARGUMENT: there are too many.
absl::StatusOr<std::vector<FileToSend>> Members(const std::vector<std::string>& files) {
  std::vector<FileToSend> members;
  for (const std::string& path : files) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, RealFileSystem()->Read(path));
    absl::StatusOr<std::vector<std::string>> networks = StateDictsOf(bytes);
    if (!networks.ok()) return Annotate(networks.status(), path);
    for (std::string& network : *networks) {
      const bool is_file = network == bytes;  // is sent from the disk, and not held until then
      members.push_back({path, is_file ? std::nullopt : std::optional(std::move(network))});
    }
    if (members.size() > kMostMembers) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": these are more than ", kMostMembers, " networks"));
    }
  }
  return members;
}

// Buffers such as the statistics of batch norm come from the network's file alone.
absl::Status CheckHasParametersOnly(const v1::StoredModel& weights, const v1::StoredModel& network,
                                    const std::string& file) {
  std::set<std::string> known;
  for (const v1::TensorSignature& tensor : network.signature().parameters()) known.insert(tensor.name());
  for (const v1::TensorSignature& tensor : weights.signature().parameters()) {
    const bool counts = tensor.type().find("float") == std::string::npos || tensor.name().starts_with("likelihood.");
    if (counts || known.contains(tensor.name())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, " has ", tensor.name(), ", which is no parameter of the network: all members have the buffers ",
        "of the .pt2 file. Leave it out if it is equal there; else import each network as a job of its own"));
  }
  return absl::OkStatus();
}

// A job of one chain for each file, whose only draw is its start.
absl::StatusOr<v1::JobSpec> ImportingJob(const ImportOptions& options, const std::vector<std::string>& weights) {
  CHAINFLEET_ASSIGN_OR_RETURN(const JobFile file,
                              ParseJobFile("--likelihood", absl::StrCat("likelihood: ", options.likelihood)));
  v1::JobSpec spec = file.spec;
  spec.set_name(options.name);
  spec.mutable_model()->set_exported(options.name);
  spec.mutable_dataset()->set_name(options.dataset);
  spec.mutable_standardize()->set_inputs(!options.raw_inputs);
  spec.mutable_standardize()->set_targets(!options.raw_targets);
  for (const std::string& name : weights) spec.mutable_init()->add_weights(name);
  spec.set_chains(static_cast<int32_t>(weights.size()));
  spec.mutable_sampler()->mutable_sgd();
  spec.mutable_learning_rate()->set_constant(0);
  spec.set_num_steps(1);
  spec.set_batch_size(1);
  return spec;
}

absl::Status Import(Invocation* run, const ImportOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<FileToSend> members, Members(options.weights));
  std::vector<std::string> names;
  for (size_t i = 0; i < members.size(); ++i) names.push_back(absl::StrCat(options.name, "-", i));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::JobSpec spec, ImportingJob(options, names));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  ExitOnInterrupt("\ninterrupted: no job was created; what is stored stays, repeat the command to go on\n");
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::StoredModel network, Send(run, &client, options.name, {options.model}));
  for (size_t i = 0; i < names.size(); ++i) {
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::StoredModel weights, Send(run, &client, names[i], members[i]));
    CHAINFLEET_RETURN_IF_ERROR(CheckHasParametersOnly(weights, network, members[i].path));
  }
  ExitOnInterrupt("\ninterrupted: `chainfleet get jobs` shows whether the job was created\n");
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client.CreateJob(request));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job done, FollowJob(&client, job.id(), run->timeout));
  PrintOne(std::cout, run->format, done, done.id(), [&] { return done.id() + "\n"; });
  return OutcomeOf(done);
}

}  // namespace

void AddImport(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* verb = AddVerb(
      program, run, "import", "Make a finished job of networks that were trained elsewhere: one draw for each file",
      "  chainfleet import ensemble --model net.pt2 --weights a.safetensors b.safetensors --dataset digits\n"
      "  chainfleet predict ensemble --input x.npy      # the average over the files",
      [=] { return Import(run, *options); });
  verb->add_option("NAME", options->name, "Name of the job and of the model; the weights are NAME-0, NAME-1, ...")
      ->required();
  verb->add_option("--model", options->model, "The network that torch.export.save wrote (.pt2)")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  verb->add_option(
          "--weights", options->weights,
          "A state_dict as safetensors for each network, or files of `export --format safetensors`: each draw is a "
          "network; up to 256")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("FILE...");
  verb->add_option("--dataset", options->dataset,
                   "A stored data set: shape and standardisation of the inputs, classes or units of the targets")
      ->required()
      ->option_text("NAME");
  verb->add_option("--likelihood", options->likelihood, "The likelihood of the outputs, as in a job file")
      ->option_text("KIND [{categorical: {}}]");
  verb->add_flag("--raw-inputs", options->raw_inputs, "The networks take inputs as stored, not standardised");
  verb->add_flag("--raw-targets", options->raw_targets, "The networks predict numbers in their own units");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
