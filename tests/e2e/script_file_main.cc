// script_file FILE INPUTS [HIDDEN...] CLASSES: writes a TorchScript mlp as torch.jit.save does. If BODY is set, it is
// the body of forward(x).
#include <cstdlib>
#include <fstream>
#include <vector>

#include "tests/support/script_file.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  std::ofstream file(argv[1], std::ios::binary);
  const char* body = std::getenv("BODY");
  file << chainfleet::ScriptedMlp(sizes, body == nullptr ? "return self.logits(x)" : body);
  return file.good() ? 0 : 1;
}
