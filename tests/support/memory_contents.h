// The rows of tokens, data sets and models of a store in memory.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/domain/tenant.h"
#include "core/store/state_store/state_rows.h"

namespace chainfleet::memory {

template <typename Map, typename Key>
auto Find(const Map& map, const Key& key) -> std::optional<typename Map::mapped_type> {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

class Tokens : public StateRows {
 public:
  absl::StatusOr<std::optional<AccessToken>> FindToken(const std::string& sha256) override {
    const auto found = tokens.find(sha256);
    return found == tokens.end() ? std::nullopt : std::optional(found->second);
  }
  absl::StatusOr<int64_t> CountTokens(const std::optional<std::string>& tenant) override {
    return std::ranges::count_if(tokens, [&](const auto& token) { return !tenant || token.second.tenant == *tenant; });
  }
  absl::Status InsertToken(const AccessToken& token) override {
    tokens[token.sha256] = token;
    return absl::OkStatus();
  }
  absl::Status DeleteToken(const std::string& sha256) override {
    tokens.erase(sha256);
    return absl::OkStatus();
  }

  std::map<std::string, AccessToken> tokens;  // by SHA-256
};

class Contents : public Tokens {
 public:
  absl::StatusOr<std::optional<Dataset>> FindDataset(const std::string& key) override { return Find(datasets, key); }
  absl::Status InsertDataset(const Dataset& dataset) override {
    datasets[ContentKey(dataset)] = dataset;
    return absl::OkStatus();
  }
  absl::Status DeleteDataset(const std::string& key) override {
    datasets.erase(key);
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<StoredModel>> FindModel(const std::string& key) override { return Find(models, key); }
  absl::StatusOr<bool> HasModel(const StoredModel& model) override {
    const auto found = Find(models, ContentKey(model));
    return found && found->object.name == model.object.name;
  }
  absl::Status InsertModel(const StoredModel& model) override {
    models[ContentKey(model)] = model;
    return absl::OkStatus();
  }
  absl::Status DeleteModel(const std::string& key) override {
    models.erase(key);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsContent(const std::string& object) override {
    const auto has = [&](const auto& item) { return item.object.name == object; };
    return std::ranges::any_of(models, [&](const auto& entry) { return has(entry.second); }) ||
           std::ranges::any_of(datasets, [&](const auto& e) { return std::ranges::any_of(e.second.shards, has); });
  }

  std::map<std::string, Dataset> datasets;
  std::map<std::string, StoredModel> models;
};

}  // namespace chainfleet::memory
