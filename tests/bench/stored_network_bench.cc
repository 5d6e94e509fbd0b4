// Steps SGLD chains of one network in turn: as layers, as a .pt2 file, as a .pt2 file of which only the last layer is
// sampled, and as TorchScript. Needs the files of stored_networks.py in the folder that CHAINFLEET_NETWORKS names.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/base/check.h"
#include "tests/bench/in_turn.h"
#include "tests/bench/network_bench.h"
#include "tests/support/model_files.h"
#include "tests/support/sequence_layers.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kChains = 4;
constexpr int64_t kExamples = 512;

struct Network {
  const char* name;
  std::vector<int64_t> input_shape;
  ModelSpec layers;        // the same network
  const char* last_layer;  // pattern of its parameters
};

std::shared_ptr<const ModelFile> FileNamed(const std::string& name) {
  std::ifstream in(std::string(std::getenv("CHAINFLEET_NETWORKS")) + "/" + name, std::ios::binary);
  CHAINFLEET_CHECK(in.good()) << "no file " << name;
  return FileOf(std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
}

Alternative Stepping(const std::string& name, const ModelSpec& model,
                     const std::shared_ptr<const ResidentDataset>& data,
                     std::shared_ptr<const ModelFile> file = nullptr) {
  auto made = ChainBatch::Create(NetworkBenchPlan(model, *data, kChains, 128), data, "cpu", std::move(file));
  CHAINFLEET_CHECK(made.ok()) << made.status().ToString();
  const std::shared_ptr<ChainBatch> batch = *std::move(made);
  for (int chain = 0; chain < kChains; ++chain) CHAINFLEET_CHECK(batch->AddChain(chain, std::nullopt).ok());
  CHAINFLEET_CHECK(batch->Step().ok());  // measures the run report
  return {name, [batch] { CHAINFLEET_CHECK(batch->Step().ok()); }};
}

void Run(benchmark::State& state, const Network& network) {
  if (std::getenv("CHAINFLEET_NETWORKS") == nullptr) return state.SkipWithError("CHAINFLEET_NETWORKS is not set");
  at::set_num_threads(static_cast<int>(state.range(0)));
  const auto data = SyntheticImages(kExamples, network.input_shape);
  const std::string name = network.name;
  const auto exported = FileNamed(name + ".pt2");
  std::vector<Alternative> alternatives = {Stepping("pt2", {StoredNetworkModel{name}}, data, exported)};
  const ModelSpec script{StoredNetworkModel{name, ModelFormat::kTorchScript}};
  alternatives.push_back(Stepping("torchscript", script, data, FileNamed(name + ".pt")));
  alternatives.push_back(Stepping("layers", network.layers, data));
  const ModelSpec last_layer{StoredNetworkModel{name}, {}, {network.last_layer}};
  alternatives.push_back(Stepping("last_layer", last_layer, data, exported));
  StepInTurn(state, alternatives, state.range(0) == 1 ? StepTime::kThreadCpu : StepTime::kElapsed);
}

LayerList TransformerLayers() {
  const LayerList block = EncoderBlock(32, 4, 64);
  LayerList layers = {{ToSequenceLayer{.width = 16}}, {LinearLayer{32}}};
  for (int i = 0; i < 2; ++i) layers.insert(layers.end(), block.begin(), block.end());
  layers.insert(layers.end(), {{GlobalAvgPoolLayer{}}, {LinearLayer{}}});
  return layers;
}

const bool registered = [] {
  const std::vector<Network> networks = {{"mlp", {1, 28, 28}, {BuiltinModel{"mlp", {200, 200}}}, "5.*"},
                                         {"lenet5", {1, 28, 28}, {BuiltinModel{"lenet5", {}}}, "6.5.*"},
                                         {"resnet20", {3, 32, 32}, {BuiltinModel{"resnet20-frn", {}}}, "13.*"},
                                         {"transformer", {16, 16}, {LayeredModel{TransformerLayers()}}, "out.*"}};
  for (const Network& network : networks) {
    RegisterNetworkBench(std::string("stored_network_steps/") + network.name,
                         [network](benchmark::State& state) { Run(state, network); });
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
