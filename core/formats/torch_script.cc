#include "core/formats/torch_script.h"

#include <algorithm>

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

absl::Status CheckTorchScript(const ByteSource& file) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ZipReader archive, ZipReader::Open(file, ".pt2 or TorchScript"));
  // Tensors are not compressed and code is small, so a valid archive unpacks to little more than its own size.
  constexpr int64_t kMoreBytes = 64 * limits::kMiB;
  int64_t left = file.size_bytes() + kMoreBytes;
  bool tensors = false, code = false;
  for (size_t i = 0; i < archive.names().size(); ++i) {  // by index, because two members may have the same name
    const std::string& name = archive.names()[i];
    const std::string folded = absl::AsciiStrToLower(name);  // LibTorch ignores the case of member names
    tensors |= folded.ends_with("/data.pkl");
    const bool is_code = folded.find("/code/") != std::string::npos;
    code |= is_code;
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, archive.SizeBytes(i));
    if (is_code && folded.ends_with(".py")) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::string content, archive.Read(i, std::min(left, kMoreBytes)));
      CHAINFLEET_RETURN_IF_ERROR(CheckCode(name, content));
    } else {
      CHAINFLEET_RETURN_IF_ERROR(archive.CheckContent(i, left));
    }
    left -= size;
  }
  if (tensors && code) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a .pt2 or TorchScript archive: it holds ",
                                                 tensors ? "tensors without code" : "other members",
                                                 "; save the network with torch.export.save"));
}

}  // namespace chainfleet
