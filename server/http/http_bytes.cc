#include "server/http/http_bytes.h"

#include "server/http/error_reply.h"

namespace chainfleet {

HttpShare::~HttpShare() {
  if (bytes_ == 0) return;
  const MutexLock lock(&budget_->mutex);
  budget_->held -= bytes_;
  const auto mine = budget_->of_host.find(host_);
  if ((mine->second -= bytes_) == 0) budget_->of_host.erase(mine);
}

bool HttpShare::Add(int64_t bytes) {
  if (bytes == 0) return true;
  {
    const MutexLock lock(&budget_->mutex);
    const auto mine = budget_->of_host.find(host_);
    const int64_t free = budget_->most - budget_->held;
    if (bytes <= (free - (mine == budget_->of_host.end() ? 0 : mine->second)) / 2) {
      budget_->of_host[host_] += bytes;
      budget_->held += bytes;
      bytes_ += bytes;
      return true;
    }
  }
  if (budget_->on_refused) budget_->on_refused(NoRoom());
  return false;
}

}  // namespace chainfleet
