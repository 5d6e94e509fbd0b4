#include "server/control/commit_check.h"

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

absl::Status CheckObjectName(const ProgressCommit& commit, const std::string& field, const std::string& name,
                             const std::string& expected) {
  // Check both: the expected name is built from the worker's chain and digest, which may be arbitrary.
  if (name == expected && ParseChainObjectName(name)) return absl::OkStatus();
  return InvalidFields(
      {{absl::StrCat(field, ".name"),
        absl::StrCat("\"", name, "\" is not what chain ", ToString(commit.chain), " may commit at lease epoch ",
                     commit.lease_epoch, ": put it as \"", expected, "\", then commit that")}});
}

}  // namespace

absl::Status CheckObjectNames(const ProgressCommit& commit, const std::string& store_incarnation) {
  if (commit.segment) {
    CHAINFLEET_RETURN_IF_ERROR(CheckObjectName(
        commit, "segment.object", commit.segment->object.name,
        SegmentObjectName(store_incarnation, commit.chain, commit.lease_epoch, commit.segment->digest)));
  }
  const ResumePoint& point = commit.resume_point;
  const std::string expected = ResumeObjectName(store_incarnation, commit.chain, commit.lease_epoch, point.sha256);
  if (point.object) {
    CHAINFLEET_RETURN_IF_ERROR(CheckObjectName(commit, "resume_point.object", point.object->name, expected));
  }
  if (!point.proof) return absl::OkStatus();
  return CheckObjectName(commit, "resume_point.proof", point.proof->name, expected);
}

absl::Status CheckContent(const ProgressCommit& commit, const std::string& store_incarnation) {
  CHAINFLEET_RETURN_IF_ERROR(CheckObjectNames(commit, store_incarnation));
  const ResumePoint& point = commit.resume_point;
  if (point.object && !point.inline_bytes.empty()) {
    return InvalidFields(
        {{"resume_point", absl::StrCat("chain ", ToString(commit.chain), " commits object \"", point.object->name,
                                       "\" and ", point.inline_bytes.size(), " bytes inline: send one of them")}});
  }
  if (point.object && point.object->sha256 != point.sha256) {
    return InvalidFields({{"resume_point.object.sha256",
                           absl::StrCat("chain ", ToString(commit.chain), " commits object \"", point.object->name,
                                        "\" with another digest than that of its resume point, ", point.sha256,
                                        ": send the digest of its bytes in both")}});
  }
  if (point.inline_bytes.empty() || Sha256Hex(point.inline_bytes) == point.sha256) return absl::OkStatus();
  return WithReason(absl::DataLossError(absl::StrCat(
                        "the ", point.inline_bytes.size(), " bytes that arrived as resume point of chain ",
                        ToString(commit.chain), " at step ", point.step, " do not match its SHA-256: send them again")),
                    "DIGEST_MISMATCH");
}

}  // namespace chainfleet
