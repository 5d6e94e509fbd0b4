// Runs workers as Slurm jobs, through sbatch, squeue and scancel.
#pragma once

#include <string>
#include <vector>

#include "core/base/command.h"
#include "server/scale/scaler.h"

namespace chainfleet {

// "chainfleet-" followed by the incarnation of the store.
std::string SlurmJobName(const std::string& store_incarnation);

// Jobs are identified by their name. A coordinator that was restarted, or took over, finds the jobs of the one before
// it; one whose store was restored from a backup finds the jobs of former incarnations. The id of a worker begins with
// "slurm-JOB-", set by the batch script in deploy/slurm. Thread-compatible.
class SlurmScaler final : public Scaler {
 public:
  // `script` is given to sbatch. `run` runs the three programs with the environment of SlurmEnvironment.
  SlurmScaler(const std::string& store_incarnation, const std::vector<std::string>& former_incarnations,
              std::string script, CommandRunner run);

  std::string name() const override { return "Slurm"; }
  absl::StatusOr<std::vector<ClusterJob>> List() override;
  absl::StatusOr<std::string> Submit() override;
  absl::Status Withdraw(const std::string& job) override;
  absl::Status Drain(const std::string& job) override;
  absl::Status Kill(const std::string& job) override;

 private:
  const std::string job_name_;
  std::string listed_names_;  // comma-separated
  const std::string script_;
  const CommandRunner run_;
};

// Settings that a worker gets through its environment, which Slurm keeps with the job.
struct SlurmWorkerSettings {
  std::string address;  // addresses of the coordinators, comma-separated
  int32_t chain_slots = 0;
};

// The environment of the three programs and, through sbatch, of the workers: the variables of `ours` (NAME=VALUE) that
// programs, Slurm and workers need, and nothing else, because `ours` holds the passwords of the stores.
std::vector<std::string> SlurmEnvironment(const std::vector<std::string>& ours, const SlurmWorkerSettings& settings);

}  // namespace chainfleet
