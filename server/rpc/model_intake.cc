#include "server/rpc/model_intake.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/percent.h"
#include "core/formats/exported_program.h"
#include "core/formats/torch_script.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/weights_file.h"
#include "server/intake/content_registration.h"

namespace chainfleet {
namespace {

TensorSignature SignatureOf(const ExportedSignature& batch) { return {batch.name, NameOf(batch.type), batch.shape}; }

NetworkSignature SignatureOf(const ExportedProgram& program) {
  NetworkSignature network{.torch_version = program.torch_version,
                           .output = SignatureOf(program.output),
                           .has_dropout = program.has_dropout(),
                           .activation_bytes_per_row = program.activation_bytes_per_row};
  const auto signature_of = [](const ExportedTensor& tensor) {
    return TensorSignature{tensor.name, NameOf(tensor.type), tensor.shape, tensor.activation_bytes_per_row};
  };
  for (const ExportedSignature& input : program.inputs) network.inputs.push_back(SignatureOf(input));
  for (const ExportedTensor& tensor : program.tensors) {
    if (tensor.is_parameter) network.parameters.push_back(signature_of(tensor));
  }
  for (const int32_t tensor : program.statistics) {
    network.statistics.push_back(signature_of(program.tensors[static_cast<size_t>(tensor)]));
  }
  return network;
}

// The error of a file on the server's disk.
absl::Status AtServer(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return WithReason(status, "DISK_FULL");
  return status.ok() ? status : WithReason(absl::UnavailableError(status.message()), kStoreFault);
}

// Returns the signature of a .pt2 or safetensors file. A TorchScript file, a program, has none.
absl::StatusOr<std::optional<NetworkSignature>> ReadContent(const ModelIntake& intake) {
  const ByteSource file = intake.file->Content();
  if (IsSafetensors(file)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors weights, ReadWeightsHeader(file));
    return NetworkSignature{.parameters = SignaturesOf(weights)};
  }
  if (intake.name.empty()) return absl::InvalidArgumentError(absl::StrCat(intake.uri, " is not a safetensors file"));
  if (IsExportedProgram(file)) {
    const auto admit = [&intake](int64_t bytes) { return intake.file->Admit(bytes); };
    CHAINFLEET_ASSIGN_OR_RETURN(const ExportedProgram program, ReadExportedProgram(file, admit));
    return SignatureOf(program);
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckTorchScript(file));
  if (intake.caller.may(kPutModels)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckModulesAllowed(intake.parts));
    Log(LogLevel::kWarning, "TorchScript is deprecated: a later release takes files of torch.export.save only");
    return std::nullopt;
  }
  return WithReason(absl::PermissionDeniedError(
                        "the token does not allow TorchScript files, which are programs: export the network with "
                        "torch.export.save, or use a token that was made for models"),
                    "NOT_ALLOWED");
}

absl::Status Fetch(const ModelIntake& intake) {
  const auto wanted = [&] {
    return intake.waits() ? absl::OkStatus() : absl::CancelledError("nobody waits for the model any more");
  };
  if (intake.uri.empty()) return wanted();
  const auto take = [&](std::string_view part) {
    CHAINFLEET_RETURN_IF_ERROR(wanted());
    return intake.file->Add(part);
  };
  const auto admit = [](int64_t) { return absl::OkStatus(); };  // each part is, before it is kept
  return intake.parts.dataset_roots->Read(intake.uri, limits::kMaxModelBytes, admit, take);
}

void Store(ModelIntake intake) {
  const ServiceParts& parts = intake.parts;
  const std::string& tenant = intake.caller.tenant;
  if (const absl::Status fetched = Fetch(intake); !fetched.ok()) return intake.done(fetched);
  const absl::StatusOr<std::optional<NetworkSignature>> signature = ReadContent(intake);
  if (!signature.ok()) {
    return intake.done(intake.name.empty() ? signature.status()
                                           : Annotate(signature.status(), absl::StrCat("model ", intake.name)));
  }
  const int64_t size = intake.file->size_bytes();
  const DigestHex sha256 = intake.file->Digest();
  if (intake.name.empty()) intake.name = parts.catalog->NameOfContent(tenant, sha256);
  const std::string object = ModelObjectName(parts.state->incarnation(), sha256, parts.catalog->ObjectNonce());
  StoredModel model = {
      .name = intake.name, .object = {object, size, sha256}, .tenant = tenant, .signature = *signature};
  const absl::StatusOr<StoredModel> known = parts.catalog->models().Get({tenant}, model.name);
  const bool repairs = known.ok() && known->object.sha256 == sha256;
  absl::StatusOr<std::shared_ptr<TenantReservation>> room = nullptr;
  if (repairs) {
    model.object = known->object;
  } else {
    room = parts.dispatcher->ReserveRoom(tenant, absl::StrCat("model ", model.name), size, ContentsOf(model));
  }
  if (!room.ok()) return intake.done(room.status());
  const auto finish = [room = *room, done = intake.done](absl::StatusOr<StoredModel> stored) {
    if (room != nullptr) room->Release();
    done(std::move(stored));
  };
  Register(parts.executor, parts.catalog,
           {.objects = {model.object.name},
            .repairs = repairs,
            .store = [blobs = parts.blobs, object = model.object.name,
                      file = intake.file] { return PutContentAddressed(blobs, object, file->Content()); },
            .put = [model, finish, room = *room,
                    catalog = parts.catalog](const std::string& upload) { catalog->Put(model, upload, finish, room); },
            .fail = finish});
}

// Stores the file of init.weights[i], if a URI names it, and those after it.
void StoreFrom(size_t i, const ModelIntake& like, JobSpec spec, const Reply<JobSpec>& done) {
  if (i == spec.init.weights.size()) return done(std::move(spec));
  const std::string uri = spec.init.weights[i];
  if (!IsUri(uri)) return StoreFrom(i + 1, like, std::move(spec), done);
  const auto next = [=](absl::StatusOr<StoredModel> stored) {
    const std::string field = absl::StrCat("init.weights[", i, "]");
    if (absl::IsInvalidArgument(stored.status()))
      return done(InvalidFields({{field, std::string(stored.status().message())}}));
    if (!stored.ok()) return done(Annotate(stored.status(), field));
    JobSpec named = spec;
    named.init.weights[i] = stored->name;
    StoreFrom(i + 1, like, std::move(named), done);
  };
  ModelIntake intake = like;
  intake.uri = uri;
  intake.file = std::make_shared<IncomingModel>(like.parts, like.caller.tenant);
  intake.done = next;
  absl::Status ready = like.parts.dataset_roots->Check(uri);
  if (ready.ok()) ready = intake.file->Open(like.parts.data_directory);
  if (!ready.ok()) return next(ready);
  TakeIn(std::move(intake));
}

}  // namespace

absl::Status IncomingModel::Open(const std::string& folder) {
  absl::StatusOr<SpoolFile> made = SpoolFile::Make(folder);
  if (made.ok()) spool_ = *std::move(made);
  return AtServer(made.status());
}

absl::Status IncomingModel::Add(std::string_view part) {
  CHAINFLEET_RETURN_IF_ERROR(share_.Add(std::ssize(part)));
  sha256_.Update(part.data(), part.size());
  const int64_t at = std::exchange(size_bytes_, size_bytes_ + std::ssize(part));
  return AtServer(spool_->Write(at, part.data(), std::ssize(part)));
}

void TakeIn(ModelIntake intake) {
  const auto run = [intake] {
    try {
      Store(intake);
    } catch (const std::bad_alloc&) {
      intake.done(absl::ResourceExhaustedError("the server has too little memory for this model: send less at once"));
    }
  };
  if (intake.uri.empty()) return intake.parts.executor->Schedule(run);
  const absl::Status status = intake.parts.dataset_reads->Schedule(intake.file->tenant(), run);
  if (!status.ok()) intake.done(status);
}

bool HasUris(const InitSpec& init) { return std::ranges::any_of(init.weights, IsUri); }

void StoreWeights(const ServiceParts& parts, const Principal& caller, const JobSpec& spec,
                  const std::function<bool()>& waits, const Reply<JobSpec>& done) {
  JobSpec named = spec;
  for (size_t i = 0; i < named.init.weights.size(); ++i) {
    if (IsUri(named.init.weights[i])) named.init.weights[i] = absl::StrCat("of-uri-", i);
  }
  // Do not read files for a job that would be refused.
  if (const absl::Status valid = InvalidFields(Validate(named)); !valid.ok()) return done(valid);
  StoreFrom(0, {.parts = parts, .caller = caller, .waits = waits}, spec, done);
}

}  // namespace chainfleet
