// Gradients of chains per second of an exported network: chains one by one, as one batch, and as one batch that samples
// the last layer alone, of whole networks and over kept features. A tool for people; it keeps no promise.
//
//   frozen_rate NAME CHAINS [DEVICE [BATCH [THREADS]]]     a network of tests/data/exported: vit 16 cpu 128 1
//   frozen_rate FILE:ROW:OUTPUTS CHAINS ...                another file: /tmp/networks/lenet5.pt2:1,28,28:10 8
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/clock.h"
#include "tests/support/exported_files.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 512;
constexpr int kRounds = 15;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

using Data = std::shared_ptr<const ResidentDataset>;

class Rate {
 public:
  Rate(const std::shared_ptr<const StoredNetwork>& network, const Data& data, Device device, int64_t chains,
       int64_t batch, ChainBatching batching = ChainBatching::kTogether)
      : layout_(std::make_shared<const Layout>(network->shape().parameters)),
        potential_(MakeEagerPotential(network->shape(), layout_, data,
                                      {data->description().normalisation, {}, 25, CategoricalLikelihood(), {}}, device,
                                      batching, network)),
        theta_(layout_, device),
        gradient_(layout_, device),
        batch_(batch),
        ids_(SomeIds(chains, batch, kRows)),
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
    potential_->Evaluate(theta_, {ids_.data(), batch_}, &gradient_, energy_.data());
    return static_cast<double>(energy_.size()) / absl::ToDoubleSeconds(clock_.Monotonic() - start);
  }

 private:
  const SystemClock clock_;
  const std::shared_ptr<const Layout> layout_;
  const std::unique_ptr<Potential> potential_;
  ThetaArena theta_, gradient_;
  const int64_t batch_;
  const std::vector<int64_t> ids_;
  std::vector<double> energy_;
};

int Main(const std::string& name, int64_t chains, const std::string& device, int64_t batch, int threads) {
  CHAINFLEET_CHECK(InitializeDevice(device, threads).ok());
  std::vector<ExportedFile> files = ExportedFiles();
  if (const std::vector<std::string> parts = absl::StrSplit(name, ':'); parts.size() == 3) {
    ExportedFile& file = files.emplace_back(ExportedFile{.name = name, .outputs = std::stol(parts[2])});
    for (const auto& side : absl::StrSplit(parts[1], ',')) file.input_shape.push_back(std::stol(std::string(side)));
    file.path = parts[0];
  }
  const auto file = std::ranges::find(files, name, &ExportedFile::name);
  CHAINFLEET_CHECK(file != files.end()) << "no network " << name;
  const Device where = *ParseDevice(device);
  const auto head = file->LoadHead(device);
  const Data data = file->Data(kRows);
  const auto all = file->Load(device);
  Rate one_by_one(all, data, where, chains, batch, ChainBatching::kApart), together(all, data, where, chains, batch),
      without_features(std::make_shared<const WithoutFeatures>(head), data, where, chains, batch),
      over_features(head, data, where, chains, batch);
  const std::vector<std::pair<const char*, Rate*>> rates = {{"one by one", &one_by_one},
                                                            {"as one batch", &together},
                                                            {"last layer as one batch", &without_features},
                                                            {"the same over kept features", &over_features}};
  std::vector<std::vector<double>> seen(rates.size()), ratios(rates.size());
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    std::vector<double> of_round;
    for (const auto& rate : rates) of_round.push_back(rate.second->Step());
    for (size_t i = 0; round >= 0 && i < rates.size(); ++i) {
      seen[i].push_back(of_round[i]);
      ratios[i].push_back(of_round[i] / of_round[i / 2 * 2]);
    }
  }
  std::printf("%s, %s, %ld chains, batches of %ld, %d threads: chain-steps/s", name.c_str(), device.c_str(),
              static_cast<long>(chains), static_cast<long>(batch), threads);
  for (size_t i = 0; i < rates.size(); ++i) {
    std::printf("%s %.0f %s", i == 0 ? "" : ",", Median(seen[i]), rates[i].first);
    if (i % 2 == 1) std::printf(" (%.2f times)", Median(ratios[i]));
  }
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  if (argc >= 3) {
    return chainfleet::Main(argv[1], std::atol(argv[2]), argc > 3 ? argv[3] : "cpu",
                            argc > 4 ? std::atol(argv[4]) : 128, argc > 5 ? std::atoi(argv[5]) : 1);
  }
  std::fprintf(stderr, "usage: frozen_rate NAME CHAINS [DEVICE [BATCH [THREADS]]]\n");
  return 1;
}
