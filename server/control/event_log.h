// Events of jobs, for the people who run them: the newest ones of each job, in memory only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace chainfleet {

struct JobEvent {
  int64_t number = 0;
  absl::Time time;
  LogLevel level = LogLevel::kInfo;
  std::string message;
  std::optional<int32_t> chain;
  std::map<std::string, std::string> fields;
};

// Thread-safe. Neither logs nor blocks, so the dispatcher adds events under its lock, in their order.
//
// Bounds: limits::kMaxJobEvents of a job, limits::kMaxEventBytes of text in an event, limits::kEventsBytes in all. Each
// bound drops the oldest events; the last one those of the job with the most bytes.
class EventLog {
 public:
  using Event = std::shared_ptr<const JobEvent>;

  // `generation` rises with each start of a server, so that the numbers of a job's events do, too.
  EventLog(const Clock* clock, int64_t generation);

  // Begins the log of a job. `restored`: an earlier process had earlier events.
  void Open(const std::string& job, bool restored);
  // Adds an event of the job in `fields` ("job"; also "chain"), with the other fields that are not empty. Does nothing
  // if the log of this job is not open.
  void Add(LogLevel level, const std::string& message, const std::vector<LogField>& fields);
  void Close(const std::string& job);

  // Returns the events whose number is above `after`, oldest first. If some of these are not kept, the first event says
  // so.
  std::vector<Event> After(const std::string& job, int64_t after) const;

 private:
  struct Entry {
    std::deque<Event> events;
    int64_t next = 0;
    int64_t bytes = 0;
    bool restored = false;
  };
  using Jobs = std::map<std::string, Entry>;

  void DropOldest(Jobs::value_type* job) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grow(Jobs::value_type* job, int64_t bytes) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const absl::Time started_;
  const int64_t first_number_;
  mutable Mutex mutex_;
  Jobs jobs_ CHAINFLEET_GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, Jobs::value_type*>> by_bytes_ CHAINFLEET_GUARDED_BY(mutex_);
  int64_t bytes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
};

}  // namespace chainfleet
