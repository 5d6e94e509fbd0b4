// The file of a network that a user stored under a name: a .pt2 file, a TorchScript one, or the parameters of a network
// as safetensors; content-addressed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/draw.h"
#include "core/domain/network_signature.h"
#include "core/domain/tenant.h"

namespace chainfleet {

struct StoredModel {
  std::string name;
  BlobRef object;  // its SHA-256 distinguishes two models with the same name
  absl::Time created_at;
  std::string tenant = kDefaultTenant;             // the owner; not on the wire
  std::optional<NetworkSignature> signature = {};  // TorchScript files have none; parameters alone have no inputs
  std::vector<std::string> shared_with = {};       // as Dataset::shared_with
  bool is_weights() const { return signature && signature->inputs.empty(); }
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("object", self.object, Required());
    visit("created_at", self.created_at);
    visit("signature", self.signature);
    visit("shared_with", self.shared_with, IfAny());
  }
};

}  // namespace chainfleet
