// Tokens by which callers prove who they are, as the state store keeps them: without their secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/time/time.h"

namespace chainfleet {

// Names the rights of a token (server/rpc/auth.h). The values are stored: append, never renumber.
enum class Role { kWriter, kReader, kPredictor, kOperator, kAdmin, kWorker };
inline std::initializer_list<const char*> EnumNames(Role) {
  static constexpr std::initializer_list<const char*> kNames = {"writer",   "reader", "predictor",
                                                                "operator", "admin",  "worker"};
  return kNames;
}

struct AccessToken {
  std::string sha256;  // 64 lower-case hex digits, over the whole token
  std::string tenant;  // to which the holder belongs; a worker: whose chains it takes, or kEveryTenant
  Role role = Role::kWriter;
  bool puts_models = false;  // the holder may also store TorchScript files, which are programs
  std::string note;          // says what the token is for
  std::string created_by;    // id of the caller who created it
  absl::Time created_at;
  absl::Time expires_at;  // from then on, the token is refused
  int64_t max_uses = 0;   // workers that may join by it; 0: any number
  int64_t uses = 0;       // workers that have
  static void Fields(auto& self, auto&& visit) {
    visit("sha256", self.sha256);
    visit("tenant", self.tenant);
    visit("role", self.role);
    visit("puts_models", self.puts_models);
    visit("note", self.note);
    visit("created_by", self.created_by);
    visit("created", self.created_at);
    visit("expires", self.expires_at);
    visit("max_uses", self.max_uses);
    visit("uses", self.uses);
  }
  bool operator==(const AccessToken&) const = default;
};

// Names a token without telling anything that would help to guess it: the first digits of its SHA-256.
inline std::string TokenId(const std::string& sha256) { return sha256.substr(0, 12); }

}  // namespace chainfleet
