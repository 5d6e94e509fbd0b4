#include "client/cli/verbs/replay.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/verbs/follow.h"
#include "core/base/random_bits.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {

void AddDigests(const CheckedSegment& segment, DrawDigests* digests) {
  int64_t index = segment.record.segment().first_index();
  for (const Draw& draw : segment.content.draws) {
    Sha256 digest;
    digest.UpdateInteger(draw.step);
    digest.Update(&draw.weight, sizeof draw.weight);
    for (const std::vector<float>& theta : draw.theta) digest.Update(theta.data(), theta.size() * sizeof(float));
    (*digests)[{segment.record.chain().index(), index++}] = digest.Hex();
  }
}

// The digests of the draws of job `replay` once it has succeeded.
absl::StatusOr<DrawDigests> DigestsOf(Client* client, v1::ListSegmentsRequest segments, const std::string& replay,
                                      absl::Duration timeout) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job done, FollowJob(client, replay, timeout));
  CHAINFLEET_RETURN_IF_ERROR(OutcomeOf(done));
  segments.set_job(replay);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::SegmentRecord> records, client->ListSegments(segments));
  DrawDigests digests;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(client, records, [&](const CheckedSegment& segment) {
    AddDigests(segment, &digests);
    return absl::OkStatus();
  }));
  return digests;
}

absl::Status Replay(Client* client, const v1::ListSegmentsRequest& asked, const DrawDigests& digests,
                    absl::Duration timeout) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(asked.job()));
  if (digests.empty()) return absl::FailedPreconditionError(absl::StrCat("job ", job.id(), " has no draws to replay"));
  v1::CreateJobRequest request;
  *request.mutable_spec() = job.spec();
  request.mutable_spec()->set_name("replay");
  request.mutable_spec()->clear_until();      // it depends on when draws arrive
  request.mutable_spec()->clear_retention();  // each draw is compared
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job replay, client->CreateJob(request));
  const absl::StatusOr<DrawDigests> read = DigestsOf(client, asked, replay.id(), timeout);
  if (!read.ok()) {
    (void)client->SetIntent(replay.id(), v1::Job::DELETE);
    return Annotate(read.status(), "the replay has no result");
  }
  const DrawDigests& replayed = *read;
  for (const auto& [draw, digest] : digests) {
    const auto it = replayed.find(draw);
    if (it != replayed.end() && it->second == digest) continue;
    return absl::DataLossError(absl::StrCat("chain ", job.id(), "/", draw.first, ", draw ", draw.second, ": job ",
                                            replay.id(), ", which has the same job file, ",
                                            it == replayed.end() ? "has no such draw" : "has another one"));
  }
  return client->SetIntent(replay.id(), v1::Job::DELETE).status();
}

}  // namespace chainfleet
