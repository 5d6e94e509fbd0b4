#include "worker/numerics/models/module_memory.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace chainfleet {
namespace {

constexpr size_t kModuleAlignment = 64;  // LibTorch aligns its own tensors so
constexpr int64_t kMostAxes = 64;

char* MapModuleMemory(int fd) {
  void* const at = mmap(nullptr, ModuleMemory::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

// Returns the next `bytes` bytes.
char* Advance(char* data, size_t* at, size_t bytes) {
  TORCH_CHECK(bytes <= ModuleMemory::kBytes - *at, "a pass of the module takes more than ", ModuleMemory::kBytes >> 20,
              " MiB for its tensors");
  char* const taken = data + *at;
  *at += bytes;
  return taken;
}

}  // namespace

ModuleMemory::ModuleMemory(int fd) : data_(MapModuleMemory(fd)) {}

ModuleMemory::~ModuleMemory() {
  if (data_ != nullptr) munmap(data_, kBytes);
}

char* ModuleWriter::Take(size_t bytes) { return Advance(data_, &at_, bytes); }

void ModuleWriter::Add(int64_t number) { std::memcpy(Take(sizeof number), &number, sizeof number); }

void ModuleWriter::Add(at::IntArrayRef numbers) {
  Add(static_cast<int64_t>(numbers.size()));
  for (const int64_t number : numbers) Add(number);
}

void ModuleWriter::Add(std::string_view text) {
  Add(static_cast<int64_t>(text.size()));
  std::memcpy(Take(text.size()), text.data(), text.size());
}

void ModuleWriter::Add(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "a module takes and gives float32, not ", tensor.scalar_type());
  const at::Tensor values = tensor.detach().cpu().contiguous();
  const size_t place = reinterpret_cast<uintptr_t>(values.const_data_ptr()) % kModuleAlignment;
  const size_t begin = at_ + sizeof(int64_t);
  const size_t skipped = (kModuleAlignment + place - begin % kModuleAlignment) % kModuleAlignment;
  Add(static_cast<int64_t>(skipped));
  Take(skipped);
  std::memcpy(Take(values.nbytes()), values.const_data_ptr(), values.nbytes());
}

char* ModuleReader::Take(size_t bytes) { return Advance(data_, &at_, bytes); }

int64_t ModuleReader::Number() {
  int64_t number;
  std::memcpy(&number, Take(sizeof number), sizeof number);
  return number;
}

std::vector<int64_t> ModuleReader::Shape() {
  const int64_t axes = Number();
  TORCH_CHECK(axes >= 0 && axes <= kMostAxes, "the message has a tensor of ", axes, " axes");
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < axes; ++i) shape.push_back(Number());
  return shape;
}

std::string ModuleReader::Text(size_t most) {
  const int64_t size = Number();
  TORCH_CHECK(size >= 0 && static_cast<size_t>(size) <= most, "the message has a text of ", size, " bytes");
  return {Take(static_cast<size_t>(size)), static_cast<size_t>(size)};
}

at::Tensor ModuleReader::Tensor(at::IntArrayRef shape) {
  size_t bytes = sizeof(float);
  for (const int64_t axis : shape) {
    TORCH_CHECK(axis >= 0 && static_cast<size_t>(axis) <= ModuleMemory::kBytes / bytes, "the message has a tensor of ",
                shape);
    bytes *= std::max<size_t>(static_cast<size_t>(axis), 1);
  }
  if (std::ranges::find(shape, 0) != shape.end()) bytes = 0;
  const int64_t skipped = Number();
  TORCH_CHECK(skipped >= 0 && skipped < static_cast<int64_t>(kModuleAlignment),
              "the message has a tensor at an odd place");
  Take(static_cast<size_t>(skipped));
  TORCH_CHECK((at_ % sizeof(float)) == 0, "the message has a tensor at an odd place");
  return at::from_blob(Take(bytes), shape, at::kFloat);
}

}  // namespace chainfleet
