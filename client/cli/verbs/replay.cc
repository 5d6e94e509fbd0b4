#include "client/cli/verbs/replay.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/terminal.h"
#include "client/cli/views/job_view.h"
#include "core/base/random_bits.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(500);

using DrawCounts = std::map<int32_t, int64_t>;  // by chain

// The number of draws that each chain must have to have those of `digests`.
DrawCounts CountsUpTo(const DrawDigests& digests) {
  DrawCounts counts;
  for (const auto& [draw, digest] : digests) counts[draw.first] = draw.second + 1;
  return counts;
}

absl::Status Interrupted() {
  return WithReason(absl::CancelledError("the replay was interrupted"), kInterruptedReason);
}

struct CopyProgress {
  int64_t draws = 0, wanted = 0, steps = 0;
  bool done = true;      // each chain has its draws, or has ended
  absl::Status failure;  // says which chain ended without its draws, and did not succeed
};

CopyProgress ProgressOf(const v1::Job& copy, const DrawCounts& wanted) {
  CopyProgress progress;
  for (const auto& [index, count] : wanted) {
    progress.wanted += count;
    if (index >= copy.chains_size()) continue;
    const v1::Chain& chain = copy.chains(index);
    progress.draws += std::min(chain.num_draws(), count);
    progress.steps += chain.step();
    if (chain.num_draws() >= count || chain.state() == v1::SUCCEEDED) continue;
    if (chain.state() == v1::PENDING || chain.state() == v1::LEASED) {
      progress.done = false;
      continue;
    }
    progress.failure = absl::AbortedError(
        absl::StrCat("chain ", copy.id(), "/", index, " ended ", v1::ChainState_Name(chain.state()), " with ",
                     chain.num_draws(), " of ", count, " draws", chain.reason().empty() ? "" : ": ", chain.reason()));
  }
  return progress;
}

// Waits until each chain of the copy has its draws, or has succeeded with fewer because the copy differs. ABORTED:
// another chain ended without its draws.
absl::Status AwaitDraws(const Invocation& run, Client* client, const std::string& id, const DrawCounts& wanted) {
  const absl::Duration end = run.clock.Monotonic() + run.timeout;
  LiveText text(stderr);
  std::string shown;
  for (;; absl::SleepFor(kBetweenLooks)) {
    if (IsInterrupted()) return Interrupted();
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job copy, client->GetJob(id));
    const CopyProgress progress = ProgressOf(copy, wanted);
    const std::string line = absl::StrCat(id, "  ", v1::Job::State_Name(copy.state()), "  ", progress.draws, " of ",
                                          progress.wanted, " draws  ", progress.steps, " steps");
    text.Show(line, PaintStates);
    const std::string stage = absl::StrCat(copy.state(), " ", 10 * progress.draws / progress.wanted);
    if (!text.live() && stage != shown) std::fprintf(stderr, "%s\n", line.c_str());
    shown = stage;
    if (progress.done || !progress.failure.ok()) return progress.failure;
    if (run.clock.Monotonic() >= end) {
      return absl::DeadlineExceededError(absl::StrCat("the copy has ", progress.draws, " of ", progress.wanted,
                                                      " draws after ", absl::FormatDuration(run.timeout)));
    }
  }
}

// Servers of release 0.1.0 ignore `only_chain`. The copy would then stop before the chain has its draws.
absl::Status CheckSamplesOnly(const v1::CreateJobRequest& request, const v1::Job& copy) {
  const bool samples_others = std::ranges::any_of(copy.chains(), [&](const v1::Chain& chain) {
    return chain.id().index() != request.only_chain() && chain.state() != v1::CANCELLED;
  });
  if (!request.has_only_chain() || !samples_others) return absl::OkStatus();
  return absl::FailedPreconditionError("the server is of an older release and cannot sample one chain: upgrade it");
}

// The digests of all wanted draws that the copy has, and of some later ones.
absl::StatusOr<DrawDigests> DigestsOf(const Invocation& run, Client* client, const std::string& id,
                                      const DrawCounts& wanted) {
  CHAINFLEET_RETURN_IF_ERROR(AwaitDraws(run, client, id, wanted));
  (void)client->SetIntent(id, v1::Job::CANCEL);  // saves work; refused if the copy has ended
  v1::ListSegmentsRequest request;
  request.set_job(id);
  if (wanted.size() == 1) request.set_chain(wanted.begin()->first);
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<v1::SegmentRecord> records, client->ListSegments(request));
  std::erase_if(records, [&](const v1::SegmentRecord& record) {
    const auto count = wanted.find(record.chain().index());
    return count == wanted.end() || record.segment().first_index() >= count->second;
  });
  DrawDigests digests;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(client, records, [&](const CheckedSegment& segment) {
    if (IsInterrupted()) return Interrupted();
    AddDigests(segment, {}, &digests);
    return absl::OkStatus();
  }));
  return digests;
}

absl::Status FirstDifference(const std::string& job, const DrawDigests& digests, const std::string& copy,
                             const DrawDigests& replayed) {
  for (const auto& [draw, digest] : digests) {
    const auto it = replayed.find(draw);
    if (it != replayed.end() && it->second == digest) continue;
    return absl::DataLossError(absl::StrCat("chain ", job, "/", draw.first, ", draw ", draw.second, ": job ", copy,
                                            ", a copy of ", job, ", ",
                                            it == replayed.end() ? "has no such draw" : "has another one"));
  }
  return absl::OkStatus();
}

// `status` of a replay after the deletion of its copy.
absl::Status Delete(Client* client, const std::string& copy, const absl::Status& status) {
  const absl::Status deleted = client->SetIntent(copy, v1::Job::DELETE).status();
  if (deleted.ok() || absl::IsNotFound(deleted)) return status;
  return Annotate(status.ok() ? deleted : status,
                  absl::StrCat("delete job ", copy, ", the copy, which could not be deleted"));
}

}  // namespace

void AddDigests(const CheckedSegment& segment, const DrawRange& range, DrawDigests* digests) {
  int64_t index = segment.record.segment().first_index();
  for (const Draw& draw : segment.content.draws) {
    const int64_t own = index++;
    if (own < range.first || own > range.last) continue;
    Sha256 digest;
    digest.UpdateInteger(draw.step);
    digest.Update(&draw.weight, sizeof draw.weight);
    for (const std::vector<float>& theta : draw.theta) digest.Update(theta.data(), theta.size() * sizeof(float));
    (*digests)[{segment.record.chain().index(), own}] = digest.Hex();
  }
}

v1::CreateJobRequest CopyRequest(const v1::Job& job, const DrawDigests& digests) {
  v1::CreateJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec = job.spec();
  spec.set_name("replay");
  spec.clear_until();                                                            // `until` depends on when draws arrive
  spec.clear_retention();                                                        // each draw is compared
  if (spec.has_scheduling()) spec.mutable_scheduling()->clear_success_chains();  // it ends chains before their draws
  if (const DrawCounts counts = CountsUpTo(digests); counts.size() == 1) {
    request.set_only_chain(counts.begin()->first);
    spec.mutable_until()->set_max_draws(counts.begin()->second);
  }
  return request;
}

absl::Status Replay(const Invocation& run, Client* client, const v1::Job& job, const DrawDigests& digests) {
  v1::CreateJobRequest request = CopyRequest(job, digests);
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  NoteInterrupt("\ndeleting the copy; Ctrl-C again stops at once\n",
                "\ninterrupted before the copy was deleted: `chainfleet get jobs` lists it as replay-...\n");
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job copy, client->CreateJob(request));
  const absl::Status supported = CheckSamplesOnly(request, copy);
  if (!supported.ok()) return Delete(client, copy.id(), supported);
  const absl::StatusOr<DrawDigests> replayed = DigestsOf(run, client, copy.id(), CountsUpTo(digests));
  if (!replayed.ok()) {
    return Delete(client, copy.id(), Annotate(replayed.status(), "the replay has no result"));
  }
  CHAINFLEET_RETURN_IF_ERROR(FirstDifference(job.id(), digests, copy.id(), *replayed));
  return Delete(client, copy.id(), absl::OkStatus());
}

}  // namespace chainfleet
