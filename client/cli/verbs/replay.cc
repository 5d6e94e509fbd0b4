#include "client/cli/verbs/replay.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/verbs/follow.h"
#include "client/lib/draw_reader.h"
#include "core/base/random_bits.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

using DrawDigests = std::map<std::pair<int32_t, int64_t>, DigestHex>;  // by chain and index of the draw

absl::StatusOr<DrawDigests> DigestsOf(Client* client, const std::vector<v1::SegmentRecord>& records) {
  DrawDigests digests;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(client, records, [&](const CheckedSegment& segment) {
    int64_t index = segment.record.segment().first_index();
    for (const Draw& draw : segment.content.draws) {
      Sha256 digest;
      digest.UpdateInteger(draw.step);
      digest.Update(&draw.weight, sizeof draw.weight);
      for (const std::vector<float>& theta : draw.theta) digest.Update(theta.data(), theta.size() * sizeof(float));
      digests[{segment.record.chain().index(), index++}] = digest.Hex();
    }
    return absl::OkStatus();
  }));
  return digests;
}

}  // namespace

absl::StatusOr<int64_t> Replay(Client* client, const std::string& name, const std::vector<v1::SegmentRecord>& records,
                               absl::Duration timeout) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(name));
  CHAINFLEET_ASSIGN_OR_RETURN(const DrawDigests digests, DigestsOf(client, records));
  if (digests.empty()) return absl::FailedPreconditionError(absl::StrCat("job ", job.id(), " has no draws to replay"));
  v1::CreateJobRequest request;
  *request.mutable_spec() = job.spec();
  request.mutable_spec()->set_name("replay");
  request.mutable_spec()->clear_until();      // it depends on when draws arrive
  request.mutable_spec()->clear_retention();  // each draw is compared
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job replay, client->CreateJob(request));
  const auto forget = [&] { return client->SetIntent(replay.id(), v1::Job::DELETE).status(); };
  if (replay.dataset_digest() != job.dataset_digest()) {
    CHAINFLEET_RETURN_IF_ERROR(forget());
    return absl::FailedPreconditionError(
        absl::StrCat("data set ", job.spec().dataset().name(), " has other content than when ", job.id(), " was made"));
  }
  CHAINFLEET_RETURN_IF_ERROR(FollowJob(client, replay.id(), timeout).status());
  v1::ListSegmentsRequest segments;
  segments.set_job(replay.id());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::SegmentRecord> replayed_records, client->ListSegments(segments));
  CHAINFLEET_ASSIGN_OR_RETURN(const DrawDigests replayed, DigestsOf(client, replayed_records));
  for (const auto& [draw, digest] : digests) {
    const auto it = replayed.find(draw);
    if (it != replayed.end() && it->second == digest) continue;
    return absl::DataLossError(absl::StrCat("chain ", job.id(), "/", draw.first, ", draw ", draw.second, ": job ",
                                            replay.id(), ", which has the same job file, ",
                                            it == replayed.end() ? "has no such draw" : "has another one"));
  }
  CHAINFLEET_RETURN_IF_ERROR(forget());
  return std::ssize(digests);
}

}  // namespace chainfleet
