#include "core/domain/draw.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

bool IsDigest(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

absl::StatusOr<DrawKind> DrawKindFromString(const std::string& text) {
  if (const auto kind = EnumFromName<DrawKind>(text)) return *kind;
  return absl::InvalidArgumentError(absl::StrCat("unknown kind \"", text, "\": use theta or theta_a"));
}

std::string SignedText(const ResumePoint& point) {
  return absl::StrCat("chainfleet resume point\n", point.proof->name, "\n", point.step, "\n", point.proof->last_digest,
                      point.proof->with_draws ? "\ndraws" : "");
}

absl::Status CheckResumePoint(int64_t step, const std::optional<ResumePoint>& point, const DigestHex& sha256) {
  const auto wrong = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat("the resume point ", what, ", the chain is at step ", step,
                                            ": restore the state store from a backup, or submit the job again"));
  };
  if (!point) return step == 0 ? absl::OkStatus() : wrong("is missing");
  if (point->step != step) return wrong(absl::StrCat("is of step ", point->step));
  return point->sha256 == sha256 ? absl::OkStatus() : wrong("does not match its digest");
}

absl::Status CheckSegment(const Segment& segment) {
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("segment at draw ", segment.first_index, ": ", what));
  };
  if (segment.first_index < 0) return bad("first index is negative");
  if (segment.steps.empty()) return bad("it holds no draw");
  if (segment.num_draws() > limits::kMaxSegmentDraws) {
    return bad(absl::StrCat("it holds ", segment.num_draws(), " draws, the most is ", limits::kMaxSegmentDraws));
  }
  if (segment.steps.size() != segment.weights.size()) {
    return bad(absl::StrCat(segment.steps.size(), " steps but ", segment.weights.size(), " weights"));
  }
  if (segment.steps.front() < 1) return bad("steps count from 1");
  if (std::adjacent_find(segment.steps.begin(), segment.steps.end(), std::greater_equal<>()) != segment.steps.end()) {
    return bad("steps do not rise");
  }
  if (!std::all_of(segment.weights.begin(), segment.weights.end(),
                   [](double w) { return std::isfinite(w) && w > 0; })) {
    return bad("weights must be finite and above 0");
  }
  if (segment.kinds.empty() || !std::is_sorted(segment.kinds.begin(), segment.kinds.end()) ||
      std::adjacent_find(segment.kinds.begin(), segment.kinds.end()) != segment.kinds.end()) {
    return bad("kinds must be theta, theta_a or both in this order");
  }
  if (!IsDigest(segment.digest) || !IsDigest(segment.parent_digest) || !IsDigest(segment.object.sha256)) {
    return bad("digests are 64 lower-case hex digits");
  }
  if (segment.object.name.empty() || segment.object.size_bytes <= 0) return bad("it names no object");
  return absl::OkStatus();
}

}  // namespace chainfleet
