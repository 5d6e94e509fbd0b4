#include "server/control/trace_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/base/rng_key.h"
#include "core/diagnostics/ess.h"
#include "core/diagnostics/mcse.h"
#include "core/diagnostics/rhat.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TraceTableTest : public ::testing::Test {
 protected:
  // Adds steps (first, last] of a chain with noise around `centre`; "still" never changes.
  void Add(int32_t index, int64_t first, int64_t last, double centre = 0, int32_t point = 0,
           std::optional<ChainState> ends_as = std::nullopt, const std::string& job = "job-a") {
    ChainTrace trace{.point = point, .quantities = {"noise", "still"}, .steps = {}, .values = {}};
    for (int64_t step = first + 1; step <= last; ++step) {
      trace.steps.push_back(step);
      trace.values.push_back(Value(index, step, centre));
      trace.values.push_back(7);
    }
    table_.Add({job, index}, trace, ends_as, clock_.Monotonic());
    executor_.RunUntilIdle();
  }
  static double Value(int32_t index, int64_t step, double centre) {
    return centre +
           NormalDouble(RngKey{5}, RngStream::kInit, static_cast<uint64_t>(step), static_cast<uint32_t>(index));
  }
  Diagnostic Only() {
    const std::vector<Diagnostic> all = table_.Of("job-a");
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? Diagnostic() : all[0];
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  std::vector<PointDiagnosis> heard_;  // the newest diagnoses
  TraceTable::Relation relation_;
  int asked_ = 0;  // times that the table asked for it
  TraceTable table_{&executor_,
                    [this](const std::string&, const std::vector<PointDiagnosis>& points) { heard_ = points; },
                    [this](const std::string&) {
                      ++asked_;
                      return relation_;
                    }};
};

TEST_F(TraceTableTest, DiagnosesAQuantity) {
  std::vector<double> values;
  for (int32_t chain = 0; chain < 3; ++chain) {
    Add(chain, 0, 50);
    Add(chain, 50, 90, 0, 0, ChainState::kSucceeded);
    for (int64_t step = 1; step <= 90; ++step) values.push_back(Value(chain, step, 0));
  }
  const Traces traces{values, 3};
  EXPECT_EQ(Only(), (Diagnostic{0, "noise", 3, 90, Rhat(traces), EssBulk(traces), EssTail(traces), Mean(values),
                                McseMean(traces), 0}));
}

TEST_F(TraceTableTest, ComparesSuperchainsOfChainsThatShareAStart) {
  std::vector<double> values;
  for (int32_t chain = 0; chain < 6; ++chain) Add(chain, 0, 50, chain % 3);
  EXPECT_EQ(Only().nested_rhat, std::nullopt) << "the chains share no starts";
  relation_.superchains = 3;
  for (int32_t chain = 0; chain < 6; ++chain) {
    Add(chain, 50, 90, chain % 3);
    for (int64_t step = 1; step <= 90; ++step) values.push_back(Value(chain, step, chain % 3));
  }
  EXPECT_EQ(Only().nested_rhat, NestedRhat({values, 6}, std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_GT(Only().nested_rhat, 1.3);
  for (const int32_t chain : {0, 3, 1, 4}) Add(chain, 90, 91, 0, 0, ChainState::kDiverged);
  EXPECT_EQ(Only().nested_rhat, std::nullopt) << "one superchain is left";
  EXPECT_LT(Only().rhat, 1.1);
}

TEST_F(TraceTableTest, AsksHowChainsRelateOnceAndAgainWhenChainsWereAdded) {
  relation_.chains = 3;  // without superchains
  for (int64_t step = 0; step < 100; step += 50) {
    for (int32_t chain = 0; chain < 3; ++chain) Add(chain, step, step + 50);
  }
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(Only().nested_rhat, std::nullopt);
  relation_ = {.superchains = 2, .chains = 4};
  Add(3, 0, 100);
  Add(3, 100, 150, 0, 0, ChainState::kSucceeded);
  EXPECT_EQ(asked_, 2);
  EXPECT_NE(Only().nested_rhat, std::nullopt);
}

TEST_F(TraceTableTest, DetectsChainsThatDisagree) {
  for (int32_t chain = 0; chain < 4; ++chain) Add(chain, 0, 100, chain);
  EXPECT_GT(Only().rhat, 1.3);
  EXPECT_LT(Only().ess_bulk, 20);
}

TEST_F(TraceTableTest, LetsThePredictionsOfANetworkDecide) {
  const auto decide = [&](const std::string& job, const std::vector<std::string>& quantities) {
    for (int32_t chain = 0; chain < 2; ++chain) {
      ChainTrace trace{.point = 0, .quantities = quantities, .steps = {}, .values = {}};
      for (int64_t step = 1; step <= 10; ++step) {
        trace.steps.push_back(step);
        trace.values.insert(trace.values.end(), quantities.size(), Value(chain, step, 0));
      }
      table_.Add({job, chain}, trace, std::nullopt, clock_.Monotonic());
    }
    executor_.RunUntilIdle();
    std::vector<std::string> deciding;
    for (const Diagnostic& found : table_.Of(job)) {
      if (!found.descriptive) deciding.push_back(found.quantity);
    }
    return deciding;
  };
  EXPECT_THAT(decide("labels", {"energy", "theta.norm", "theta.probability[3]"}), ElementsAre("theta.probability[3]"));
  EXPECT_THAT(decide("numbers", {"energy", "theta_a.log_density[3]"}), ElementsAre("theta_a.log_density[3]"));
  EXPECT_THAT(decide("regression", {"energy", "theta.norm", "theta.log_likelihood[3]"}),
              ElementsAre("energy", "theta.norm", "theta.log_likelihood[3]"));
}

// Chains of kind sbc: the posterior of each is normal around its own truth, and its draws have `width` times the
// deviation and are off by `bias` of it.
class TraceTableOfRanks : public TraceTableTest {
 protected:
  TraceTableOfRanks() { relation_.is_sbc = true; }
  Diagnostic Ranked(int32_t chains, double width, double bias, const std::string& job = "job-a") {
    for (int32_t chain = 0; chain < chains; ++chain) {
      const double truth = Value(chain, 0, 0);
      ChainTrace trace{.point = 0, .quantities = {"theta.norm"}, .steps = {}, .values = {}};
      for (int64_t step = 1; step <= 60; ++step) {
        trace.steps.push_back(step);
        trace.values.push_back(width * Value(chain, step, 0) + bias - truth);
      }
      table_.Add({job, chain}, trace, ChainState::kSucceeded, clock_.Monotonic());
    }
    executor_.RunUntilIdle();
    const std::vector<Diagnostic> all = table_.Of(job);
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? Diagnostic() : all[0];
  }
  static int64_t AtEnds(const Ranks& ranks) { return ranks.counts.front() + ranks.counts.back(); }
};

TEST_F(TraceTableOfRanks, RanksTheTruthAmongTheDrawsOfEachChain) {
  const Diagnostic right = Ranked(300, 1, 0);
  ASSERT_TRUE(right.ranks);
  EXPECT_EQ(right.chains, 300) << "more than of a posterior";
  EXPECT_THAT(right.ranks->counts, SizeIs(20));
  EXPECT_EQ(std::accumulate(right.ranks->counts.begin(), right.ranks->counts.end(), int64_t{0}), 300);
  EXPECT_GT(right.ranks->p_value.value(), 0.001);
  EXPECT_NEAR(right.ess_bulk, 300 * 60, 0.2 * 300 * 60) << "of each chain by itself";
  EXPECT_TRUE(std::isnan(right.rhat));
  EXPECT_EQ(right.nested_rhat, std::nullopt);
  EXPECT_FALSE(right.descriptive);

  const Diagnostic narrow = Ranked(300, 0.4, 0, "narrow"), wide = Ranked(300, 4, 0, "wide");
  const Diagnostic biased = Ranked(300, 1, 1, "biased");
  EXPECT_LT(narrow.ranks->p_value.value(), 1e-6);
  EXPECT_LT(wide.ranks->p_value.value(), 1e-6);
  EXPECT_LT(biased.ranks->p_value.value(), 1e-6);
  EXPECT_GT(AtEnds(*narrow.ranks), 90) << "a U";
  EXPECT_LT(AtEnds(*wide.ranks), 3) << "a hill";
  EXPECT_GT(biased.ranks->counts.front(), 3 * biased.ranks->counts[10]) << "a slope";
}

TEST_F(TraceTableOfRanks, TestsTwentyChainsAndMore) {
  EXPECT_EQ(Ranked(19, 1, 0).ranks->p_value, std::nullopt);
  EXPECT_NE(Ranked(20, 1, 0).ranks->p_value, std::nullopt);
}

TEST_F(TraceTableOfRanks, ChainsOfFewEffectiveDrawsAreNotTested) {
  for (int32_t chain = 0; chain < 30; ++chain) {
    ChainTrace trace{.point = 0, .quantities = {"slow"}, .steps = {}, .values = {}};
    double value = 0;
    for (int64_t step = 1; step <= 60; ++step) {
      trace.steps.push_back(step);
      trace.values.push_back(value = 0.95 * value + Value(chain, step, 0));
    }
    table_.Add({"job-a", chain}, trace, ChainState::kSucceeded, clock_.Monotonic());
  }
  executor_.RunUntilIdle();
  const Diagnostic found = Only();
  EXPECT_LT(found.ess_bulk, 30 * 20);
  EXPECT_EQ(std::accumulate(found.ranks->counts.begin(), found.ranks->counts.end(), int64_t{0}), 30);
  EXPECT_EQ(found.ranks->p_value, std::nullopt);
}

TEST_F(TraceTableOfRanks, ValuesThatEqualTheTruthAreUniform) {
  for (int32_t chain = 0; chain < 200; ++chain) {
    ChainTrace trace{.point = 0, .quantities = {"tied"}, .steps = {}, .values = {}};
    for (int64_t step = 1; step <= 60; ++step) {
      trace.steps.push_back(step);
      trace.values.push_back(chain == 0 && step == 60 ? 1 : 0);  // a quantity that never changes is left out
    }
    table_.Add({"job-a", chain}, trace, ChainState::kSucceeded, clock_.Monotonic());
  }
  executor_.RunUntilIdle();
  EXPECT_GT(Only().ranks->p_value.value(), 0.001);
}

TEST_F(TraceTableOfRanks, AChainThatIsNotANumberIsLeftOut) {
  ChainTrace trace{.point = 0, .quantities = {"theta.norm"}, .steps = {}, .values = {}};
  for (int64_t step = 1; step <= 60; ++step) {
    trace.steps.push_back(step);
    trace.values.push_back(std::nan(""));
  }
  table_.Add({"job-a", 30}, trace, ChainState::kSucceeded, clock_.Monotonic());
  const Diagnostic found = Ranked(30, 1, 0);
  EXPECT_EQ(found.chains, 30);
  EXPECT_FALSE(std::isnan(found.ess_bulk));
}

TEST_F(TraceTableOfRanks, AreTheSameFromStoredTraces) {
  const Ranks before = *Ranked(200, 1, 0).ranks;
  TraceTable restarted(&executor_, nullptr, [this](const std::string&) { return relation_; });
  for (const TracedChain& stored : table_.EveryTrace("job-a")) {
    restarted.Add({"job-a", stored.chain},
                  {.point = 0, .quantities = {"theta.norm"}, .steps = stored.steps, .values = stored.values},
                  std::nullopt, clock_.Monotonic());
  }
  executor_.RunUntilIdle();
  EXPECT_EQ(restarted.Of("job-a").at(0).ranks, before);
}

TEST_F(TraceTableOfRanks, KeepsABoundedNumberOfChains) {
  EXPECT_EQ(Ranked(kMostRankedChains + 1, 1, 0).chains, kMostRankedChains);
}

TEST_F(TraceTableTest, HasNoDiagnosticsOfThreeValuesAndNoRHatOfOneChain) {
  Add(0, 0, 3);
  EXPECT_THAT(table_.Of("job-a"), IsEmpty());
  Add(0, 3, 8);
  EXPECT_TRUE(std::isnan(Only().rhat));
  EXPECT_THAT(table_.Of("job-b"), IsEmpty());
}

TEST_F(TraceTableTest, CountsARepeatedStepOnce) {
  Add(0, 0, 50);
  Add(0, 20, 60);
  EXPECT_EQ(Only().values, 60);
}

TEST_F(TraceTableTest, KeepsTheNewestWindow) {
  Add(0, 0, 900);
  Add(0, 900, 2500);
  EXPECT_EQ(Only().values, kTraceWindow);
  double mean = 0;
  for (int64_t step = 1501; step <= 2500; ++step) mean += Value(0, step, 0) / 1000;
  EXPECT_NEAR(Only().mean, mean, 1e-12);
}

TEST_F(TraceTableTest, UsesAsManyValuesAsTheShortestChainOfHalfTheLongestLength) {
  Add(0, 0, 100);
  Add(1, 0, 60);
  Add(2, 0, 40);
  EXPECT_EQ(Only().chains, 2);
  EXPECT_EQ(Only().values, 60);
}

TEST_F(TraceTableTest, ComputesAgainWhenATenthCameOrAChainEnded) {
  Add(0, 0, 100);
  Add(0, 100, 105);
  EXPECT_EQ(Only().values, 100);
  Add(0, 105, 112);
  EXPECT_EQ(Only().values, 112);
  Add(0, 112, 113, 0, 0, ChainState::kSucceeded);
  EXPECT_EQ(Only().values, 113);
}

TEST_F(TraceTableTest, EachPointIsItsOwnLaw) {
  Add(0, 0, 50, 0, 0);
  Add(1, 0, 50, 9, 1);
  const std::vector<Diagnostic> all = table_.Of("job-a");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_NEAR(all[0].mean, 0, 1);
  EXPECT_NEAR(all[1].mean, 9, 1);
}

TEST_F(TraceTableTest, ForgetsChainsThatDiverged) {
  Add(0, 0, 50);
  Add(1, 0, 50, 100);
  Add(1, 50, 55, 100, 0, ChainState::kDiverged);
  EXPECT_EQ(Only().chains, 1);
}

// The time of the window's values, from their commits. A mean over the whole run would fall as the window moves on.
TEST_F(TraceTableTest, ReportsTheTimeThatTheValuesTook) {
  Add(0, 0, 50);
  EXPECT_EQ(Only().seconds, 0) << "when they were begun nobody saw";
  clock_.Advance(absl::Seconds(10));
  Add(0, 50, 100);
  EXPECT_EQ(Only().seconds, 20) << "the first 50 as the others";
  clock_.Advance(absl::Seconds(30));
  Add(0, 100, 200);
  EXPECT_NEAR(Only().seconds, 40 / 150.0 * 200, 1e-6);
  clock_.Advance(absl::Hours(1));
  Add(0, 200, 300);
  for (int64_t step = 300; step < 300 + kTraceWindow; step += 100) {
    clock_.Advance(absl::Seconds(5));
    Add(0, step, step + 100);
  }
  EXPECT_EQ(Only().values, kTraceWindow);
  EXPECT_EQ(Only().seconds, 5 * kTraceWindow / 100) << "of what is looked at alone";
}

TEST_F(TraceTableTest, ForgetsAChainOnRequestAndDiagnosesTheOthersAgain) {
  Add(0, 0, 50);
  Add(1, 0, 50);
  Add(2, 0, 24, 100);
  EXPECT_EQ(Only().values, 50) << "the short one is not looked at";
  Add(2, 24, 26, 100, 0, ChainState::kSucceeded);
  EXPECT_EQ(Only().chains, 3);
  EXPECT_EQ(Only().values, 26) << "it cuts the others";
  heard_.clear();
  table_.Forget({"job-a", 2});
  executor_.RunUntilIdle();
  EXPECT_EQ(Only().chains, 2);
  EXPECT_EQ(Only().values, 50);
  ASSERT_THAT(heard_, SizeIs(1)) << "a rule may hold now";
  EXPECT_THAT(heard_[0].looked_at, ElementsAre(0, 1));
  table_.Forget({"job-none", 0});
}

TEST_F(TraceTableTest, SkipsTracesThatDoNotMatchTheJobsQuantities) {
  Add(0, 0, 50);
  table_.Add({"job-a", 0}, {.point = 0, .quantities = {"other"}, .steps = {60}, .values = {1}}, std::nullopt, {});
  table_.Add({"job-a", 0}, {.point = 0, .quantities = {"noise", "still"}, .steps = {60}, .values = {1}}, std::nullopt,
             {});
  table_.Add({"job-b", 0}, {.point = 0, .quantities = {}, .steps = {1, 2, 3, 4}, .values = {}}, std::nullopt, {});
  executor_.RunUntilIdle();
  Add(0, 50, 60, 0, 0, ChainState::kSucceeded);
  EXPECT_EQ(Only().values, 60);
  EXPECT_THAT(table_.Of("job-b"), IsEmpty());
}

TEST_F(TraceTableTest, WatchesTheFirstChainsOfAPoint) {
  const auto most = static_cast<int32_t>(kMostTracedChains);
  for (int32_t chain = 0; chain < most + 3; ++chain) Add(chain, 0, 4);
  Add(0, 4, 5, 0, 0, ChainState::kSucceeded);
  EXPECT_EQ(Only().chains, most);
  ASSERT_THAT(heard_, SizeIs(1));
  EXPECT_THAT(heard_[0].looked_at, SizeIs(most));
  EXPECT_THAT(heard_[0].without_room, ElementsAre(most, most + 1, most + 2));
}

// Workers of a newer release may trace more.
TEST_F(TraceTableTest, BeginsAnewWhenATraceHasAllQuantitiesAndMore) {
  const auto add = [&](const std::vector<std::string>& quantities, int64_t step) {
    const std::vector<double> values(quantities.size(), static_cast<double>(step));
    table_.Add({"job-a", 0}, {.point = 0, .quantities = quantities, .steps = {step}, .values = values}, std::nullopt,
               {});
  };
  add({"energy", "norm"}, 1);
  add({"energy"}, 2);
  EXPECT_THAT(table_.QuantitiesOf("job-a"), ElementsAre("energy", "norm")) << "an older worker's is left out";
  add({"energy", "norm", "theta[0]"}, 3);
  EXPECT_THAT(table_.QuantitiesOf("job-a"), ElementsAre("energy", "norm", "theta[0]"));
  const auto traces = table_.TracesOf("job-a", "energy");
  ASSERT_TRUE(traces.ok()) << traces.status();
  EXPECT_THAT(traces->at(0).steps, ElementsAre(3));
}

TEST_F(TraceTableTest, PointsShareTheRoomOfTheirJob) {
  const auto add = [&](int32_t chain, int32_t point, int64_t first, std::optional<ChainState> ends_as = std::nullopt) {
    constexpr int kQuantities = kMostTraceQuantities;
    ChainTrace trace{.point = point, .quantities = {}, .steps = {}, .values = {}};
    for (int q = 0; q < kQuantities; ++q) trace.quantities.push_back("q" + std::to_string(q));
    for (int64_t step = first + 1; step <= first + 5; ++step) {
      trace.steps.push_back(step);
      for (int q = 0; q < kQuantities; ++q) trace.values.push_back(Value(chain, step, q));
    }
    table_.Add({"job-a", chain}, trace, ends_as, {});
    executor_.RunUntilIdle();
  };
  constexpr int32_t kRoom = TraceTable::kMostValues / (kTraceWindow * kMostTraceQuantities);
  for (int32_t chain = 0; chain < kRoom; ++chain) add(chain, 0, 0);
  for (int32_t chain = kRoom; chain < 2 * kRoom; ++chain) add(chain, 1, 0);
  for (int32_t chain = 0; chain < kRoom; ++chain) add(chain, 0, 5);  // evicted chains do not return
  add(kRoom, 1, 5, ChainState::kSucceeded);
  ASSERT_THAT(heard_, SizeIs(2));
  for (const PointDiagnosis& point : heard_) {
    const int32_t share = (kRoom + 1 - point.point) / 2;
    EXPECT_THAT(point.looked_at, SizeIs(share)) << point.point;
    EXPECT_EQ(point.looked_at.front(), point.point * kRoom) << "the first that came";
    EXPECT_THAT(point.without_room, SizeIs(kRoom - share)) << point.point;
    EXPECT_THAT(point.diagnostics, SizeIs(kMostTraceQuantities));
  }
}

TEST_F(TraceTableTest, ListsTheChainsUsedForEachPoint) {
  Add(0, 0, 100);
  Add(1, 0, 40);  // less than half
  Add(2, 0, 90);
  Add(3, 0, 5, 0, 1, ChainState::kSucceeded);
  ASSERT_THAT(heard_, SizeIs(2));
  EXPECT_EQ(heard_[0].point, 0);
  EXPECT_THAT(heard_[0].looked_at, ElementsAre(0, 2));
  EXPECT_EQ(heard_[0].values, 90);
  EXPECT_EQ(heard_[1].point, 1);
  EXPECT_THAT(heard_[1].looked_at, ElementsAre(3));
  EXPECT_THAT(heard_[0].diagnostics, ElementsAre(table_.Of("job-a").at(0)));
  EXPECT_THAT(heard_[1].diagnostics, ElementsAre(::testing::Field(&Diagnostic::point, 1)));
}

TEST_F(TraceTableTest, ForgetsTheJobThatWasNotFedForLongest) {
  Add(0, 0, 4);
  for (size_t i = 1; i < TraceTable::kMostJobs; ++i) Add(0, 0, 4, 0, 0, std::nullopt, "job-" + std::to_string(i));
  Add(0, 4, 8);
  Add(0, 0, 4, 0, 0, std::nullopt, "one more");
  EXPECT_THAT(table_.Of("job-1"), IsEmpty());
  EXPECT_THAT(table_.Of("job-a"), SizeIs(1));
  EXPECT_THAT(table_.Of("one more"), SizeIs(1));
}

TEST_F(TraceTableTest, GivesTheValuesOfAQuantityChainByChain) {
  Add(1, 0, 5, 3, 1);
  Add(0, 2, 4);
  const auto noise = table_.TracesOf("job-a", "noise"), still = table_.TracesOf("job-a", "still");
  ASSERT_TRUE(noise.ok() && still.ok()) << noise.status();
  EXPECT_THAT(
      *noise,
      ElementsAre(TracedChain{0, 0, {3, 4}, {Value(0, 3, 0), Value(0, 4, 0)}},
                  TracedChain{1,
                              1,
                              {1, 2, 3, 4, 5},
                              {Value(1, 1, 3), Value(1, 2, 3), Value(1, 3, 3), Value(1, 4, 3), Value(1, 5, 3)}}));
  EXPECT_THAT((*still)[0].values, ElementsAre(7, 7));
}

TEST_F(TraceTableTest, GivesTheNewestWindowWithItsSteps) {
  Add(0, 0, 900);
  Add(0, 900, 2500);
  const auto traces = table_.TracesOf("job-a", "noise");
  ASSERT_TRUE(traces.ok()) << traces.status();
  ASSERT_THAT(traces->at(0).steps, SizeIs(kTraceWindow));
  ASSERT_THAT(traces->at(0).values, SizeIs(kTraceWindow));
  EXPECT_EQ(traces->at(0).steps.front(), 1501);
  EXPECT_EQ(traces->at(0).steps.back(), 2500);
  EXPECT_EQ(traces->at(0).values.front(), Value(0, 1501, 0));
  EXPECT_EQ(traces->at(0).values.back(), Value(0, 2500, 0));
}

TEST_F(TraceTableTest, AJobIsSettledWhenNothingIsExpectedAndItsDiagnosticsAreComputed) {
  int settled = 0;
  const auto wait = [&] { table_.WhenSettled("job-a", [&] { ++settled; }); };
  wait();
  EXPECT_EQ(settled, 1) << "nothing is known of it";
  std::shared_ptr<void> one = table_.Expect("job-a"), other = table_.Expect("job-a");
  const std::shared_ptr<void> elsewhere = table_.Expect("job-b");
  wait();
  one.reset();
  EXPECT_EQ(settled, 1);
  table_.Add({"job-a", 0}, {.point = 0, .quantities = {"noise"}, .steps = {1, 2, 3, 4}, .values = {1, 2, 4, 3}},
             ChainState::kSucceeded, {});
  other.reset();
  EXPECT_EQ(settled, 1) << "the diagnostics are still to be computed";
  executor_.RunUntilIdle();
  EXPECT_EQ(settled, 2);
  EXPECT_THAT(table_.Of("job-a"), SizeIs(1));
}

TEST_F(TraceTableTest, AForgottenJobIsSettled) {
  int settled = 0;
  table_.Add({"job-a", 0}, {.point = 0, .quantities = {"noise"}, .steps = {1}, .values = {1}}, std::nullopt, {});
  table_.WhenSettled("job-a", [&] { ++settled; });
  for (size_t i = 0; i < TraceTable::kMostJobs; ++i) {
    table_.Add({"job-" + std::to_string(i), 0}, {.point = 0, .quantities = {"noise"}, .steps = {1}, .values = {1}},
               std::nullopt, {});
  }
  executor_.RunUntilIdle();
  EXPECT_EQ(settled, 1);
}

TEST_F(TraceTableTest, AnExpectedCommitMayOutliveTheTable) {
  auto table = std::make_unique<TraceTable>(&executor_);
  std::shared_ptr<void> expected = table->Expect("job-a");
  int settled = 0;
  table->WhenSettled("job-a", [&] { ++settled; });
  table.reset();
  expected.reset();
  EXPECT_EQ(settled, 0);
}

TEST_F(TraceTableTest, ListsTheTracedQuantitiesForAnUnknownOne) {
  Add(0, 0, 5);
  const absl::Status other = table_.TracesOf("job-a", "energy").status(),
                     none = table_.TracesOf("job-b", "noise").status();
  EXPECT_TRUE(absl::IsNotFound(other));
  EXPECT_EQ(ReasonOf(other), "NOT_TRACED");
  EXPECT_THAT(std::string(other.message()), HasSubstr("noise, still"));
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("none have come yet"));
}

}  // namespace
}  // namespace chainfleet
