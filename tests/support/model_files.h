// Files of networks as a worker keeps them.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "worker/numerics/models/model_file.h"

namespace chainfleet {

// REQUIRES: `bytes` are a network's file.
inline std::shared_ptr<const ModelFile> FileOf(std::string bytes) {
  auto file = ReadModelFile(std::make_shared<const std::string>(std::move(bytes)));
  CHAINFLEET_CHECK(file.ok()) << file.status().ToString();
  return *std::move(file);
}

// REQUIRES: `bytes` are a .pt2 file.
inline ExportedModel ExportedModelOf(std::string bytes) {
  return std::get<ExportedModel>(FileOf(std::move(bytes))->content);
}

}  // namespace chainfleet
