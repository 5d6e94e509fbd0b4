#include "core/formats/torch_script.h"

#include "core/formats/zip.h"

namespace chainfleet {

absl::Status CheckTorchScript(const std::string& bytes) {
  bool tensors = false, code = false;
  CHAINFLEET_RETURN_IF_ERROR(ForEachZipMember(bytes, "TorchScript", [&](const std::string& name, const std::string&) {
    tensors |= name.ends_with("/data.pkl");
    code |= name.find("/code/") != std::string::npos;
    return absl::OkStatus();
  }));
  if (tensors && code) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string("not a TorchScript archive: it holds ") +
                                    (tensors ? "tensors without code" : "other members") +
                                    "; save the module with torch.jit.script(module).save(path)");
}

}  // namespace chainfleet
