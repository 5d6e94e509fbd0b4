// Processes that run users' TorchScript modules, one module each. Such a process has no token, no network and no files.
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "worker/numerics/models/module_memory.h"

namespace chainfleet {

// The only argument of a program that calls ServeModule.
inline constexpr char kServeModule[] = "--serve-module";

// A process and the memory that it shares with this one. Not thread-safe.
class ModuleProcess {
 public:
  static constexpr absl::Duration kPassTime = absl::Minutes(5);  // a module may never end

  // Starts `program`, without the token and other descriptors of this process. The process ends with the calling
  // thread. RESOURCE_EXHAUSTED: it cannot be started.
  static absl::StatusOr<std::unique_ptr<ModuleProcess>> Start(const std::string& program);
  // Kills the process.
  ~ModuleProcess();
  ModuleProcess(const ModuleProcess&) = delete;
  ModuleProcess& operator=(const ModuleProcess&) = delete;

  ModuleMemory& memory() { return *memory_; }
  bool alive() const { return pid_ > 0; }

  // Sends the message in the memory and waits for the answer. INVALID_ARGUMENT with a violation at model.torchscript:
  // the process refuses the module, ends by itself, or takes longer than `limit`, which kills it. RESOURCE_EXHAUSTED:
  // another one killed it, such as the kernel when memory is short. Throws c10::Error with the message of an exception
  // there.
  absl::StatusOr<ModuleReader> Call(absl::Duration limit = kPassTime);

 private:
  ModuleProcess(pid_t pid, int socket, std::unique_ptr<ModuleMemory> memory)
      : pid_(pid), socket_(socket), memory_(std::move(memory)) {}

  absl::Status WaitForAnswer(absl::Duration limit);
  absl::Status Reap();

  pid_t pid_;  // 0: it has ended
  const int socket_;
  const std::unique_ptr<ModuleMemory> memory_;
};

// The processes of a worker, several for a module that runs on several threads. Thread-safe.
class ModuleProcesses : public std::enable_shared_from_this<ModuleProcesses> {
 public:
  using File = std::shared_ptr<const std::string>;

  // The same bytes under another owner. A module may keep what it was given, so users of one tenant must not get a
  // process that another has used: each takes processes by a File of its own.
  static File OwnName(const File& file);

  // Gives a process back: it waits for the next user unless it has ended.
  struct Return {
    std::shared_ptr<ModuleProcesses> processes;
    std::weak_ptr<const std::string> file;
    void operator()(ModuleProcess* process) const;
  };
  using Lease = std::unique_ptr<ModuleProcess, Return>;

  // Keeps at most `most_idle` processes that nobody uses. `starter` runs its tasks on one thread, which must live as
  // long as the processes.
  ModuleProcesses(std::string program, size_t most_idle, Executor* starter)
      : program_(std::move(program)), most_idle_(most_idle), starter_(starter) {}

  // A process that has loaded `file`, and was used only by those who share its ownership. Takes about a second if none
  // is idle, at most a minute. INVALID_ARGUMENT: ScriptModule::Load refuses the file. RESOURCE_EXHAUSTED: no process
  // can be started. Errors of ModuleProcess::Call. Throws c10::Error if the process has an exception. Not for the
  // thread of `starter`.
  absl::StatusOr<Lease> Take(const File& file);

  // Ends the idle processes whose File has no owner any more.
  void EndUnused();

 private:
  struct Idle {
    std::unique_ptr<ModuleProcess> process;
    std::weak_ptr<const std::string> file;
  };

  std::unique_ptr<ModuleProcess> TakeIdle(const File& file);

  const std::string program_;
  const size_t most_idle_;
  Executor* const starter_;
  Mutex mutex_;
  std::list<Idle> idle_ CHAINFLEET_GUARDED_BY(mutex_);  // used last first
};

}  // namespace chainfleet
