// Tokens of a test's server.
#pragma once

#include <string>
#include <vector>

#include "core/store/draw_codec/sha256.h"
#include "server/rpc/auth.h"

namespace chainfleet {

struct GivenToken {
  std::string token, tenant;
  Role role = Role::kWriter;
  unsigned more = 0;  // rights besides those of the role
};
using GivenTokens = std::vector<GivenToken>;

inline TokenTable TableOf(const GivenTokens& given) {
  TokenTable table;
  for (const GivenToken& one : given) {
    table[Sha256Hex(one.token)] = {TokenId(Sha256Hex(one.token)), one.tenant, RightsOf(one.role, one.tenant) | one.more};
  }
  return table;
}

}  // namespace chainfleet
