// The tokens of the state store, which admins make and revoke while the server runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.h"
#include "core/domain/access_token.h"
#include "core/store/state_store/state_store.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/views.h"

namespace chainfleet {

// INVALID_ARGUMENT, naming the fields.
absl::Status CheckToken(const AccessToken& token);

// Thread-safe.
class AccessTokens {
 public:
  // `state` is the state that the store loaded. The pointers outlive the executor's last task.
  AccessTokens(Executor* executor, StateWriter* writer, const StoredState& state);

  // Stores a token, which is known when `done` runs; its created_at is set. REQUIRES: CheckToken accepts it.
  // ALREADY_EXISTS / TOKEN_EXISTS; RESOURCE_EXHAUSTED / TOO_MANY_TOKENS.
  void Add(const AccessToken& token, const Reply<AccessToken>& done);
  // Deletes the token with this id, which is unknown when `done` runs. `tenant`: only if the token is of this tenant.
  // NOT_FOUND / TOKEN_NOT_FOUND.
  void Revoke(const std::string& id, const std::optional<std::string>& tenant, const Reply<bool>& done);

  // Counts a worker process that joins by the token with this id, once; does nothing if the token's uses are not
  // limited or it is not stored. RESOURCE_EXHAUSTED / TOKEN_USED_UP.
  void Use(const std::string& id, const std::string& process, const Reply<bool>& done);

  // Also finds expired tokens. `begin`: the SHA-256 or the id. `tenant`: the only one whose token is found.
  std::optional<AccessToken> Find(const std::string& begin,
                                  const std::optional<std::string>& tenant = std::nullopt) const;
  // By id, with expired ones. `tenant`: those of this tenant. INVALID_ARGUMENT / BAD_PAGE_TOKEN.
  absl::StatusOr<Page<AccessToken>> List(const std::optional<std::string>& tenant, int32_t page_size,
                                         const std::string& page_token) const;
  // True if an admin's token of this tenant is valid at `now`.
  bool HasAdminOf(const std::string& tenant, absl::Time now) const;
  bool empty() const;

 private:
  struct Table {
    mutable Mutex mutex;
    std::map<std::string, AccessToken> by_sha256 CHAINFLEET_GUARDED_BY(mutex);
    // By SHA-256, the processes that were counted since this server started, because a repeated call counts once; false
    // until the count is stored.
    std::map<std::string, std::map<std::string, bool>> counted CHAINFLEET_GUARDED_BY(mutex);
  };

  Executor* const executor_;
  StateWriter* const writer_;
  const std::shared_ptr<Table> table_ = std::make_shared<Table>();  // shared with the changes under way
};

}  // namespace chainfleet
