#include "server/rpc/model_upload_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
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
  for (const ExportedSignature& input : program.inputs) network.inputs.push_back(SignatureOf(input));
  for (const ExportedTensor& tensor : program.tensors) {
    if (tensor.is_parameter) network.parameters.push_back({tensor.name, NameOf(tensor.type), tensor.shape});
  }
  return network;
}

}  // namespace

ModelUploadCall::ModelUploadCall(const ServiceParts& parts, const absl::StatusOr<Principal>& caller,
                                 v1::StoredModel* response)
    : parts_(parts),
      caller_(caller.value_or(Principal())),
      response_(response),
      share_(std::make_shared<UploadShare>(parts.upload_budget)) {
  Begin(caller.status());
}

absl::Status ModelUploadCall::Take(const v1::PutModelRequest& message) {
  switch (message.part_case()) {
    case v1::PutModelRequest::kHeader:
      return TakeHeader(message.header());
    case v1::PutModelRequest::kData:
      if (name_.empty()) break;
      if (static_cast<int64_t>(bytes_->size() + message.data().size()) > announced_bytes_) {
        return absl::InvalidArgumentError(
            absl::StrCat("model ", name_, " has more bytes than its header's ", announced_bytes_));
      }
      CHAINFLEET_RETURN_IF_ERROR(share_->Add(static_cast<int64_t>(message.data().size())));
      *bytes_ += message.data();
      return absl::OkStatus();
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
  name_ = header.name();
  announced_bytes_ = header.size_bytes();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<NetworkSignature>> ModelUploadCall::ReadContent(const ServiceParts& parts,
                                                                             const Principal& caller,
                                                                             const std::string& bytes) {
  if (IsExportedProgram(bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const ExportedProgram program, ReadExportedProgram(bytes));
    return SignatureOf(program);
  }
  if (IsSafetensors(bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors weights, ReadWeights(bytes));
    return NetworkSignature{.parameters = SignaturesOf(weights)};
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckTorchScript(bytes));
  if (caller.may(kPutModels)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckModulesAllowed(parts));
    return std::nullopt;
  }
  return WithReason(absl::PermissionDeniedError(
                        "the token does not allow TorchScript files, which are programs: export the network with "
                        "torch.export.save, or use a token with the word `models` in the server's token file"),
                    "NOT_ALLOWED");
}

void ModelUploadCall::TakeEnd() {
  if (name_.empty() || static_cast<int64_t>(bytes_->size()) != announced_bytes_) {
    return finisher()->Finish(
        absl::InvalidArgumentError(absl::StrCat("the upload of model ", name_, " broke off: ", bytes_->size(), " of ",
                                                announced_bytes_, " bytes came; send it again")));
  }
  const auto take_in = [parts = parts_, caller = caller_, name = name_, bytes = bytes_, share = share_,
                        finisher = finisher(), response = response_] {
    if (!finisher->waits()) return;
    const absl::StatusOr<std::optional<NetworkSignature>> signature = ReadContent(parts, caller, *bytes);
    if (!signature.ok()) return finisher->Finish(Annotate(signature.status(), absl::StrCat("model ", name)));
    const DigestHex sha256 = Sha256Hex(*bytes);
    const std::string object = ModelObjectName(parts.state->incarnation(), sha256, parts.catalog->ObjectNonce());
    const auto size = static_cast<int64_t>(bytes->size());
    StoredModel model = {
        .name = name, .object = {object, size, sha256}, .tenant = caller.tenant, .signature = *signature};
    const absl::StatusOr<StoredModel> known = parts.catalog->models().Get(name);
    const bool repairs = known.ok() && known->object.sha256 == sha256;
    if (repairs) {
      model.object = known->object;
    } else if (const absl::Status room = parts.dispatcher->CheckTenantRoom(caller.tenant, size); !room.ok()) {
      return finisher->Finish(room);
    }
    Register(parts.executor, parts.catalog,
             {.objects = {model.object.name},
              .repairs = repairs,
              .store = [blobs = parts.blobs, object = model.object.name, bytes,
                        share] { return PutContentAddressed(blobs, object, *bytes); },
              .put =
                  [model, finisher, response, catalog = parts.catalog](const std::string& upload) {
                    catalog->Put(model, upload, [finisher, response](absl::StatusOr<StoredModel> registered) {
                      finisher->Finish(registered.status(), [&] { *response = ToProto(*registered); });
                    });
                  },
              .fail = [finisher](const absl::Status& status) { finisher->Finish(status); }});
  };
  parts_.executor->Schedule([take_in, finisher = finisher()] { finisher->Run(take_in); });
}

}  // namespace chainfleet
