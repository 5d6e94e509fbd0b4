#include "server/predict/member_sums.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/scores/mixture.h"

namespace chainfleet {
namespace {

std::vector<const Members*> Ordered(const std::vector<const PartialPrediction*>& partials) {
  std::vector<const Members*> members;
  for (const PartialPrediction* partial : partials) {
    if (partial->members && partial->num_draws > 0) members.push_back(&*partial->members);
  }
  std::ranges::sort(members, {}, [](const Members* m) { return std::tie(m->chain, m->kind); });
  return members;
}

void AddTo(const std::vector<double>& more, std::vector<double>* sum) {
  for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += more[i];
}

template <typename T>
void PutInFront(const std::vector<T>& older, std::vector<T>* newer) {
  newer->insert(newer->begin(), older.begin(), older.end());
}

}  // namespace

std::vector<Members> MembersOf(const std::vector<const PartialPrediction*>& partials) {
  std::vector<Members> members;
  for (const Members* one : Ordered(partials)) members.push_back(*one);
  return members;
}

std::vector<double> MixtureQuantiles(const std::vector<const PartialPrediction*>& partials,
                                     const std::vector<double>& levels) {
  const std::vector<const Members*> ordered = Ordered(partials);
  std::vector<double> weight, quantiles;
  for (const Members* members : ordered) {
    weight.insert(weight.end(), members->weights.begin(), members->weights.end());
  }
  if (weight.empty()) return {};
  const auto num_rows = static_cast<size_t>(partials.front()->num_rows);
  std::vector<double> mean(weight.size()), variance(weight.size());
  for (size_t row = 0; row < num_rows; ++row) {
    size_t at = 0;
    for (const Members* members : ordered) {
      for (size_t i = row; i < members->mean.size(); i += num_rows, ++at) {
        mean[at] = members->mean[i];
        variance[at] = members->variance[i];
      }
    }
    for (const double level : levels) quantiles.push_back(MixtureQuantile(weight, mean, variance, level));
  }
  return quantiles;
}

void AddOlder(const PartialPrediction& older, PartialPrediction* sums) {
  sums->num_draws += older.num_draws;
  sums->sum_w += older.sum_w;
  sums->sum_w2 += older.sum_w2;
  for (const auto values :
       {&PartialPrediction::sum_wp, &PartialPrediction::sum_wp2, &PartialPrediction::sum_wh, &PartialPrediction::votes,
        &PartialPrediction::sum_wm, &PartialPrediction::sum_wm2, &PartialPrediction::sum_wv}) {
    AddTo(older.*values, &(sums->*values));
  }
  if (!older.members || !sums->members) return;
  PutInFront(older.members->weights, &sums->members->weights);
  for (const auto values : {&Members::probabilities, &Members::mean, &Members::variance}) {
    PutInFront((*older.members).*values, &((*sums->members).*values));
  }
}

void AddOlder(std::vector<PartialPrediction> older, std::vector<PartialPrediction>* sums) {
  std::map<std::pair<ChainId, DrawKind>, PartialPrediction*> known;
  for (PartialPrediction& sum : *sums) known[{sum.chain, sum.kind}] = &sum;
  std::vector<PartialPrediction> fresh;
  for (PartialPrediction& partial : older) {
    const auto found = known.find({partial.chain, partial.kind});
    if (found != known.end() && found->second->num_draws > 0) {
      AddOlder(partial, found->second);
    } else if (found != known.end()) {
      *found->second = std::move(partial);
    } else {
      fresh.push_back(std::move(partial));
    }
  }
  std::ranges::move(fresh, std::back_inserter(*sums));
}

}  // namespace chainfleet
