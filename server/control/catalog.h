// The data sets and models that tenants have stored, and the uploads that store them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/domain/stored_model.h"
#include "core/domain/tenant.h"
#include "core/domain/wire_bytes.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_store.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/views.h"

namespace chainfleet {

class TenantReservation;

// For whom names are looked up.
struct Reader {
  std::string tenant = kDefaultTenant;
  bool all = false;  // an operator of the fleet, who may read and change what belongs to other tenants
};

// Returns the number of data sets or models that the item counts as. The server holds its record in memory, and a file
// of weights may list thousands of tensors.
template <typename Item>
int64_t ContentsOf(const Item& item) {
  return 1 + WireBytes(item) / limits::kContentRecordBytes;
}

// The data sets or models of a tenant.
struct ContentHoldings {
  int64_t contents = 0;  // by ContentsOf
  int64_t bytes = 0;     // bytes of all objects
};

// The stored items of one kind, of all tenants. Only the Catalog changes them. Thread-safe.
template <typename Item>
class Shelf {
 public:
  // A plain name is of the reader's tenant; OWNER/NAME may be shared with it. NOT_FOUND / DATASET_NOT_FOUND or
  // MODEL_NOT_FOUND, the same for what is not there and what the reader may not use.
  absl::StatusOr<Item> Get(const Reader& reader, const std::string& name) const;
  // As Get. PERMISSION_DENIED / NOT_OWNER: the reader may use the item, but not change it.
  absl::StatusOr<Item> GetOwn(const Reader& reader, const std::string& name) const;
  // Returns the items that the reader may use, as Shown, in order of ContentKey. INVALID_ARGUMENT: the page token
  // belongs to another list.
  absl::StatusOr<Page<Item>> List(const Reader& reader, int32_t page_size, const std::string& page_token) const;
  // Returns the item with the name that it has for the reader.
  static Item Shown(const Reader& reader, Item item);
  ContentHoldings HoldingsOf(const std::string& tenant) const;

 private:
  friend class Catalog;
  void Put(const Item& item);
  void Erase(const std::string& key);
  void EraseLocked(const std::string& key) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Item> items_ CHAINFLEET_GUARDED_BY(mutex_);                // by ContentKey
  std::map<std::string, ContentHoldings> holdings_ CHAINFLEET_GUARDED_BY(mutex_);  // by tenant
};

// Thread-safe. The Catalog's lock is below the Dispatcher's: calls are allowed while the Dispatcher's lock is held.
class Catalog {
 public:
  // `state` is the state that the store loaded. `nonces` seeds the nonces: fresh random bits in production. The writer
  // outlives the catalog.
  Catalog(StateWriter* writer, const StateStore& store, const StoredState& state, RngKey nonces);

  const Shelf<Dataset>& datasets() const { return shelves_->datasets; }
  const Shelf<StoredModel>& models() const { return shelves_->models; }

  // Adds the data set and the module that the plan's spec names to the plan of a tenant. NOT_FOUND as for Shelf::Get,
  // with the field of the spec.
  absl::Status FindData(const std::string& tenant, JobPlan* plan) const;
  // Returns the name of a model of the tenant that has this content, or else one that follows from the content.
  std::string NameOfContent(const std::string& tenant, const DigestHex& sha256) const;
  // Returns the holdings of both kinds.
  ContentHoldings HoldingsOf(const std::string& tenant) const;

  // Returns a number that makes the names of one upload's objects unique.
  uint64_t ObjectNonce();
  // BeginUpload protects `objects`, which are not written yet, from the garbage collector and answers with the upload's
  // name. BeginRepair does so for the objects of a stored item whose content is uploaded again; ABORTED / BEING_DELETED
  // if that item was deleted. Both end with Put or EndUpload.
  void BeginUpload(std::vector<std::string> objects, const Reply<std::string>& done);
  void BeginRepair(std::vector<std::string> objects, const Reply<std::string>& done);
  void EndUpload(const std::string& upload);

  // Storing the same content under the same name again is OK. ALREADY_EXISTS for other content. `room` is the upload's
  // reservation, or null; it ends as soon as HoldingsOf counts the content. After an error its holder ends it.
  void Put(const Dataset& dataset, const std::string& upload, const Reply<Dataset>& done,
           const std::shared_ptr<TenantReservation>& room = nullptr);
  void Put(const StoredModel& model, const std::string& upload, const Reply<StoredModel>& done,
           const std::shared_ptr<TenantReservation>& room = nullptr);
  // Errors as Shelf::GetOwn.
  void DeleteDataset(const Reader& reader, const std::string& name, const Reply<bool>& done);
  void DeleteModel(const Reader& reader, const std::string& name, const Reply<bool>& done);
  // The change's key and kind follow from the name. INVALID_ARGUMENT: no name of a tenant, or too many tenants.
  void ShareDataset(const Reader& reader, const std::string& name, change::ShareContent how,
                    const Reply<Dataset>& done);
  void ShareModel(const Reader& reader, const std::string& name, change::ShareContent how,
                  const Reply<StoredModel>& done);

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
