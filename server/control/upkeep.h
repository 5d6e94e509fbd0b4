// Periodic work without a thread or a timer of its own.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/base/status.h"

namespace chainfleet {

// Runs `pass` on the executor after `first`, and then `interval` after the end of each pass, while `owner` is alive.
// Errors are logged under `name`, a literal. Neither they nor a std::bad_alloc of a pass end the repetition.
template <typename Owner>
void RunEvery(Executor* executor, absl::Duration first, absl::Duration interval, const char* name,
              std::weak_ptr<Owner> owner, std::function<absl::Status(std::type_identity_t<Owner>*)> pass) {
  executor->ScheduleAfter(first, [=, owner = std::move(owner), pass = std::move(pass)] {
    const std::shared_ptr<Owner> alive = owner.lock();
    if (alive == nullptr) return;
    const absl::Cleanup again = [&] { RunEvery(executor, interval, interval, name, owner, pass); };
    if (const absl::Status status = pass(alive.get()); !status.ok()) {
      Log(LogLevel::kWarning, name, {{"error", status.ToString()}});
    }
  });
}

}  // namespace chainfleet
