// script_file FILE INPUTS [HIDDEN...] CLASSES: writes a TorchScript mlp, as a user's torch.jit.save would.
#include <cstdlib>
#include <fstream>
#include <vector>

#include "tests/support/script_file.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  std::ofstream file(argv[1], std::ios::binary);
  file << chainfleet::ScriptedMlp(sizes);
  return file.good() ? 0 : 1;
}
