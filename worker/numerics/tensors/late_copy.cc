#include "worker/numerics/tensors/late_copy.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>

namespace chainfleet {
namespace {

// Enough for the copies of two steps: the numbers of one are read when the next is queued.
constexpr size_t kSlots = 8;
constexpr int64_t kAlignment = 64;

struct Slot {
  c10::Event done{c10::DeviceType::CUDA};
  std::shared_ptr<std::vector<char>> home;  // destination of the copy; null if the slot is free
};

struct Ring {
  at::Tensor pinned;  // [kSlots, bytes]
  std::vector<Slot> slots;
  size_t next = 0;

  void Free(size_t at) {
    Slot& slot = slots[at];
    if (slot.home != nullptr && slot.home.use_count() > 1) {
      slot.done.synchronize();
      std::memcpy(slot.home->data(), pinned[static_cast<int64_t>(at)].const_data_ptr(), slot.home->size());
    }
    slot.home.reset();
  }
};

// Never destroyed, because CUDA may be gone by then.
Ring& RingOf(at::Device device) {
  static auto* const rings = new std::map<c10::DeviceIndex, Ring>;
  return (*rings)[device.index()];
}

c10::Stream StreamOf(at::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

void ReserveLateCopies(int64_t bytes, at::Device device) {
  Ring& ring = RingOf(device);
  while (ring.slots.size() < kSlots) {
    Slot slot;
    slot.done.record(StreamOf(device));  // the first record creates the event
    ring.slots.push_back(std::move(slot));
  }
  if (ring.pinned.defined() && ring.pinned.size(1) >= bytes) return;
  const int64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
  const at::Tensor larger = at::empty({static_cast<int64_t>(kSlots), size}, options);
  for (size_t at = 0; at < kSlots; ++at) ring.Free(at);
  ring.pinned = larger;
}

std::function<std::vector<char>()> QueueCopy(const at::Tensor& from, int64_t bytes) {
  ReserveLateCopies(bytes, from.device());
  Ring& ring = RingOf(from.device());
  const size_t at = ring.next++ % kSlots;
  ring.Free(at);
  const int64_t count = bytes / from.element_size();
  const at::Tensor room = ring.pinned[static_cast<int64_t>(at)].narrow(0, 0, bytes).view(from.scalar_type());
  room.copy_(from.view(-1).narrow(0, 0, count), /*non_blocking=*/true);
  Slot& slot = ring.slots[at];
  slot.done.record(StreamOf(from.device()));
  slot.home = std::make_shared<std::vector<char>>(bytes);
  return [&ring, at, home = slot.home] {
    if (ring.slots[at].home == home) ring.Free(at);
    return *home;
  };
}

}  // namespace chainfleet
