// The data sets and models that tenants have stored, and the uploads that store them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/domain/stored_model.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_store.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/views.h"

namespace chainfleet {

// The stored items of one kind, by name. Only the Catalog changes them. Thread-safe.
template <typename Item>
class Shelf {
 public:
  // Errors: NOT_FOUND / DATASET_NOT_FOUND or MODEL_NOT_FOUND.
  absl::StatusOr<Item> Get(const std::string& name) const;
  // Returns items in order of name. INVALID_ARGUMENT: the page token belongs to another list.
  absl::StatusOr<Page<Item>> List(int32_t page_size, const std::string& page_token) const;
  // Returns the bytes of all objects of the tenant.
  int64_t StoredBytes(const std::string& tenant) const;

 private:
  friend class Catalog;
  void Put(const Item& item);
  void Erase(const std::string& name);

  mutable Mutex mutex_;
  std::map<std::string, Item> items_ CHAINFLEET_GUARDED_BY(mutex_);
};

// Thread-safe. The Catalog's lock is below the Dispatcher's: calls are allowed while the Dispatcher's lock is held.
class Catalog {
 public:
  // `state` is the state that the store loaded. `nonces` seeds the nonces: fresh random bits in production. The writer
  // outlives the catalog.
  Catalog(StateWriter* writer, const StateStore& store, const StoredState& state, RngKey nonces);

  const Shelf<Dataset>& datasets() const { return shelves_->datasets; }
  const Shelf<StoredModel>& models() const { return shelves_->models; }

  // Adds the data set and the module that the plan's spec names to the plan. NOT_FOUND as for Shelf::Get, with the
  // field of the spec.
  absl::Status FindData(JobPlan* plan) const;
  // Returns the bytes of the data sets and models of the tenant.
  int64_t StoredBytes(const std::string& tenant) const;

  // Returns a number that makes the names of one upload's objects unique.
  uint64_t ObjectNonce();
  // BeginUpload protects `objects`, which are not written yet, from the garbage collector and answers with the upload's
  // name. BeginRepair does so for the objects of a stored item whose content is uploaded again; ABORTED / BEING_DELETED
  // if that item was deleted. Both end with Put or EndUpload.
  void BeginUpload(std::vector<std::string> objects, const Reply<std::string>& done);
  void BeginRepair(std::vector<std::string> objects, const Reply<std::string>& done);
  void EndUpload(const std::string& upload);

  // Storing the same content under the same name again is OK. ALREADY_EXISTS for other content.
  void Put(const Dataset& dataset, const std::string& upload, const Reply<Dataset>& done);
  void Put(const StoredModel& model, const std::string& upload, const Reply<StoredModel>& done);
  // `tenant` as in change::DeleteDataset and change::DeleteModel.
  void DeleteDataset(const std::string& name, const Reply<bool>& done,
                     const std::optional<std::string>& tenant = std::nullopt);
  void DeleteModel(const std::string& name, const Reply<bool>& done,
                   const std::optional<std::string>& tenant = std::nullopt);

 private:
  // Shared with the callbacks of the writer.
  struct Shelves {
    Shelf<Dataset> datasets;
    Shelf<StoredModel> models;
  };
  void Begin(std::vector<std::string> objects, bool repairs, const Reply<std::string>& done);

  StateWriter* const writer_;
  const int64_t generation_;
  const RngKey nonces_;
  std::atomic<uint64_t> nonces_made_ = 0, uploads_begun_ = 0;
  const std::shared_ptr<Shelves> shelves_ = std::make_shared<Shelves>();
};

}  // namespace chainfleet
