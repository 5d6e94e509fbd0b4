// LibTorch's CUDA back end on the host: with this in libchainfleet_cuda.so the worker's unchanged code for "cuda:0" and
// "cuda:1" runs in the CPU-only LibTorch. Each operator sees the memory of its tensors as a CPU's and is computed
// there.
//
//   a tensor of the host (but for scalars) or of another device among an operator's arguments fails
//   new memory and freed memory are NaN: what is read before it is written, or after it was given back, shows
//   a non-blocking copy from or to pinned memory is late: it happens when the host waits for it. Until then its target
//   on the host is NaN, and a host that has changed or freed its source fails
//   a test may let an allocation fail, and count what is done (fake_gpu.h)
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "fake_gpu.h"

namespace {

using chainfleet::fake_cuda::Fault;

chainfleet::fake_cuda::Counts counts;

constexpr c10::DeviceIndex kDevices = 2;
thread_local c10::DeviceIndex current = 0;

at::Device Cuda(c10::DeviceIndex index) { return {at::kCUDA, index}; }

c10::Allocator* PinnedAllocator();

int forbidden = -1;

void Touch(at::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : current;
  TORCH_CHECK(!device.is_cuda() || index != forbidden, "a touch of ", device.str(), ", which a test forbids");
}

// A block of memory of a device, or of the host's pinned memory.
constexpr c10::DeviceIndex kHost = -1;
struct Block {
  const char* end;
  c10::DeviceIndex device;
};

// By their starts. Never destroyed: tensors may outlive it.
std::map<const char*, Block>& Blocks() {
  static auto* const blocks = new std::map<const char*, Block>;
  return *blocks;
}

// LibTorch's thread for a device may still free what a backward pass saved when the host already allocates again.
chainfleet::Mutex& blocks_mutex = *new chainfleet::Mutex;  // never destroyed either

// Nullopt outside of all blocks.
std::optional<Block> BlockAt(const void* memory) {
  chainfleet::MutexLock lock(&blocks_mutex);
  const auto* const at = static_cast<const char*>(memory);
  const auto after = Blocks().upper_bound(at);
  if (after == Blocks().begin() || at >= std::prev(after)->second.end) return std::nullopt;
  return std::prev(after)->second;
}

bool IsPinned(const void* memory) {
  const std::optional<Block> block = BlockAt(memory);
  return block && block->device == kHost;
}

// The registry looks for this name.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Device getDeviceFromPtr(void* memory) const override {
    const std::optional<Block> block = BlockAt(memory);
    TORCH_CHECK(block && block->device != kHost, "memory of no GPU");
    return Cuda(block->device);
  }
  int getNumGPUs() const override { return kDevices; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex current_device() const override { return current; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  bool isPinnedPtr(const void* memory) const override { return IsPinned(memory); }
};

using at::CUDAHooksArgs;
using at::CUDAHooksInterface;
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

// Statistics of both devices together.
c10::CachingDeviceAllocator::DeviceStats memory_stats;
c10::CachingAllocator::Stat& bytes_in_use = memory_stats.allocated_bytes[0];

constexpr size_t kAlignment = 512;
constexpr int kNan = 0xff;  // in each byte: a NaN of every floating type

void Free(void* memory) {
  if (memory == nullptr) return;
  chainfleet::MutexLock lock(&blocks_mutex);
  const auto found = Blocks().find(static_cast<char*>(memory));
  const auto size = static_cast<size_t>(found->second.end - found->first);
  std::memset(memory, kNan, size);
  if (found->second.device != kHost) bytes_in_use.decrease(size);
  Blocks().erase(found);
  std::free(memory);
}

// Counts down to the allocation that fails; 0: none does.
int64_t until_failure = 0;
Fault fault = Fault::kOutOfMemory;
constexpr int32_t kIllegalAddress = 700;

void FailIfDue() {
  if (until_failure == 0 || --until_failure > 0) return;
  TORCH_CHECK_WITH(OutOfMemoryError, fault != Fault::kOutOfMemory, "the fake GPU has no memory left");
  until_failure = 1;  // from now on all fail
  throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kIllegalAddress, "CUDA error: an illegal address");
}

void* Allocate(size_t size, c10::DeviceIndex device) {
  FailIfDue();
  ++counts.allocations;
  if (size == 0) return nullptr;
  const size_t padded = (size + kAlignment - 1) / kAlignment * kAlignment;
  char* const block = static_cast<char*>(std::aligned_alloc(kAlignment, padded));
  std::memset(block, kNan, padded);
  chainfleet::MutexLock lock(&blocks_mutex);
  if (device != kHost) bytes_in_use.increase(padded);
  Blocks()[block] = {block + padded, device};
  return block;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    Touch(Cuda(current));
    void* const memory = Allocate(size, current);
    return {memory, memory, &Free, Cuda(current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { ++counts.emptied; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return memory_stats; }
  void resetAccumulatedStats(c10::DeviceIndex) override { bytes_in_use.reset_accumulated(); }
  void resetPeakStats(c10::DeviceIndex) override { bytes_in_use.reset_peak(); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {chainfleet::fake_cuda::kMemoryBytes - bytes_in_use.current, chainfleet::fake_cuda::kMemoryBytes};
  }
};
Allocator allocator;
const c10::AllocatorRegisterer<at::kCUDA> registered(&allocator);

class OfPinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* const memory = Allocate(size, kHost);
    return {memory, memory, &Free, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }
};

c10::Allocator* PinnedAllocator() {
  static OfPinnedMemory of_pinned_memory;
  return &of_pinned_memory;
}

// A copy that the host has not waited for. It keeps pinned memory that LibTorch allocated, as the allocator of a real
// GPU does, and no memory that the caller owns.
struct LateCopy {
  int64_t number;
  c10::DeviceIndex device;
  bool is_to_host;
  void* host;
  std::vector<char> bytes;
  at::Storage kept;
};
std::list<LateCopy> late_copies;
int64_t last_late = 0;

// How far a device is when an event is recorded.
struct Mark {
  c10::DeviceIndex device;
  int64_t last_late;
  int64_t work;
};

int64_t Work() { return counts.operators + counts.launches + counts.copies; }
bool IsBefore(const LateCopy& copy, const Mark& mark) {
  return copy.device == mark.device && copy.number <= mark.last_late;
}

void Finish(const Mark& mark) {
  for (auto at = late_copies.begin(); at != late_copies.end();) {
    if (!IsBefore(*at, mark)) {
      ++at;
      continue;
    }
    const LateCopy copy = std::move(*at);
    at = late_copies.erase(at);
    TORCH_CHECK(IsPinned(copy.host), "pinned memory was freed before a copy was done with it");
    if (copy.is_to_host) {
      std::memcpy(copy.host, copy.bytes.data(), copy.bytes.size());
    } else {
      TORCH_CHECK(std::memcmp(copy.host, copy.bytes.data(), copy.bytes.size()) == 0,
                  "the host changed pinned memory before it was copied");
    }
  }
}

void WaitForAll(c10::DeviceIndex device) {
  ++counts.blocking;
  Finish({device, last_late, 0});
}

// One stream for each device, on which all but late copies is done at once.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kCUDA; }
  at::Device exchangeDevice(at::Device device) const override { return Cuda(std::exchange(current, device.index())); }
  at::Device getDevice() const override { return Cuda(current); }
  void setDevice(at::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(at::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(at::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(at::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) {
      FailIfDue();
      *event = new Mark;
    }
    *static_cast<Mark*>(*event) = {stream.device_index(), last_late, Work()};
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Mark*>(event); }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    const Mark& mark = *static_cast<Mark*>(event);
    return std::ranges::none_of(late_copies, [&](const LateCopy& copy) { return IsBefore(copy, mark); });
  }
  void synchronizeEvent(void* event) const override {
    const Mark& mark = *static_cast<Mark*>(event);
    counts.blocking += static_cast<int64_t>(mark.work == Work());
    Finish(mark);
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  void synchronizeStream(const c10::Stream& stream) const override { WaitForAll(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex device) const override { WaitForAll(device); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

// The same memory as a tensor of `device`.
at::Tensor On(at::Device device, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  auto* const keep = new at::Storage(tensor.storage());
  c10::DataPtr memory(
      keep->mutable_data(), keep, [](void* kept) { delete static_cast<at::Storage*>(kept); }, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), keep->nbytes(), std::move(memory),
                       device.is_cuda() ? &allocator : c10::GetAllocator(at::kCPU), true);
  const c10::DispatchKeySet keys(device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
  auto view = c10::make_intrusive<c10::TensorImpl>(std::move(storage), keys, tensor.dtype());
  view->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return at::Tensor(std::move(view));
}

// The arguments of one call as the CPU sees them, and what came of it as the device does.
class CallOnTheHost {
 public:
  CallOnTheHost(const c10::OperatorHandle& op, torch::jit::Stack* stack) : schema_(op.schema()), stack_(*stack) {
    const size_t count = schema_.arguments().size(), first = stack_.size() - count;
    for (size_t i = 0; i < count; ++i) TakeArgument(i, &stack_[first + i]);
    if (!device_) device_ = Cuda(current);
    Touch(*device_);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    const size_t results = schema_.returns().size();
    for (size_t i = 0; i < results; ++i) GiveResult(i, &stack_[stack_.size() - results + i]);
  }

 private:
  void TakeArgument(size_t at, c10::IValue* value) {
    if (value->isTensor()) {
      *value = Take(at, value->toTensor());
    } else if (value->isTensorList()) {
      std::vector<at::Tensor> taken;
      for (const at::Tensor& tensor : value->toTensorVector()) taken.push_back(Take(at, tensor));
      *value = taken;
    } else if (value->isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> taken;
      for (const std::optional<at::Tensor>& tensor : value->toOptionalTensorVector()) {
        taken.push_back(tensor ? std::optional(Take(at, *tensor)) : std::nullopt);
      }
      *value = taken;
    } else if (value->isDevice()) {
      device_ = value->toDevice();
      *value = at::Device(at::kCPU);
    }
  }

  at::Tensor Take(size_t at, const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.is_cuda()) {
      TORCH_CHECK(!device_ || *device_ == tensor.device(), schema_.name(), ": tensors of ", device_->str(), " and of ",
                  tensor.device().str());
      device_ = tensor.device();
    } else {
      TORCH_CHECK(tensor.dim() == 0, schema_.name(), ": a tensor of the host among those of a GPU");
    }
    // Kept until the call is over: results of some kernels point to them.
    taken_.push_back({at, tensor, On(at::kCPU, tensor)});
    return taken_.back().on_host;
  }

  void GiveResult(size_t at, c10::IValue* value) {
    if (value->isTensorList()) {
      std::vector<at::Tensor> given;
      for (const at::Tensor& tensor : value->toTensorVector()) given.push_back(On(*device_, tensor));
      *value = given;
    } else if (value->isTensor()) {
      const at::Tensor result = value->toTensor();
      const at::Tensor written = Written(at, result);
      *value = written.defined() ? written : On(*device_, result);
    }
  }

  // The argument that an operator in place, or with an output given, has written; sized as the result is.
  at::Tensor Written(size_t result, const at::Tensor& on_host) const {
    const c10::AliasInfo* const alias = schema_.returns()[result].alias_info();
    if (alias == nullptr || !alias->isWrite()) return {};
    for (const Taken& taken : taken_) {
      const c10::AliasInfo* const own = schema_.arguments()[taken.argument].alias_info();
      if (own == nullptr || *own != *alias) continue;
      c10::TensorImpl* const impl = taken.on_device.unsafeGetTensorImpl();
      if (taken.on_device.sizes() != on_host.sizes()) {
        impl->set_sizes_and_strides(on_host.sizes(), on_host.strides(), on_host.storage_offset());
      }
      if (taken.on_device.storage().data() != on_host.storage().data()) {
        impl->set_storage_keep_dtype(On(*device_, on_host).storage());
      }
      return taken.on_device;
    }
    return {};
  }

  struct Taken {
    size_t argument;
    at::Tensor on_device, on_host;
  };
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  std::optional<at::Device> device_;
  std::vector<Taken> taken_;
};

// The size of what these return is known when the GPU has computed it, or the host reads it.
bool Blocks(const std::string& operation) {
  static const std::set<std::string> blocking = {"aten::_local_scalar_dense", "aten::equal",   "aten::is_nonzero",
                                                 "aten::masked_select",       "aten::nonzero", "aten::_unique2"};
  return blocking.count(operation) != 0;
}

void RunOnTheHost(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++counts.operators;
  if (Blocks(op.schema().name())) WaitForAll(current);
  CallOnTheHost(op, stack);
}

class OnDevice {
 public:
  explicit OnDevice(std::optional<at::Device> device)
      : before_(std::exchange(current, device && device->has_index() ? device->index() : current)) {}
  ~OnDevice() { current = before_; }

 private:
  const c10::DeviceIndex before_;
};

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const OnDevice there(device);
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const OnDevice there(device);
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           type.value_or(at::kFloat));
}

// Operators run at once, so they must find what is on its way to the device. What is on its way home is as it is now.
void CopyLate(at::Tensor& self, const at::Tensor& from) {
  TORCH_CHECK(
      self.dtype() == from.dtype() && self.sizes() == from.sizes() && self.is_contiguous() && from.is_contiguous(),
      "the fake GPU is late only with whole tensors of one type");
  const at::Tensor& host = self.is_cpu() ? self : from;
  const auto* const bytes = static_cast<const char*>(from.const_data_ptr());
  late_copies.push_back({++last_late,
                         (self.is_cpu() ? from : self).get_device(),
                         self.is_cpu(),
                         const_cast<void*>(host.const_data_ptr()),
                         {bytes, bytes + from.nbytes()},
                         host.storage()});
  if (self.is_cpu()) {
    std::memset(self.mutable_data_ptr(), kNan, self.nbytes());
  } else {
    std::memcpy(self.mutable_data_ptr(), bytes, from.nbytes());
  }
}

at::Tensor& Copy(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  Touch(self.device());
  Touch(from.device());
  const bool is_within = self.device() == from.device();
  ++(is_within ? counts.operators : counts.copies);
  if (!is_within) counts.copied_bytes += static_cast<int64_t>(from.nbytes());
  if (!is_within && non_blocking && IsPinned((self.is_cpu() ? self : from).const_data_ptr())) {
    CopyLate(self, from);
    return self;
  }
  // Memory that is not pinned is staged on its way to the device; on its way home the host waits.
  if (!is_within && (!non_blocking || self.is_cpu())) WaitForAll((self.is_cpu() ? from : self).get_device());
  On(at::kCPU, self).copy_(On(at::kCPU, from));
  return self;
}

const at::Tensor& Resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  const size_t bytes = at::detail::computeStorageNbytesContiguous(size, self.dtype().itemsize());
  if (self.storage().nbytes() < bytes) {
    const OnDevice there(self.device());
    self.storage().set_data_ptr_noswap(allocator.allocate(bytes));
    self.storage().set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

at::Tensor AsStrided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                     std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&RunOnTheHost>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", Empty);
  library.impl("empty_strided", EmptyStrided);
  library.impl("copy_", Copy);
  library.impl("resize_", Resize);
  library.impl("as_strided", AsStrided);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  // Without a kernel of this key they would take themselves apart by the device, and not find its parts.
  for (const char* whole : {"convolution", "convolution_backward", "native_batch_norm", "native_batch_norm_backward"}) {
    library.impl(whole, torch::CppFunction::makeFromBoxedFunction<&RunOnTheHost>());
  }
}

}  // namespace

void FailAllocation(int64_t at, Fault kind) {
  until_failure = at;
  fault = kind;
}

void ForbidDevice(int device) { forbidden = device; }

chainfleet::fake_cuda::Counts* FakeGpuCounts() { return &counts; }

void CountLaunch() {
  Touch(Cuda(current));
  ++counts.launches;
}
