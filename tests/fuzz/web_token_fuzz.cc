// libFuzzer target: tokens (JWT) as any caller may send them, and the key sets of an issuer.
//
// The input is header, claims and key set, each up to a line break: a token is made of them, so that the fuzzer need
// not learn base64. Without three lines, the input is the token itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/store/issuer_keys/key_set.h"

namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string Encoded(const std::string& bytes) {
  std::string text = absl::WebSafeBase64Escape(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> lines = absl::StrSplit(input, '\n');
  const bool in_parts = lines.size() >= 3;
  const auto token = chainfleet::ParseWebToken(
      in_parts ? absl::StrCat(Encoded(lines[0]), ".", Encoded(lines[1]), ".", Encoded(std::string(64, 'x'))) : input);
  if (!token.ok()) Require(absl::IsInvalidArgument(token.status()), "a refusal is INVALID_ARGUMENT");
  if (token.ok()) Require(!token->issuer.empty() && !token->subject.empty(), "a token has an issuer and a subject");
  if (!in_parts) return 0;
  const auto keys = chainfleet::KeySet::Parse(lines[2]);
  if (!keys.ok() || !token.ok()) return 0;
  Require(keys->Check(*token) != chainfleet::SignatureCheck::kValid, "no key signed this");
  return 0;
}
