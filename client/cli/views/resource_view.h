// Tables of data sets, models, aliases, workers, tokens, callers and evaluations, and the names of all resources. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/access.pb.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

Table DatasetTable(const std::vector<v1::Dataset>& datasets);
Table ModelTable(const std::vector<v1::StoredModel>& models);
Table AliasTable(const std::vector<v1::Alias>& aliases);
Table WorkerTable(const std::vector<v1::Worker>& workers);
Table TokenTable(const std::vector<v1::Token>& tokens);
Table CallerTable(const v1::Caller& caller);
Table LimitTable(const v1::Caller& caller);  // the limits of the caller's tenant
Table OperationTable(const std::vector<v1::EvaluationOperation>& evaluations, absl::Time now);
Table TraceTable(const std::vector<v1::Traces>& traces);

// The name under which `get` and other verbs find the resource.
inline std::string NameOf(const v1::Job& job) { return job.id(); }
inline std::string NameOf(const v1::Dataset& dataset) { return dataset.name(); }
inline std::string NameOf(const v1::StoredModel& model) { return model.name(); }
inline std::string NameOf(const v1::Alias& alias) { return alias.name(); }
inline std::string NameOf(const v1::Worker& worker) { return worker.id(); }
inline std::string NameOf(const v1::Token& token) { return token.id(); }
inline std::string NameOf(const v1::EvaluationOperation& evaluation) { return evaluation.id(); }
inline std::string NameOf(const v1::SegmentRecord& record) { return record.segment().object().name(); }
inline std::string NameOf(const v1::Traces& traces) { return traces.quantity(); }
std::string NameOf(const v1::Snapshot& snapshot);
std::string NameOf(const v1::Chain& chain);

}  // namespace chainfleet
