#include "tests/support/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> held = 0;

// Also for null.
void* Noted(void* memory) {
  if (memory != nullptr) held += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return Noted(memory);
}

void Release(void* memory) {
  if (memory != nullptr) held -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

namespace chainfleet::testing {

int64_t HeldBytes() { return held; }

}  // namespace chainfleet::testing

// The array operators call these. So do the nothrow operators, unless a sanitizer replaces them.
void* operator new(size_t size) { return Counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Noted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(size_t size, std::align_val_t align) {
  const auto alignment = static_cast<size_t>(align);
  return Counted(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Release(memory); }
