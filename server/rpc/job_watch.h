// WatchJob: sends the job at once and after changes, at most once each interval, until the job is final or the client
// leaves. The last message has the diagnostics of all commits.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "server/control/dispatcher.h"
#include "server/rpc/final_findings.h"
#include "server/rpc/message_stream.h"

namespace chainfleet {

// `dispatcher`, `findings` and `executor` outlive the stream.
void WatchJobInto(const std::shared_ptr<StreamFeed<v1::Job>>& feed, Dispatcher* dispatcher, FinalFindings* findings,
                  Executor* executor, const std::string& name, absl::Duration min_interval);

}  // namespace chainfleet
