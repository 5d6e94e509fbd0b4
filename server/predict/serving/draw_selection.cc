#include "server/predict/serving/draw_selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

std::string Render(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string RenderWanted(const PredictPlan& plan) {
  return absl::StrCat("[n", plan.input_shape.empty() ? "" : ", ", absl::StrJoin(plan.input_shape, ", "), "]");
}

// True if all float32 of `bytes` are finite. An early exit would prevent vectorisation.
bool AllFinite(const std::string& bytes) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t others = 0;
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + offset, sizeof bits);
    others += (bits & kExponent) == kExponent ? 1 : 0;
  }
  return others == 0;
}

// A network returns NaN for NaN, which callers could mistake for a prediction.
absl::Status CheckFinite(const InputTensor& inputs, uint64_t row_bytes) {
  if (inputs.type != InputType::kFloat32 || AllFinite(inputs.bytes)) return absl::OkStatus();
  for (size_t offset = 0; offset < inputs.bytes.size(); offset += sizeof(float)) {
    float value;
    std::memcpy(&value, inputs.bytes.data() + offset, sizeof value);
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", offset / row_bytes, " of the inputs holds ", value, ": inputs must be finite"));
    }
  }
  return absl::OkStatus();
}

// Allows perturbed images; a photograph from 0 to 255 has brighter pixels.
constexpr float kLeastScaled = -1, kMostScaled = 2;

// True if any float32 of `bytes` is below `least` or above `most`; vectorised like AllFinite.
bool IsBeyond(const std::string& bytes, float least, float most) {
  uint32_t beyond = 0;
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    beyond += value < least || value > most ? 1 : 0;
  }
  return beyond > 0;
}

absl::Status WantsFloats(const std::string& job) {
  return absl::InvalidArgumentError(absl::StrCat("job ", job,
                                                 " learns from float32 inputs, and uint8 would count as x / 255: give "
                                                 "float32 on the scale of its data set"));
}

absl::Status WantsScaled(const std::string& job) {
  return absl::InvalidArgumentError(absl::StrCat("job ", job,
                                                 " learns from uint8 inputs as x / 255, and these float32 are not from "
                                                 "0 to 1: give uint8, or divide by 255"));
}

// Keeps the newest `count` of the averaged draws.
void KeepNewest(int64_t count, ChainDraws* chain) {
  if (count >= NumDraws(*chain)) return;
  const int64_t kept = count == 0 ? 0 : (count - 1) * std::max<int64_t>(chain->every, 1) + 1;
  chain->skip_draws += chain->num_draws - kept;
  chain->num_draws = kept;
}

// Returns the number of draws of each chain, `budget` in all.
std::vector<int64_t> ShareOut(int64_t budget, const std::vector<ChainDraws>& chains) {
  std::vector<int64_t> shares(chains.size());
  std::vector<size_t> open;  // chains with more draws to give
  for (size_t i = 0; i < chains.size(); ++i) {
    if (NumDraws(chains[i]) > 0) open.push_back(i);
  }
  while (budget > 0 && !open.empty()) {
    const auto even = std::max<int64_t>(budget / static_cast<int64_t>(open.size()), 1);
    for (const size_t i : open) {
      const int64_t more = std::min({even, NumDraws(chains[i]) - shares[i], budget});
      shares[i] += more;
      budget -= more;
    }
    std::erase_if(open, [&](size_t i) { return shares[i] == NumDraws(chains[i]); });
  }
  return shares;
}

ChainDraws WithoutSegments(const ChainDraws& chain) {
  return {.chain = chain.chain,
          .segments = {},
          .skip_draws = chain.skip_draws,
          .num_draws = chain.num_draws,
          .every = chain.every};
}

// Copies the segments that hold a selected draw.
void TakeSegments(const std::vector<Segment>& segments, ChainDraws* chain) {
  auto segment = segments.begin();
  while (segment != segments.end() && segment->num_draws() <= chain->skip_draws) {
    chain->skip_draws -= (segment++)->num_draws();
  }
  const int64_t needed = chain->skip_draws + chain->num_draws;
  for (int64_t begin = 0; segment != segments.end() && begin < needed; ++segment) {
    chain->segments.push_back(*segment);
    begin += segment->num_draws();
  }
}

absl::Status CheckShares(const std::string& job, const std::set<int32_t>& with_draws, const ChainShares& shares) {
  for (const auto& [index, share] : shares) {
    if (with_draws.contains(index)) continue;
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("chain ", index, " of job ", job, " has weight ", share,
                                                   " and no readable draws: evaluate again, or choose other chains")),
        "TOO_FEW_DRAWS");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<DrawKind>> ChooseKinds(const PinnedDraws& draws, const std::vector<DrawKind>& asked) {
  if (!draws.plan->model.has_data()) {
    return absl::InvalidArgumentError("job " + draws.plan->job +
                                      " samples an analytic potential: it makes no predictions");
  }
  for (const DrawKind kind : asked) {
    if (std::ranges::count(draws.kinds, kind) > 0) continue;
    const auto name = [](std::string* out, DrawKind k) { out->append(ToString(k)); };
    return absl::InvalidArgumentError(absl::StrCat("job ", draws.plan->job, " keeps no ", ToString(kind),
                                                   ": its kinds are ", absl::StrJoin(draws.kinds, ", ", name)));
  }
  std::vector<DrawKind> kinds = asked.empty() ? draws.kinds : asked;
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

absl::Status CheckShape(const InputTensor& inputs, const PredictPlan& plan) {
  const std::vector<int64_t>& shape = inputs.shape;
  if (!shape.empty() && shape.front() >= 1 &&
      std::equal(shape.begin() + 1, shape.end(), plan.input_shape.begin(), plan.input_shape.end())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("inputs have shape ", Render(shape), ": job ", plan.job, " takes ",
                                                 RenderWanted(plan), " with n >= 1"));
}

absl::Status CheckRows(const InputTensor& inputs) {
  const std::vector<int64_t>& shape = inputs.shape;
  int64_t row_bytes = ItemBytes(inputs.type);
  bool fits = !shape.empty();
  for (size_t axis = 1; fits && axis < shape.size(); ++axis) {
    fits = shape[axis] > 0 && !__builtin_mul_overflow(row_bytes, shape[axis], &row_bytes);
  }
  // Divides instead of multiplying: a huge n must not overflow to a size that fits.
  const auto bytes = static_cast<int64_t>(inputs.bytes.size());
  if (!fits || bytes % row_bytes != 0 || bytes / row_bytes != shape.front()) {
    return absl::InvalidArgumentError(absl::StrCat("inputs of shape ", Render(shape), " have ", bytes, " bytes",
                                                   fits ? absl::StrCat(": a row of this type has ", row_bytes) : ""));
  }
  return CheckFinite(inputs, static_cast<uint64_t>(row_bytes));
}

absl::Status CheckInputs(const InputTensor& inputs, const PredictPlan& plan) {
  CHAINFLEET_RETURN_IF_ERROR(CheckShape(inputs, plan));
  return CheckRows(inputs);
}

absl::Status CheckScale(const InputTensor& inputs, InputType learned, const std::string& job) {
  if (inputs.type == InputType::kUint8) return learned == InputType::kUint8 ? absl::OkStatus() : WantsFloats(job);
  return learned == InputType::kUint8 && IsBeyond(inputs.bytes, kLeastScaled, kMostScaled) ? WantsScaled(job)
                                                                                           : absl::OkStatus();
}

absl::Status CheckDataset(const Dataset& dataset, const PinnedDraws& draws) {
  const PredictPlan& plan = *draws.plan;
  const Normalisation& of = dataset.normalisation;
  const bool is_scaled = std::ranges::all_of(of.mean, [](double m) { return m >= kLeastScaled && m <= kMostScaled; }) &&
                         std::ranges::all_of(of.stddev, [](double s) { return s <= kMostScaled / 2; });
  absl::Status scale;
  if (draws.learned == InputType::kFloat32 && dataset.input_type == InputType::kUint8) scale = WantsFloats(plan.job);
  if (draws.learned == InputType::kUint8 && dataset.input_type == InputType::kFloat32 && !is_scaled) {
    scale = WantsScaled(plan.job);
  }
  if (!scale.ok()) return Annotate(scale, "data set " + dataset.name);
  if (dataset.input_shape != plan.input_shape || dataset.num_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", dataset.num_rows,
                                                   " rows of shape ", Render(dataset.input_shape), ": job ", plan.job,
                                                   " takes ", Render(plan.input_shape)));
  }
  if (std::holds_alternative<Numbers>(plan.targets) && std::holds_alternative<Classes>(dataset.targets)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", dataset.name, " has labels: job ", plan.job, " learns float32 targets"));
  }
  return absl::OkStatus();
}

absl::Status CheckEnough(const PinnedDraws& draws, int64_t readable, int64_t needed) {
  if (readable >= std::max<int64_t>(needed, 1)) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("job ", draws.plan->job, " version ", draws.version, " has ", readable,
                                                 " readable draws, ", std::max<int64_t>(needed, 1), " are needed")),
      "TOO_FEW_DRAWS");
}

absl::Status CheckShares(const PinnedDraws& draws, const ChainShares& shares) {
  std::set<int32_t> with_draws;
  for (const ChainDraws& chain : draws.chains) with_draws.insert(chain.chain.index);
  return CheckShares(draws.plan->job, with_draws, shares);
}

absl::Status CheckShares(const std::string& job, const std::vector<PartialPrediction>& sums,
                         const ChainShares& shares) {
  std::set<int32_t> with_draws;
  for (const PartialPrediction& partial : sums) {
    if (partial.num_draws > 0) with_draws.insert(partial.chain.index);
  }
  return CheckShares(job, with_draws, shares);
}

int64_t NumDraws(const PinnedDraws& draws) { return NumDraws(draws.chains); }

int64_t NumDraws(const std::vector<ChainDraws>& chains) {
  int64_t count = 0;
  for (const ChainDraws& chain : chains) count += NumDraws(chain);
  return count;
}

int64_t NumDraws(const ChainDraws& chain) {
  if (chain.num_draws <= 0) return 0;
  return (chain.num_draws - 1) / std::max<int64_t>(chain.every, 1) + 1;  // no rounding up by a sum, which may overflow
}

std::vector<ChainDraws> SelectDraws(const DrawQuery& query, const std::vector<const ChainDraws*>& readable) {
  std::vector<ChainDraws> chosen;
  for (const ChainDraws* all : readable) {
    ChainDraws& chain = chosen.emplace_back(WithoutSegments(*all));
    if (query.members > 0) KeepNewest(query.members, &chain);
    // Clamp `every`: a stride above the number of draws selects only the newest, and products with it could overflow.
    chain.every = std::clamp<int64_t>(query.every, 1, std::max<int64_t>(chain.num_draws, 1));
  }
  if (query.max_draws > 0) {
    const std::vector<int64_t> shares = ShareOut(query.max_draws, chosen);
    for (size_t i = 0; i < shares.size(); ++i) KeepNewest(shares[i], &chosen[i]);
  }
  for (size_t i = 0; i < chosen.size(); ++i) TakeSegments(readable[i]->segments, &chosen[i]);
  std::erase_if(chosen, [](const ChainDraws& chain) { return chain.num_draws == 0; });
  return chosen;
}

std::vector<ChainDraws> DrawsOfWave(const std::vector<ChainDraws>& chains, int64_t first, int64_t count) {
  std::vector<ChainDraws> wave;
  for (const ChainDraws& all : chains) {
    ChainDraws chain = WithoutSegments(all);
    chain.num_draws = std::max<int64_t>(chain.num_draws - first * std::max<int64_t>(chain.every, 1), 0);
    KeepNewest(count, &chain);
    if (chain.num_draws == 0) continue;
    TakeSegments(all.segments, &chain);
    wave.push_back(std::move(chain));
  }
  return wave;
}

}  // namespace chainfleet
