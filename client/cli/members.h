// The files of networks that `chainfleet import` makes a job of, checked before anything is sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "core/base/status.h"

namespace chainfleet {

// The file of one chain: an export with its draws, or state_dicts, each of which is a draw.
struct MemberChain {
  std::vector<std::string> paths;
  bool stacked = false;  // state_dicts that are sent as draws
};

struct ImportedMembers {
  std::vector<MemberChain> chains;
  int64_t num_draws = 1;        // longest chain
  bool has_anchor = false;      // the draws have theta_a, too
  bool has_statistics = false;  // the network keeps statistics of batch norm with each draw
};

// Returns how many chains an import called `name` may have: the server bounds the names NAME-0, NAME-1, ... together.
size_t MostChains(const std::string& name);

// Reads `weights`, files or folders of `chainfleet export`, for the network in the .pt2 file `model`. More state_dicts
// than `most_chains` become chains of several draws. In training mode, batch norm of a state_dict is kept with its
// draw. INVALID_ARGUMENT, naming the file: it cannot be read, there are too many files, some chains lack theta_a, or a
// state_dict has another value of a buffer than the network.
absl::StatusOr<ImportedMembers> ReadMembers(const std::string& model, const std::vector<std::string>& weights,
                                            size_t most_chains);

// Returns the file to send, in memory only if it is stacked. INVALID_ARGUMENT: state_dicts have different tensors.
absl::StatusOr<FileToSend> FileOf(const MemberChain& chain);

}  // namespace chainfleet
