#include "server/rpc/model_upload_call.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/spool_file.h"
#include "core/formats/exported_program.h"
#include "core/formats/torch_script.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "core/store/draw_codec/weights_file.h"
#include "core/wire/types_wire.h"
#include "server/intake/content_registration.h"

namespace chainfleet {
namespace {

TensorSignature SignatureOf(const ExportedSignature& batch) { return {batch.name, NameOf(batch.type), batch.shape}; }

NetworkSignature SignatureOf(const ExportedProgram& program) {
  NetworkSignature network{.torch_version = program.torch_version, .output = SignatureOf(program.output)};
  const auto signature_of = [](const ExportedTensor& tensor) {
    return TensorSignature{tensor.name, NameOf(tensor.type), tensor.shape};
  };
  for (const ExportedSignature& input : program.inputs) network.inputs.push_back(SignatureOf(input));
  for (const ExportedTensor& tensor : program.tensors) {
    if (tensor.is_parameter) network.parameters.push_back(signature_of(tensor));
  }
  network.has_dropout = program.has_dropout();
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

}  // namespace

struct ModelUploadCall::File {
  File(const UploadBudget* budget, const std::string& tenant) : share(budget, tenant) {}

  absl::Status Open(const std::string& folder) {
    absl::StatusOr<SpoolFile> made = SpoolFile::Make(folder);
    if (made.ok()) spool = *std::move(made);
    return AtServer(made.status());
  }
  absl::Status Add(std::string_view part) {
    CHAINFLEET_RETURN_IF_ERROR(share.Add(std::ssize(part)));
    sha256.Update(part.data(), part.size());
    const int64_t at = std::exchange(size_bytes, size_bytes + std::ssize(part));
    return AtServer(spool->Write(at, part.data(), std::ssize(part)));
  }
  ByteSource Content() const { return spool->Content(size_bytes); }

  UploadShare share;
  std::optional<SpoolFile> spool;  // none before the header
  int64_t size_bytes = 0;
  Sha256 sha256;
};

ModelUploadCall::ModelUploadCall(const ServiceParts& parts, const absl::StatusOr<Principal>& caller,
                                 v1::StoredModel* response)
    : parts_(parts),
      caller_(caller.value_or(Principal())),
      response_(response),
      file_(std::make_shared<File>(parts.upload_budget, parts.auth->wants_tokens() ? caller_.tenant : "")) {
  Begin(caller.status());
}

absl::Status ModelUploadCall::Take(const v1::PutModelRequest& message) {
  switch (message.part_case()) {
    case v1::PutModelRequest::kHeader:
      return TakeHeader(message.header());
    case v1::PutModelRequest::kData:
      if (name_.empty()) break;
      if (file_->size_bytes + std::ssize(message.data()) > announced_bytes_) {
        return absl::InvalidArgumentError(
            absl::StrCat("model ", name_, " has more bytes than its header's ", announced_bytes_));
      }
      return file_->Add(message.data());
    case v1::PutModelRequest::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the first message of PutModel must be the header, the others data");
}

absl::Status ModelUploadCall::TakeHeader(const v1::PutModelRequest::Header& header) {
  if (!name_.empty()) return absl::InvalidArgumentError("PutModel has a second header");
  CHAINFLEET_RETURN_IF_ERROR(CheckName("model", header.name()));
  if (header.size_bytes() > limits::kMaxModelBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "model ", header.name(), " is over the ", limits::kMaxModelBytes / limits::kMiB, " MiB that a file may have"));
  }
  if (!header.uri().empty()) {
    CHAINFLEET_RETURN_IF_ERROR(parts_.dataset_roots->Check(header.uri()));
    if (header.size_bytes() != 0)
      return absl::InvalidArgumentError(absl::StrCat(header.uri(), ": a file that is named by URI has size_bytes 0"));
  }
  name_ = header.name();
  uri_ = header.uri();
  announced_bytes_ = header.size_bytes();
  return file_->Open(parts_.data_directory);
}

absl::StatusOr<std::optional<NetworkSignature>> ModelUploadCall::ReadContent(const ServiceParts& parts,
                                                                             const Principal& caller,
                                                                             const ByteSource& file) {
  if (IsExportedProgram(file)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const ExportedProgram program, ReadExportedProgram(file));
    return SignatureOf(program);
  }
  if (IsSafetensors(file)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors weights, ReadWeightsHeader(file));
    return NetworkSignature{.parameters = SignaturesOf(weights)};
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckTorchScript(file));
  if (caller.may(kPutModels)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckModulesAllowed(parts));
    Log(LogLevel::kWarning, "TorchScript is deprecated: a later release takes files of torch.export.save only");
    return std::nullopt;
  }
  return WithReason(absl::PermissionDeniedError(
                        "the token does not allow TorchScript files, which are programs: export the network with "
                        "torch.export.save, or use a token that was made for models"),
                    "NOT_ALLOWED");
}

void ModelUploadCall::TakeEnd() {
  if (name_.empty() || file_->size_bytes != announced_bytes_) {
    return finisher()->Finish(
        absl::InvalidArgumentError(absl::StrCat("the upload of model ", name_, " broke off: ", file_->size_bytes,
                                                " of ", announced_bytes_, " bytes came; send it again")));
  }
  const auto take_in = [parts = parts_, caller = caller_, name = name_, uri = uri_, file = file_, finisher = finisher(),
                        response = response_] {
    const auto take = [&](std::string_view part) {
      return finisher->waits() ? file->Add(part) : absl::CancelledError("nobody waits for the model any more");
    };
    const auto admit = [](int64_t) { return absl::OkStatus(); };  // each part is, before it is kept
    const absl::Status fetched =
        uri.empty() ? absl::OkStatus() : parts.dataset_roots->Read(uri, limits::kMaxModelBytes, admit, take);
    if (!fetched.ok() || !finisher->waits()) return finisher->Finish(fetched);
    const absl::StatusOr<std::optional<NetworkSignature>> signature = ReadContent(parts, caller, file->Content());
    if (!signature.ok()) return finisher->Finish(Annotate(signature.status(), absl::StrCat("model ", name)));
    const int64_t size = file->size_bytes;
    const DigestHex sha256 = file->sha256.Hex();
    const std::string object = ModelObjectName(parts.state->incarnation(), sha256, parts.catalog->ObjectNonce());
    StoredModel model = {
        .name = name, .object = {object, size, sha256}, .tenant = caller.tenant, .signature = *signature};
    const absl::StatusOr<StoredModel> known = parts.catalog->models().Get({caller.tenant}, name);
    const bool repairs = known.ok() && known->object.sha256 == sha256;
    if (repairs) {
      model.object = known->object;
    } else if (const absl::Status room = parts.dispatcher->CheckTenantRoom(caller.tenant, size); !room.ok()) {
      return finisher->Finish(room);
    }
    Register(parts.executor, parts.catalog,
             {.objects = {model.object.name},
              .repairs = repairs,
              .store = [blobs = parts.blobs, object = model.object.name,
                        file] { return PutContentAddressed(blobs, object, file->Content()); },
              .put =
                  [model, finisher, response, catalog = parts.catalog](const std::string& upload) {
                    catalog->Put(model, upload, [finisher, response](absl::StatusOr<StoredModel> registered) {
                      finisher->Finish(registered.status(), [&] { *response = ToProto(*registered); });
                    });
                  },
              .fail = [finisher](const absl::Status& status) { finisher->Finish(status); }});
  };
  const auto run = [take_in, finisher = finisher()] { finisher->Run(take_in); };
  if (uri_.empty()) return parts_.executor->Schedule(run);
  if (const absl::Status status = parts_.dataset_reads->Schedule(run); !status.ok()) finisher()->Finish(status);
}

}  // namespace chainfleet
