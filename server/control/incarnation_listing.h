// What the blob store has under one incarnation of the state store, by one listing however many chains there are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

struct IncarnationVisitor {
  // All that is there of a chain, at once.
  std::function<absl::Status(const ChainId& chain, const std::set<std::string>& objects)> chain;
  // Some objects of data sets and models, at most kListPage.
  std::function<absl::Status(const std::vector<std::string>& objects)> content;
};

// Calls `visitor` until it returns an error. Names of another form are passed over: they are not ours. Holds a page of
// the listing and the names of one chain. Blocks. Errors of the visitor and of BlobStore::ListPages.
absl::Status VisitIncarnation(const BlobStore& blobs, const std::string& incarnation,
                              const IncarnationVisitor& visitor);

}  // namespace chainfleet
