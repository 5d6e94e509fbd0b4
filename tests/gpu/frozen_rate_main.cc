// Gradients of chains per second where all chains run as one batch and sample the last layer of an exported network:
// whole networks in each step, and over kept features. A tool for people; it keeps no promise.
//
//   frozen_rate NAME CHAINS [DEVICE]     a network of tests/data/exported: vit 16 cpu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "tests/support/exported_files.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 512, kBatch = 128;
constexpr int kRounds = 15;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

using Data = std::shared_ptr<const ResidentDataset>;

class Rate {
 public:
  Rate(const std::shared_ptr<const StoredNetwork>& network, const Data& data, Device device, int64_t chains)
      : layout_(std::make_shared<const Layout>(network->shape().parameters)),
        potential_(MakeEagerPotential(network->shape(), layout_, data,
                                      {data->description().normalisation, {}, 25, CategoricalLikelihood(), {}}, device,
                                      ChainBatching::kTogether, network)),
        theta_(layout_, device),
        gradient_(layout_, device),
        ids_(SomeIds(chains, kBatch, kRows)),
        energy_(static_cast<size_t>(chains)) {
    const ThetaArena some = RandomTheta(layout_, chains);
    for (int64_t row = 0; row < chains; ++row) {
      for (ThetaArena* arena : {&theta_, &gradient_}) {
        arena->AddRow();
        arena->WriteRow(row, some.ReadRow(row));
      }
    }
  }

  // Chain-steps per second of one batch; the energies wait for it.
  double Step() {
    const absl::Duration start = clock_.Monotonic();
    potential_->Evaluate(theta_, {ids_.data(), kBatch}, &gradient_, energy_.data());
    return static_cast<double>(energy_.size()) / absl::ToDoubleSeconds(clock_.Monotonic() - start);
  }

 private:
  const SystemClock clock_;
  const std::shared_ptr<const Layout> layout_;
  const std::unique_ptr<Potential> potential_;
  ThetaArena theta_, gradient_;
  const std::vector<int64_t> ids_;
  std::vector<double> energy_;
};

int Main(const std::string& name, int64_t chains, const std::string& device) {
  CHAINFLEET_CHECK(InitializeDevice(device, 1).ok());
  const auto& files = ExportedFiles();
  const auto file = std::ranges::find(files, name, &ExportedFile::name);
  CHAINFLEET_CHECK(file != files.end()) << "no network " << name;
  const Device where = *ParseDevice(device);
  const auto head = file->LoadHead(device);
  const Data data = file->Data(kRows);
  Rate over_features(head, data, where, chains),
      whole(std::make_shared<const WithoutFeatures>(head), data, where, chains);
  std::vector<double> rates, rates_of_whole, ratios;
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    const double before = whole.Step(), after = over_features.Step();
    if (round < 0) continue;
    rates_of_whole.push_back(before);
    rates.push_back(after);
    ratios.push_back(after / before);
  }
  std::printf("%s, %s, %ld chains: %.0f chain-steps/s without features, %.0f with them, ratio %.2f\n", name.c_str(),
              device.c_str(), static_cast<long>(chains), Median(rates_of_whole), Median(rates), Median(ratios));
  return 0;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  if (argc >= 3) return chainfleet::Main(argv[1], std::atol(argv[2]), argc > 3 ? argv[3] : "cpu");
  std::fprintf(stderr, "usage: frozen_rate NAME CHAINS [DEVICE]\n");
  return 1;
}
