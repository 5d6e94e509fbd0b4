#include "server/predict/sums/member_sums.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace chainfleet {
namespace {

void AddTo(const std::vector<double>& more, std::vector<double>* sum) {
  for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += more[i];
}

template <typename T>
void PutInFront(const std::vector<T>& older, std::vector<T>* newer) {
  newer->insert(newer->begin(), older.begin(), older.end());
}

}  // namespace

std::vector<const PartialPrediction*> PointersTo(const std::vector<PartialPrediction>& partials) {
  std::vector<const PartialPrediction*> pointers;
  for (const PartialPrediction& partial : partials) pointers.push_back(&partial);
  return pointers;
}

std::vector<const PartialPrediction*> InOrder(std::vector<const PartialPrediction*> partials) {
  std::erase_if(partials, [](const PartialPrediction* p) { return p->num_draws == 0; });
  std::ranges::sort(partials, {}, [](const PartialPrediction* p) { return std::tie(p->chain, p->kind); });
  return partials;
}

std::vector<const Members*> OrderedMembers(const std::vector<const PartialPrediction*>& partials) {
  std::vector<const Members*> members;
  for (const PartialPrediction* partial : InOrder(partials)) {
    if (partial->members) members.push_back(&*partial->members);
  }
  return members;
}

std::vector<Members> MembersOf(const std::vector<const PartialPrediction*>& partials) {
  std::vector<Members> members;
  for (const Members* one : OrderedMembers(partials)) members.push_back(*one);
  return members;
}

void AddOlder(const PartialPrediction& older, PartialPrediction* sums) {
  sums->num_draws += older.num_draws;
  sums->sum_w += older.sum_w;
  sums->sum_w2 += older.sum_w2;
  const auto add = [&]<typename Sums>(Sums& to) {
    for (const auto& array : Sums::kArrays) AddTo(std::get<Sums>(older.sums).*array.values, &(to.*array.values));
  };
  std::visit(add, sums->sums);
  AddTo(older.sum_wg, &sums->sum_wg);
  if (!older.members || !sums->members) return;
  PutInFront(older.members->weights, &sums->members->weights);
  const auto put = [&]<typename T>(T& newer) {
    for (const auto& array : T::kArrays) {
      PutInFront(std::get<T>(older.members->outputs).*array.values, &(newer.*array.values));
    }
  };
  std::visit(put, sums->members->outputs);
  PutInFront(older.members->gradients, &sums->members->gradients);
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
