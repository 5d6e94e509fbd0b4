// Messages between a worker and the process that runs a module: numbers, texts and tensors in memory that both map. No
// side trusts the other: each read is checked against the size of the memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/limits.h"

namespace chainfleet {

// The first number of a message to the process, and of its answer.
enum class ModuleCall : int64_t { kLoad, kDescribe, kForward, kBackward };
enum class ModuleAnswer : int64_t { kDone, kRefused, kFailed };

// Descriptors of the process: one end of a socket pair, and the memory. A byte on the socket says that a message or its
// answer is complete.
inline constexpr int kModuleSocket = 0, kModuleMemory = 1;

// The memory for one message. It takes room only where it was written.
class ModuleMemory {
 public:
  static constexpr size_t kBytes = 4 * limits::kMaxModelBytes;

  // Maps the memory of a descriptor; data() is null if that fails.
  explicit ModuleMemory(int fd);
  ~ModuleMemory();
  ModuleMemory(const ModuleMemory&) = delete;
  ModuleMemory& operator=(const ModuleMemory&) = delete;

  char* data() const { return data_; }

 private:
  char* const data_;
};

// Writes a message. Throws c10::Error if the memory is too small.
class ModuleWriter {
 public:
  explicit ModuleWriter(const ModuleMemory& memory) : data_(memory.data()) {}

  void Add(int64_t number);
  void Add(at::IntArrayRef numbers);  // with their count
  void Add(std::string_view text);
  // Float32 values of any device, at the same distance from a multiple of 64 as the tensor: libraries of LibTorch
  // choose kernels by alignment.
  void Add(const at::Tensor& tensor);

 private:
  char* Take(size_t bytes);

  char* const data_;
  size_t at_ = 0;
};

// Reads a message. Throws c10::Error if something does not fit into the memory.
class ModuleReader {
 public:
  explicit ModuleReader(const ModuleMemory& memory) : data_(memory.data()) {}

  int64_t Number();
  std::vector<int64_t> Shape();
  std::string Text(size_t most);
  // A view of the memory, which the next message overwrites.
  at::Tensor Tensor(at::IntArrayRef shape);

 private:
  char* Take(size_t bytes);

  char* const data_;
  size_t at_ = 0;
};

}  // namespace chainfleet
