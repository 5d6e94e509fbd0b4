// Lists the objects of one incarnation of the state store, with one listing for all chains.
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
  // Runs once for each chain, with all its objects.
  std::function<absl::Status(const ChainId& chain, const std::set<std::string>& objects)> chain;
  // Runs with some objects of data sets and models, at most kListPage.
  std::function<absl::Status(const std::vector<std::string>& objects)> content;
};

// Calls `visitor` until it returns an error. Objects with other names are skipped, because this program did not write
// them. Holds one page of the listing and the names of one chain. Blocks. Errors of the visitor and of
// BlobStore::ListPages.
absl::Status VisitIncarnation(const BlobStore& blobs, const std::string& incarnation,
                              const IncarnationVisitor& visitor);

}  // namespace chainfleet
