// Renders jobs, chains and segments for people. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

// "fashion-emcmc-a1b2c3  RUNNING  42.3 %  812 steps/s  16 draws  ETA 1m20s"; rate and ETA while chains run. A line of
// more than `max_width` characters loses the parts that do not fit beside kLeastName characters of the id.
std::string ProgressLine(const v1::Job& job, size_t max_width = std::string::npos);

// Colours the states of jobs and chains in `line`, as on the dashboards: running blue, succeeded green, waiting grey,
// failed and diverged red.
std::string PaintStates(std::string line);

// `text` without ages and the width of columns, which change when nothing happens. To compare tables and records.
std::string WithoutAges(const std::string& text);

Table JobTable(const std::vector<v1::Job>& jobs, absl::Time now);
Table ChainTable(const v1::Job& job);
// The chains with a bar each, for `watch`.
Table ProgressTable(const v1::Job& job);
inline constexpr double kConverged = 1.01;  // R-hat must be below it (Vehtari et al. 2021)
// The R-hat to judge: +Inf if chains were compared but have no R-hat, as in the server's gauges and stop rules, because
// chains with NaN values do not agree. nullopt for a single chain, for a descriptive quantity and for a job of kind
// sbc.
std::optional<double> JudgedRhat(const v1::Job::Diagnostic& found);
// One row for each quantity at each point, deciding quantities first. '*' marks quantities that have not converged
// (R-hat not below 1.01). For a job of kind sbc: RankTable.
Table DiagnosticTable(const v1::Job& job);
// How to read the '*' of that table, one line or more; empty without a '*'. Chains of a network that disagree are
// expected, unless they have no R-hat at all.
std::string ExplainRhat(const v1::Job& job);
Table SegmentTable(const std::vector<v1::SegmentRecord>& segments);
Table SnapshotTable(const std::vector<v1::Snapshot>& snapshots, absl::Time now);

// "chains 0, 2 FAILED: out of memory; chain 1 DIVERGED: ..."; empty if no chain failed.
std::string WhyFailed(const v1::Job& job);

// Describes a job: state, progress, posterior, job file, chains, and the number of its versions.
std::string DescribeJob(const v1::Job& job, absl::Time now, std::optional<int64_t> versions = std::nullopt);

// "keeps the newest 50 draws of each chain ...".
std::string DescribeRetention(const v1::JobSpec::Retention& retention);

// "R-hat is below 1.01 and ESS above 400, or 1000 draws are committed".
std::string DescribeUntil(const v1::JobSpec::Until& until);

// Describes the sampled posterior: N, D, prior precision, temperature, h or alpha.
std::string DescribePosterior(const v1::Job& job);

// The estimated number of bytes of all draws.
std::string DescribeStored(const v1::Job& job);

// "45s", "3m20s", "2h05m", "4d06h".
std::string FormatAge(absl::Duration age);

}  // namespace chainfleet
