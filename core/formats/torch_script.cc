#include "core/formats/torch_script.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

bool IsInName(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// True if `code` has `name` as a whole word anywhere, because code may call an operator through an alias.
bool Names(const std::string& code, const std::string& name) {
  for (size_t at = 0; (at = code.find(name, at)) != std::string::npos; at += name.size()) {
    const size_t end = at + name.size();
    if ((at == 0 || !IsInName(code[at - 1])) && (end == code.size() || !IsInName(code[end]))) return true;
  }
  return false;
}

absl::Status CheckCode(const std::string& member, const std::string& code) {
  // All operators of LibTorch that open files by name, as functions or as methods.
  for (const char* opens_files : {"save", "from_file"}) {
    if (!Names(code, opens_files)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(member, " names ", opens_files, ", which opens files: a module computes logits and nothing else"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTorchScript(const std::string& bytes) {
  bool tensors = false, code = false;
  const auto look = [&](const std::string& name, const std::string& content) -> absl::Status {
    const std::string folded = absl::AsciiStrToLower(name);  // LibTorch ignores the case of member names
    tensors |= folded.ends_with("/data.pkl");
    const bool is_code = folded.find("/code/") != std::string::npos;
    code |= is_code;
    return is_code && folded.ends_with(".py") ? CheckCode(name, content) : absl::OkStatus();
  };
  // Tensors are not compressed and code is small, so a valid archive unpacks to little more than its own size.
  constexpr int64_t kMoreBytes = 64 * limits::kMiB;
  const int64_t most = static_cast<int64_t>(bytes.size()) + kMoreBytes;
  CHAINFLEET_RETURN_IF_ERROR(ForEachZipMember(bytes, ".pt2 or TorchScript", look, most));
  if (tensors && code) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a .pt2 or TorchScript archive: it holds ",
                                                 tensors ? "tensors without code" : "other members",
                                                 "; save the network with torch.export.save"));
}

}  // namespace chainfleet
