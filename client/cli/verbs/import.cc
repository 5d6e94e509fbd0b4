#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_file.h"
#include "client/cli/members.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

constexpr double kNoMove = 1e-30;  // only chains of sgd may have a learning rate of 0; draws come from the file

struct ImportOptions {
  std::string name, model, dataset, likelihood = "{categorical: {}}";
  std::vector<std::string> weights, sample;
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

// Deletes what an import that failed has stored.
class Undo {
 public:
  Undo(Client* client, const std::vector<v1::StoredModel>& known) : client_(client) {
    for (const v1::StoredModel& model : known) known_.insert(model.name());
  }
  void Stored(const std::string& name) {
    if (!known_.contains(name)) stored_.push_back(name);
  }
  // Without an answer the job may have been created.
  absl::Status Because(const absl::Status& failed) {
    if (absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) return failed;
    for (const std::string& name : stored_) {
      if (const absl::Status deleted = client_->DeleteModel(name); !deleted.ok()) {
        std::cerr << "warning: model " << name << " stays: " << deleted.message() << "; `chainfleet delete model "
                  << name << "` deletes it\n";
      }
    }
    return failed;
  }

 private:
  Client* client_;
  std::set<std::string> known_;
  std::vector<std::string> stored_;
};

// A job of one chain for each file. Its steps make one draw of the file each.
absl::StatusOr<v1::JobSpec> ImportingJob(const ImportOptions& options, const ImportedMembers& members) {
  CHAINFLEET_ASSIGN_OR_RETURN(const JobFile file,
                              ParseJobFile("--likelihood", absl::StrCat("likelihood: ", options.likelihood)));
  v1::JobSpec spec = file.spec;
  spec.set_name(options.name);
  spec.mutable_model()->set_exported(options.name);
  spec.mutable_dataset()->set_name(options.dataset);
  spec.mutable_standardize()->set_inputs(!options.raw_inputs);
  spec.mutable_standardize()->set_targets(!options.raw_targets);
  for (const std::string& pattern : options.sample) spec.add_sample(pattern);
  for (size_t i = 0; i < members.chains.size(); ++i) {
    spec.mutable_init()->add_weights(absl::StrCat(options.name, "-", i));
  }
  spec.set_chains(static_cast<int32_t>(members.chains.size()));
  if (members.has_anchor) {
    spec.mutable_sampler()->mutable_emcmc();
  } else {
    spec.mutable_sampler()->mutable_sgd();
  }
  spec.mutable_learning_rate()->set_constant(members.has_anchor ? kNoMove : 0);
  spec.set_num_steps(members.num_draws);
  spec.set_batch_size(members.has_statistics ? 2 : 1);  // batch norm has no variance of one row
  return spec;
}

absl::StatusOr<v1::Job> StoreAndCreate(Invocation* run, Client* client, const ImportOptions& options,
                                       const ImportedMembers& members, const v1::JobSpec& spec) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::StoredModel> known, client->ListModels());
  Undo undo(client, known);
  const auto store = [&](const std::string& name, const absl::StatusOr<FileToSend>& file) -> absl::Status {
    CHAINFLEET_RETURN_IF_ERROR(file.status());
    CHAINFLEET_RETURN_IF_ERROR(Send(run, client, name, *file).status());
    undo.Stored(name);
    return absl::OkStatus();
  };
  absl::Status stored = store(options.name, FileToSend{options.model});
  for (size_t i = 0; i < members.chains.size() && stored.ok(); ++i) {
    stored = store(spec.init().weights(static_cast<int>(i)), FileOf(members.chains[i]));
  }
  if (!stored.ok()) return undo.Because(stored);
  ExitOnInterrupt("\ninterrupted: `chainfleet get jobs` shows whether the job was created\n");
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  absl::StatusOr<v1::Job> job = client->CreateJob(request);
  return job.ok() ? job : undo.Because(job.status());
}

absl::Status Import(Invocation* run, const ImportOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ImportedMembers members,
                              ReadMembers(options.model, options.weights, MostChains(options.name)));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::JobSpec spec, ImportingJob(options, members));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  ExitOnInterrupt("\ninterrupted: no job was created; what is stored stays, repeat the command to go on\n");
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, StoreAndCreate(run, &client, options, members, spec));
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
          "A state_dict as safetensors for each network, or the folder or files of `export --format safetensors`, each "
          "a chain with its draws; up to 4096 files")
      ->required()
      ->check(CLI::ExistingPath)
      ->option_text("PATH...");
  verb->add_option("--dataset", options->dataset,
                   "A stored data set: shape and standardisation of the inputs, classes or units of the targets")
      ->required()
      ->option_text("NAME");
  verb->add_option("--likelihood", options->likelihood, "The likelihood of the outputs, as in a job file")
      ->option_text("KIND [{categorical: {}}]");
  verb->add_option("--sample", options->sample, "The parameters in --weights, if not all: names, * for any characters")
      ->option_text("PATTERN...");
  verb->add_flag("--raw-inputs", options->raw_inputs, "The networks take inputs as stored, not standardised");
  verb->add_flag("--raw-targets", options->raw_targets, "The networks predict numbers in their own units");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
