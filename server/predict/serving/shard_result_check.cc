#include "server/predict/serving/shard_result_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/predict/serving/draw_selection.h"

namespace chainfleet {
namespace {

// Each array has one value, or one for each class, for each of `rows`.
template <typename T>
bool RowsFit(const T& arrays, int64_t rows, const PartialPrediction& p) {
  return std::ranges::all_of(T::kArrays, [&](const auto& array) {
    return std::ssize(arrays.*array.values) == rows * (array.per_class ? NumClasses(p.targets()) : 1);
  });
}

bool MembersFit(const PartialPrediction& p, bool asked) {
  if (!asked || !p.members) return asked == p.members.has_value();
  const auto fit = [&](const auto& outputs) { return RowsFit(outputs, p.num_draws * p.num_rows, p); };
  return p.members->chain == p.chain && p.members->kind == p.kind && std::ssize(p.members->weights) == p.num_draws &&
         p.members->outputs.index() == p.sums.index() && std::visit(fit, p.members->outputs);
}

bool SumsFit(const ClassSums& sums, const PartialPrediction& p, bool scored) {
  return RowsFit(sums, p.num_rows, p) && std::ssize(sums.draw_hits) == (scored ? p.num_draws : 0);
}

bool SumsFit(const NumberSums& sums, const PartialPrediction& p, bool scored) {
  const int64_t held = scored ? p.num_rows : 0;
  return RowsFit(sums, p.num_rows, p) && std::ssize(sums.log_sum_wd) == held && std::ssize(sums.sum_wc) == held;
}

bool GradientsFit(const PartialPrediction& p, const ShardRequest& request) {
  const int64_t values = request.gradients ? p.num_rows * GradientValues(*request.plan) : 0;
  return std::ssize(p.sum_wg) == values && (!p.members || std::ssize(p.members->gradients) == p.num_draws * values);
}

bool ArraysFit(const PartialPrediction& p, const ShardRequest& request) {
  const size_t scores = request.per_draw_scores ? static_cast<size_t>(p.num_draws) : 0;
  return p.num_rows == NumRows(request) && p.targets() == request.plan->targets &&
         std::visit([&](const auto& sums) { return SumsFit(sums, p, request.per_draw_scores); }, p.sums) &&
         p.draw_log_likelihood.size() == scores && (p.draw_weights.empty() || p.draw_weights.size() == scores) &&
         MembersFit(p, request.members) && GradientsFit(p, request);
}

// A worker may only report objects that the request names: the server marks each of them as corrupt.
absl::Status CheckCorruptObjects(const ShardRequest& request, const ShardResult& result) {
  if (result.corrupt_objects.empty()) return absl::OkStatus();
  std::unordered_set<std::string> requested;
  for (const ChainDraws& chain : request.chains) {
    for (const Segment& segment : chain.segments) requested.insert(segment.object.name);
  }
  const bool fit = std::ranges::all_of(result.corrupt_objects,
                                       [&](const std::string& object) { return requested.contains(object); });
  return fit ? absl::OkStatus() : BadShardResult("names corrupt objects that were not asked for");
}

// Requires one flatness for each requested chain, instead of sums.
absl::Status CheckFlatness(const ShardRequest& request, const ShardResult& result) {
  std::set<ChainId> missing;
  for (const ChainDraws& chain : request.chains) missing.insert(chain.chain);
  for (const Flatness& f : result.flatness) {
    const std::string name = "for the flatness of " + ToString(f.chain);
    if (missing.erase(f.chain) == 0) return BadShardResult(name + " was not asked for, or came twice");
    if (std::ssize(f.fisher_ranks) > request.flatness->fisher_points ||
        std::ssize(f.line_positions) > request.flatness->line_points) {
      return BadShardResult(name + " has more points than were asked for");
    }
    if (f.fisher_values.size() != f.fisher_ranks.size() || f.random_line.size() != f.line_positions.size() ||
        (!f.anchor_line.empty() && f.anchor_line.size() != f.line_positions.size())) {
      return BadShardResult(name + " has arrays of other shapes");
    }
  }
  if (!result.partials.empty()) return BadShardResult("has sums that were not asked for");
  if (missing.empty() || !result.corrupt_objects.empty()) return absl::OkStatus();
  return BadShardResult(absl::StrCat("lacks the flatness of ", missing.size(), " chains"));
}

}  // namespace

absl::Status BadShardResult(const std::string& what) {
  return WithReason(absl::InternalError("a worker's result " + what), "BAD_SHARD_RESULT");
}

int64_t NumRows(const ShardRequest& request) {
  return request.rows ? request.rows->num_rows : request.inputs->shape.front();
}

absl::Status CheckShardResult(const ShardRequest& request, const ShardResult& result) {
  CHAINFLEET_RETURN_IF_ERROR(CheckCorruptObjects(request, result));
  if (request.flatness) return CheckFlatness(request, result);
  std::map<ChainId, std::vector<int64_t>> draws_of;  // draws of each entry
  for (const ChainDraws& chain : request.chains) draws_of[chain.chain].push_back(NumDraws(chain));
  const bool may_lack = !result.corrupt_objects.empty();
  std::map<std::pair<ChainId, DrawKind>, size_t> seen;
  for (const PartialPrediction& p : result.partials) {
    const std::string name = absl::StrCat("for ", ToString(p.chain), " ", ToString(p.kind));
    const auto entries = draws_of.find(p.chain);
    const size_t at = seen[{p.chain, p.kind}]++;
    if (entries == draws_of.end() || std::ranges::count(request.kinds, p.kind) == 0 || at >= entries->second.size()) {
      return BadShardResult(name + " was not asked for, or came twice");
    }
    // An entry whose draws are all corrupt has no sum: the following sums move up.
    const int64_t asked = may_lack ? std::ranges::max(entries->second) : entries->second[at];
    if (p.num_draws < 0 || p.num_draws > asked || (p.num_draws < asked && !may_lack)) {
      return BadShardResult(absl::StrCat(name, " has ", p.num_draws, " draws instead of ", asked));
    }
    if (!ArraysFit(p, request) || (p.num_draws > 0 && !(p.sum_w > 0)))
      return BadShardResult(name + " has arrays of other shapes");
  }
  const size_t wanted = request.chains.size() * request.kinds.size();
  if (result.partials.size() < wanted && !may_lack) {
    return BadShardResult(absl::StrCat("has ", result.partials.size(), " sums instead of ", wanted));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
