// Renders views of the Dispatcher as messages of jobs.proto.
#pragma once

#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/domain/version.h"
#include "server/control/event_log.h"
#include "server/control/trace_table.h"
#include "server/control/views.h"
#include "server/predict/evaluation/row_reader.h"

namespace chainfleet {

v1::Job RenderJob(const JobView& view);
v1::Job RenderListedJob(const ListedJob& job);

// Adds the diagnostics to `job`.
void RenderDiagnostics(const std::vector<Diagnostic>& diagnostics, v1::Job* job);

// `quantities`: all that are traced of the job.
v1::Traces RenderTraces(const std::string& quantity, const std::vector<TracedChain>& chains,
                        const std::vector<std::string>& quantities);

v1::ListEventsResponse RenderEvents(const std::vector<EventLog::Event>& events);

v1::DatasetRowValues RenderRows(const RowValues& rows);

// `aliases` are the aliases of the version's job.
v1::Snapshot RenderVersion(const Version& version, const std::vector<Alias>& aliases);
v1::Alias RenderAlias(const Alias& alias);

// Leaves out the shards.
v1::Dataset RenderDataset(const Dataset& dataset);

v1::Worker RenderWorker(const WorkerView& view, bool serving);

}  // namespace chainfleet
