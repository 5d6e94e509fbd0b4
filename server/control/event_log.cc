#include "server/control/event_log.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

constexpr int64_t kOverheadBytes = sizeof(JobEvent) + 128;  // for an event, besides its text
constexpr int64_t kFieldBytes = 96;                         // for a field, besides its text

struct Render {
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(double v) const { return absl::StrCat(v); }
};

int64_t SizeOf(const JobEvent& event) {
  size_t bytes = event.message.size();
  for (const auto& [key, value] : event.fields) bytes += key.size() + value.size() + kFieldBytes;
  return static_cast<int64_t>(bytes) + kOverheadBytes;
}

}  // namespace

EventLog::EventLog(const Clock* clock, int64_t generation)
    : clock_(clock), started_(clock->Wall()), first_number_((generation << 32) + 1) {}

void EventLog::Open(const std::string& job, bool restored) {
  MutexLock lock(&mutex_);
  Entry& entry = jobs_[job];
  entry.restored = restored;
  entry.next = first_number_ + (restored ? 1 : 0);  // the first number is that of the event that After makes
}

void EventLog::Add(LogLevel level, const std::string& message, const std::vector<LogField>& fields) {
  auto event = std::make_shared<JobEvent>(JobEvent{.time = clock_->Wall(), .level = level, .message = message});
  std::string job;
  size_t room = static_cast<size_t>(limits::kMaxEventBytes) - message.size();
  for (const LogField& field : fields) {
    std::string value = std::visit(Render{}, field.value);
    if (value.empty()) continue;
    const std::string_view key = field.key;
    if (key == "job") {
      job = std::move(value);
    } else if (key == "chain") {
      event->chain = static_cast<int32_t>(std::get<int64_t>(field.value));
    } else if (key.size() < room) {
      value.resize(WholeCharacters(value, room - key.size()).size());
      room -= key.size() + value.size();
      event->fields.emplace(key, std::move(value));
    }
  }
  MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Entry& entry = found->second;
  event->number = entry.next++;
  Grow(&*found, SizeOf(*event));
  entry.events.push_back(std::move(event));
  if (entry.events.size() > static_cast<size_t>(limits::kMaxJobEvents)) DropOldest(&*found);
  while (bytes_ > limits::kEventsBytes) DropOldest(by_bytes_.rbegin()->second);
}

void EventLog::Close(const std::string& job) {
  MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Grow(&*found, -found->second.bytes);
  jobs_.erase(found);
}

void EventLog::DropOldest(Jobs::value_type* job) {
  Grow(job, -SizeOf(*job->second.events.front()));
  job->second.events.pop_front();
}

void EventLog::Grow(Jobs::value_type* job, int64_t bytes) {
  by_bytes_.erase({job->second.bytes, job});
  bytes_ += bytes;
  if ((job->second.bytes += bytes) > 0) by_bytes_.emplace(job->second.bytes, job);
}

std::vector<EventLog::Event> EventLog::After(const std::string& job, int64_t after) const {
  MutexLock lock(&mutex_);
  std::vector<Event> found;
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end()) return found;
  const auto& [events, next, bytes, restored] = entry->second;
  const int64_t oldest = events.empty() ? next : events.front()->number;
  if (after < oldest - 1 && oldest > first_number_) {
    const bool lost = restored && oldest == first_number_ + 1;
    auto gap = std::make_shared<JobEvent>(JobEvent{.number = oldest - 1, .message = "earlier events are not kept"});
    gap->time = lost || events.empty() ? started_ : events.front()->time;
    gap->fields["reason"] = lost ? "events are in memory only: this server began or took over at this time"
                                 : "only the newest events are kept";
    found.push_back(std::move(gap));
  }
  for (const Event& event : events) {
    if (event->number > after) found.push_back(event);
  }
  return found;
}

}  // namespace chainfleet
