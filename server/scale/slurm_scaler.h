// Workers as Slurm jobs, through sbatch, squeue and scancel.
#pragma once

#include <string>
#include <vector>

#include "server/scale/command.h"
#include "server/scale/scaler.h"

namespace chainfleet {

// "chainfleet-" and the incarnation of the store.
std::string SlurmJobName(const std::string& store_incarnation);

// Jobs are known by their name: a coordinator that was started again, or took over, finds those of the one before it,
// and one whose store was restored from a backup those of the incarnations before. Their worker's id begins with
// "slurm-JOB-", as the batch script of deploy/slurm has it. Thread-compatible.
class SlurmScaler final : public Scaler {
 public:
  // `script` is what sbatch gets; `run` is where the three programs run, see SlurmEnvironment.
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
  std::string listed_names_;  // with commas between
  const std::string script_;
  const CommandRunner run_;
};

// What a worker is told by its environment, which Slurm keeps with the job.
struct SlurmWorkerSettings {
  std::string address;  // where the coordinators are, with commas between
  int32_t chain_slots = 0;
};

// The environment of the three programs and, through sbatch, of the workers: what programs and Slurm need of `ours`
// (NAME=VALUE) and what is meant for workers. Nothing else: `ours` holds the passwords of the stores.
std::vector<std::string> SlurmEnvironment(const std::vector<std::string>& ours, const SlurmWorkerSettings& settings);

}  // namespace chainfleet
