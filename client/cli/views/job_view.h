// Jobs, chains and segments as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

// "fashion-emcmc-a1b2c3  RUNNING  42.3 %  812 steps/s  16 draws  ETA 1m20s"; rate and ETA while chains run.
std::string ProgressLine(const v1::Job& job);

// `line` with the states of jobs and chains in it in their colors: running blue, succeeded green, waiting grey, failed
// and diverged red, as on the dashboards.
std::string PaintStates(std::string line);

Table JobTable(const std::vector<v1::Job>& jobs, absl::Time now);
Table ChainTable(const v1::Job& job);
inline constexpr double kConverged = 1.01;  // R-hat below it (Vehtari et al. 2021)
// +Inf where chains were compared and there is no R-hat, as the server's gauges and stop rules take it: values that are
// not numbers agree on nothing. Nothing for a single chain and for a quantity that decides nothing.
std::optional<double> JudgedRhat(const v1::Job::Diagnostic& found);
// A row for each quantity at each point, those that decide first; what does not count as converged (R-hat not below
// 1.01) has a '*'.
Table DiagnosticTable(const v1::Job& job);
Table SegmentTable(const std::vector<v1::SegmentRecord>& segments);
Table SnapshotTable(const std::vector<v1::Snapshot>& snapshots, absl::Time now);

// All of a job: state, progress, which posterior is sampled, the job file, its chains; and how many versions it has.
std::string DescribeJob(const v1::Job& job, absl::Time now, std::optional<int64_t> versions = std::nullopt);

// "keeps the newest 50 draws of each chain ...".
std::string DescribeRetention(const v1::JobSpec::Retention& retention);

// "R-hat is below 1.01 and ESS above 400, or 1000 draws are committed".
std::string DescribeUntil(const v1::JobSpec::Until& until);

// Which posterior is sampled: N, D, prior precision, temperature, h or alpha.
std::string DescribePosterior(const v1::Job& job);

// How many bytes of draws, estimated.
std::string DescribeStored(const v1::Job& job);

// "45s", "3m20s", "2h05m", "4d06h".
std::string FormatAge(absl::Duration age);

}  // namespace chainfleet
