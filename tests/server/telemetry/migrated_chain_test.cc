// A chain that another worker takes over continues in the same series.
#include <algorithm>

#include "server/telemetry/fleet_gauges.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

class MigratedChain : public DispatcherTest {
 protected:
  // Returns the only series of a family.
  GaugeFamily::Sample Only(const std::string& name) {
    const auto none = [](const std::string&) { return std::vector<Diagnostic>(); };
    const std::vector<GaugeFamily> all =
        FleetGauges(dispatcher_->Summary(static_cast<size_t>(kMostSeriesOfAKind)), none, {});
    const auto family = std::ranges::find(all, name, &GaugeFamily::name);
    EXPECT_TRUE(family != all.end() && family->samples.size() == 1) << name;
    return family != all.end() && !family->samples.empty() ? family->samples[0] : GaugeFamily::Sample();
  }
};

TEST_F(MigratedChain, KeepsItsLabelsAndItsDraws) {
  FakeWorker first("w1"), second("w2");
  const ChainId chain = LeaseOne(&first);
  for (int i = 0; i < 3; ++i) Advance(&first, chain);
  const GaugeFamily::Sample draws = Only("chainfleet_chain_draws"), energy = Only("chainfleet_chain_energy");
  EXPECT_EQ(draws.labels, (Labels{{"job", chain.job}, {"chain", "0"}}));
  EXPECT_EQ(draws.value, 3);
  EXPECT_EQ(energy.labels, draws.labels);

  executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  for (int i = 0; i < 4 && second.chains.empty(); ++i) Sync(&second);
  ASSERT_TRUE(second.chains.contains(chain));
  EXPECT_EQ(Chain(chain).worker, "w2");
  EXPECT_GT(Chain(chain).lease_epoch, 1);
  EXPECT_EQ(Only("chainfleet_chain_draws").labels, draws.labels);
  EXPECT_EQ(Only("chainfleet_chain_draws").value, 3);
  Advance(&second, chain);
  EXPECT_EQ(Only("chainfleet_chain_draws").labels, draws.labels);
  EXPECT_EQ(Only("chainfleet_chain_draws").value, 4);
  EXPECT_EQ(Only("chainfleet_chain_energy").labels, draws.labels);
}

}  // namespace
}  // namespace chainfleet
