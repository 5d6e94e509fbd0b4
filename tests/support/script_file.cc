#include "tests/support/script_file.h"

#include <torch/script.h>

#include <sstream>

namespace chainfleet {

std::string ScriptedMlp(const std::vector<int64_t>& sizes, const std::string& body, bool tied) {
  torch::jit::Module module("Mlp");
  std::string logits = "def logits(self, x):\n  h = x.flatten(1)\n";
  for (size_t l = 1; l < sizes.size(); ++l) {
    const std::string name = "fc" + std::to_string(l);
    torch::jit::Module layer("Linear");
    const at::Tensor weight = torch::zeros({sizes[l], sizes[l - 1]});
    layer.register_parameter("weight",
                             tied && l == 2 ? module.attr("fc1").toModule().attr("weight").toTensor() : weight, false);
    layer.register_parameter("bias", torch::zeros({sizes[l]}), false);
    module.register_module(name, layer);
    logits += "  h = torch.linear(h, self." + name + ".weight, self." + name + ".bias)\n";
    if (l + 1 < sizes.size()) logits += "  h = torch.relu(h)\n";
  }
  module.register_buffer("seen", torch::zeros({1}));
  module.define(logits + "  return h\n");
  module.define("def forward(self, x):\n  " + body + "\n");
  std::ostringstream file;
  module.save(file);
  return file.str();
}

}  // namespace chainfleet
