// The parameters of a network in a file of their own: the state_dict of a PyTorch module, written by safetensors.
#pragma once

#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/network_signature.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {

// True if the file begins as safetensors do; its content may still be wrong.
bool IsSafetensors(const ByteSource& file);

// As ParseSafetensors. Also INVALID_ARGUMENT: the header is longer than 1 MiB, which is enough for some 8,000 tensors,
// or no tensor holds floating-point numbers.
absl::StatusOr<Safetensors> ReadWeights(const std::string& bytes);
// The same from the file's header alone. Every `data` is null.
absl::StatusOr<Safetensors> ReadWeightsHeader(const ByteSource& file);

// Returns the tensors' names, types ("float32", as PyTorch writes them) and shapes, in the order of their bytes.
std::vector<TensorSignature> SignaturesOf(const Safetensors& file);

// Returns how many draws a file of `chainfleet export --format safetensors` has, "theta/NAME" [draw, ...]; 0 for a
// state_dict. INVALID_ARGUMENT: its tensors of theta have different numbers of draws, or none.
absl::StatusOr<int64_t> NumDrawsIn(const std::vector<TensorSignature>& tensors);

// Returns the tensors of `kind` of one draw under their own names, without those that have too few draws.
Safetensors DrawIn(const Safetensors& file, DrawKind kind, int64_t draw);

}  // namespace chainfleet
