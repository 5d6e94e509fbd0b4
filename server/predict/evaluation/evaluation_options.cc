#include "server/predict/evaluation/evaluation_options.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/saturating.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {
namespace {

constexpr char kAll[] = "all";

// A lone worker gets shards of kAssumedWorkers * limits::kShardForwardPasses; it steps and serves others between parts.
constexpr size_t kAssumedWorkers = 4;

// Per block: all running evaluations, with their blocks in flight, share limits::kMaxMemberBytes.
constexpr int64_t kMemberBytesPerBlock =
    limits::kMaxMemberBytes / limits::kRunningEvaluations / static_cast<int64_t>(limits::kRowBlocksInFlight);

// 4 KiB of the result for each chain.
constexpr size_t kMaxFlatnessChains = 2048;

int64_t MemberBytesPerRow(const PinnedDraws& draws, const std::vector<DrawKind>& kinds) {
  return SaturatingProduct(NumDraws(draws), static_cast<int64_t>(kinds.size()), NumClasses(draws.plan->targets),
                           static_cast<int64_t>(sizeof(float)));
}

void CheckRange(const char* field, int value, int least, int most, std::vector<FieldViolation>* violations) {
  if (value >= least && value <= most) return;
  violations->push_back({field, absl::StrCat("is ", value, ": must be ", least, " to ", most)});
}

void CheckCorruptions(const EvaluateQuery& query, const PinnedDraws& draws, std::vector<FieldViolation>* violations) {
  for (const std::string& name : query.corruptions) {
    const Corruption corruption{.name = name == kAll ? CorruptionNames().front() : name};
    std::vector<FieldViolation> found = Validate(corruption);
    if (found.empty()) found = ValidateForImages(corruption, draws.plan->input_shape);
    if (found.empty()) continue;
    return violations->push_back({"corruptions", found.front().message});
  }
}

// Refuses the options that need classes.
void RefuseClasses(const EvaluateQuery& query, const std::string& job, std::vector<FieldViolation>* violations) {
  const auto refuse = [&](const char* field, const char* why) {
    violations->push_back({field, absl::StrCat(why, ": job ", job, " learns numbers")});
  };
  if (!query.ood_dataset.empty()) refuse("ood_dataset", "out-of-distribution scores need class probabilities");
  if (query.curve_points != 0) refuse("curve_points", "the curve is of accuracy, NLL and ECE of classes");
}

}  // namespace

absl::Status CheckOptions(const EvaluateQuery& query, const PinnedDraws& draws, const std::vector<DrawKind>& kinds) {
  std::vector<FieldViolation> violations;
  if (query.ece_bins < 1) {
    violations.push_back({"ece_bins", absl::StrCat("is ", query.ece_bins, ": must be at least 1")});
  }
  CheckRange("curve_points", query.curve_points, 0, limits::kMaxCurvePoints, &violations);
  CheckRange("example_rows", query.example_rows, 0, limits::kMaxExampleRows, &violations);
  CheckCorruptions(query, draws, &violations);
  if (std::holds_alternative<Numbers>(draws.plan->targets)) RefuseClasses(query, draws.plan->job, &violations);
  if (query.curve_points > 0 && MemberBytesPerRow(draws, kinds) > kMemberBytesPerBlock) {
    violations.push_back({"curve_points", absl::StrCat("single draws of one row take ", MemberBytesPerRow(draws, kinds),
                                                       " bytes, at most ", kMemberBytesPerBlock,
                                                       " are held at once: choose fewer draws")});
  }
  if (query.flatness && draws.chains.size() > kMaxFlatnessChains) {
    violations.push_back({"flatness", absl::StrCat("is of ", draws.chains.size(), " chains, at most ",
                                                   kMaxFlatnessChains, " fit an answer: choose fewer chains")});
  }
  return InvalidFields(violations);
}

std::vector<Corruption> CorruptionsOf(const EvaluateQuery& query) {
  std::vector<Corruption> asked;
  for (const std::string& name : CorruptionNames()) {
    if (std::ranges::count(query.corruptions, name) + std::ranges::count(query.corruptions, kAll) == 0) continue;
    for (int32_t severity = 1; severity <= limits::kMaxCorruptionSeverity; ++severity) {
      asked.push_back({.name = name, .severity = severity});
    }
  }
  return asked;
}

int64_t EvaluationRowsPerBlock(const PinnedDraws& draws, const std::vector<DrawKind>& kinds, bool members) {
  const int64_t rows = RowsPerBlock(draws, kinds.size(), std::min(draws.chains.size(), kAssumedWorkers));
  if (!members) return rows;
  const int64_t most = kMemberBytesPerBlock / std::max<int64_t>(MemberBytesPerRow(draws, kinds), 1);
  return std::clamp<int64_t>(rows, 1, std::max<int64_t>(most, 1));
}

PinnedDraws NewestDraws(const PinnedDraws& draws, size_t first, size_t count) {
  PinnedDraws newest = draws;
  newest.chains.clear();
  for (size_t c = first; c < std::min(first + count, draws.chains.size()); ++c) {
    ChainDraws chain = draws.chains[c];
    chain.skip_draws += chain.num_draws - 1;
    chain.num_draws = chain.every = 1;
    size_t before = 0;  // segments before that draw
    while (chain.segments[before].num_draws() <= chain.skip_draws) {
      chain.skip_draws -= chain.segments[before++].num_draws();
    }
    chain.segments = {chain.segments[before]};
    newest.chains.push_back(std::move(chain));
  }
  return newest;
}

}  // namespace chainfleet
