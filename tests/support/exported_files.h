// The networks of tests/data/exported that take rows of numbers. REQUIRES: the macro CHAINFLEET_DATA.
#pragma once

#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tests/support/model_files.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/models/exported_network.h"
#include "worker/numerics/models/input_columns.h"

namespace chainfleet {

inline std::string ReadExportedData(const std::string& file) {
  std::ifstream in(std::string(CHAINFLEET_DATA) + "/exported/" + file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// The network, which computes each row anew.
class WithoutFeatures final : public StoredNetwork {
 public:
  explicit WithoutFeatures(std::shared_ptr<const StoredNetwork> whole)
      : StoredNetwork(whole->shape()), whole_(std::move(whole)) {}
  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                    const ForwardMode& mode = {}) const override {
    return whole_->Logits(parameters, x, mode);
  }
  bool TakesChains() const override { return whole_->TakesChains(); }

 private:
  const std::shared_ptr<const StoredNetwork> whole_;
};

// The pattern of the last layer's parameters.
inline std::string HeadOf(const NetworkShape& network) {
  for (const ParameterShape& parameter : network.parameters) {
    if (parameter.name.starts_with("out.")) return "out.*";
  }
  const std::string& last = network.parameters.back().name;
  return last.substr(0, last.rfind('.')) + ".*";
}

struct ExportedFile {
  std::string name;
  std::vector<int64_t> input_shape;
  int64_t outputs = 0;
  bool batches = true;    // each operator has a rule for several chains
  bool is_mixed = false;  // has inputs of several types, side by side
  std::string path = {};  // a file elsewhere, in place of that in tests/data/exported

  std::string Read() const {
    if (path.empty()) return ReadExportedData(name + ".pt2");
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::shared_ptr<const StoredNetwork> Load(const std::string& device = "cpu") const {
    auto network = ExportedNetwork::Load(ExportedModelOf(Read()), input_shape, outputs, at::Device(device));
    CHAINFLEET_CHECK(network.ok()) << network.status().ToString();
    return *std::move(network);
  }

  // Samples the last layer.
  std::shared_ptr<const StoredNetwork> LoadHead(const std::string& device) const {
    auto network = ExportedNetwork::Load(ExportedModelOf(Read()), input_shape, outputs, at::Device(device), {},
                                         {HeadOf(Load()->shape())});
    CHAINFLEET_CHECK(network.ok()) << network.status().ToString();
    return *std::move(network);
  }

  // Rows that the network takes, made of any numbers x [..., row].
  at::Tensor Possible(const at::Tensor& x) const {
    return InputColumns(ExportedModelOf(Read()).program.inputs).Possible(x);
  }

  std::shared_ptr<const ResidentDataset> Data(int64_t rows) const {
    if (!is_mixed) return SyntheticImages(rows, input_shape, outputs);
    Table table = MakeTable(rows, input_shape[0], true);
    table.normalisation = {};
    const at::Tensor possible =
        Possible(at::from_blob(table.inputs.data(), {rows, table.width}, at::kFloat)).contiguous();
    table.inputs.assign(possible.const_data_ptr<float>(), possible.const_data_ptr<float>() + possible.numel());
    return Resident(table, outputs);
  }
};

inline const std::vector<ExportedFile>& ExportedFiles() {
  static const auto* const files = new std::vector<ExportedFile>{{"mlp", {6}, 3},
                                                                 {"norm", {8}, 4},
                                                                 {"conv", {1, 8, 8}, 10},
                                                                 {"residual", {3, 8, 8}, 10},
                                                                 {"mobilenet", {3, 16, 16}, 10},
                                                                 {"upsample", {1, 8, 8}, 3},
                                                                 {"attention", {6, 12}, 4},
                                                                 {"transformer", {7, 5}, 4},
                                                                 {"vit", {3, 16, 16}, 10},
                                                                 {"train_dropout", {6}, 3},
                                                                 {"train_channels", {1, 8, 8}, 3},
                                                                 {"train_norm", {1, 8, 8}, 10},
                                                                 {"train_transformer", {7, 5}, 4},
                                                                 {"gru", {7, 4}, 3, false},
                                                                 {"lstm", {7, 4}, 3, false},
                                                                 {"masked", {20}, 4, true, true}};
  return *files;
}

}  // namespace chainfleet
