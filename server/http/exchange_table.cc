#include "server/http/exchange_table.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "server/http/http_limits.h"

namespace chainfleet {
namespace {

// The client has closed the connection. What it has sent after its request stays unread.
bool HasGone(int socket) {
  char byte;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace

void ExchangeTable::Enter(Key socket, Phase phase) { states_[socket] = {.phase = phase, .since = clock_->Monotonic()}; }

void ExchangeTable::AddReceiving(Key socket) {
  MutexLock lock(&mutex_);
  Enter(socket, Phase::kReceiving);
}

void ExchangeTable::Remove(Key socket) {
  MutexLock lock(&mutex_);
  states_.erase(socket);
  removed_.SignalAll();
}

bool ExchangeTable::BeginAnswer(Key socket) {
  MutexLock lock(&mutex_);
  if (is_stopping_) return false;
  ++answering_;
  Enter(socket, Phase::kAnswering);
  return true;
}

void ExchangeTable::KeepCancel(Key socket, std::function<void()> cancel) {
  {
    MutexLock lock(&mutex_);
    const auto state = states_.find(socket);
    if (state == states_.end() || state->second.phase != Phase::kAnswering) return;
    if (!is_stopping_) {
      state->second.cancel = std::move(cancel);
      return;
    }
  }
  cancel();  // CancelAll has run and did not see it
}

void ExchangeTable::EndAnswer(Key socket) {
  MutexLock lock(&mutex_);
  Enter(socket, Phase::kSending);
}

void ExchangeTable::CountAnswer() {
  MutexLock lock(&mutex_);
  if (--answering_ == 0) all_answered_.SignalAll();
}

void ExchangeTable::LookAtAll() {
  std::vector<std::function<void()>> cancels;
  {
    MutexLock lock(&mutex_);
    for (auto& [socket, state] : states_) {
      const absl::Duration age = clock_->Monotonic() - state.since;
      if (state.phase == Phase::kAnswering) {
        if (state.cancel && HasGone(socket)) cancels.push_back(std::exchange(state.cancel, nullptr));
      } else if (age > (state.phase == Phase::kReceiving ? limits::kHttpReceive : limits::kHttpSend)) {
        ::shutdown(socket, SHUT_RDWR);
      }
    }
  }
  for (const auto& cancel : cancels) cancel();
}

void ExchangeTable::CancelAll() {
  std::vector<std::function<void()>> cancels;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    for (const auto& [socket, state] : states_) cancels.push_back(state.cancel);
  }
  for (const auto& cancel : cancels) {
    if (cancel) cancel();
  }
  MutexLock lock(&mutex_);
  while (answering_ > 0) all_answered_.Wait(&mutex_);
  const auto is_unsent = [](const auto& entry) { return entry.second.phase != Phase::kReceiving; };
  while (std::ranges::any_of(states_, is_unsent) && !removed_.WaitWithTimeout(&mutex_, limits::kHttpFarewell)) {
  }
}

}  // namespace chainfleet
