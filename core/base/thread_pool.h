// The production Executor: a fixed number of threads and one timer heap. Only mains and end-to-end tests create one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/executor.h"

namespace chainfleet {

class ThreadPool final : public Executor {
 public:
  // `num_threads` >= 1.
  explicit ThreadPool(int num_threads);

  ~ThreadPool() override;

  // Runs due tasks, drops delayed and later tasks, and joins the threads. Idempotent.
  void Stop();

  // Logs and drops a task that throws std::bad_alloc.
  void Schedule(std::function<void()> task) override;
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Blocks the calling thread. Composition roots pass PauseThread to code that waits between two attempts.
void PauseThread(absl::Duration duration);

}  // namespace chainfleet
