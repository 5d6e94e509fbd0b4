// The fake GPU is late with copies from and to pinned memory, as a real one may be: these tests show that code which
// does not wait, or gives memory up too early, fails on it.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

const at::Device kGpu(at::kCUDA, 0);

class LateCopies : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }

  static c10::Stream Stream() { return c10::impl::VirtualGuardImpl(at::kCUDA).getStream(kGpu); }
  static at::Tensor Pinned(float value) { return at::full({3}, value, at::dtype(at::kFloat).pinned_memory(true)); }
  static float First(const at::Tensor& host) { return host.const_data_ptr<float>()[0]; }
  static void WaitForTheDevice() { c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(0); }
};

TEST_F(LateCopies, ToTheHostAreNanUntilTheHostWaitsForThem) {
  const at::Tensor on_device = at::full({3}, 5, at::dtype(at::kFloat).device(kGpu));
  const at::Tensor first = on_device.to(at::kCPU, /*non_blocking=*/true);
  ASSERT_TRUE(first.is_pinned());
  c10::Event event(c10::DeviceType::CUDA);
  event.record(Stream());
  on_device.fill_(6);
  const at::Tensor second = on_device.to(at::kCPU, /*non_blocking=*/true);
  EXPECT_TRUE(std::isnan(First(first)));
  EXPECT_FALSE(event.query());
  event.synchronize();
  EXPECT_EQ(First(first), 5);
  EXPECT_TRUE(std::isnan(First(second)));
  EXPECT_EQ(on_device.sum().item<float>(), 18);
  EXPECT_EQ(First(second), 6);
}

TEST_F(LateCopies, AreNeverLateFromPageableMemory) {
  const at::Tensor on_device = at::full({3}, 5, at::dtype(at::kFloat)).to(kGpu, at::kFloat, /*non_blocking=*/true);
  at::Tensor host = at::zeros({3}, at::kFloat);
  host.copy_(on_device, /*non_blocking=*/true);
  EXPECT_EQ(First(host), 5);
}

TEST_F(LateCopies, FailIfTheHostChangesTheSource) {
  at::Tensor host = Pinned(5);
  const at::Tensor on_device = host.to(kGpu, at::kFloat, /*non_blocking=*/true);
  host.fill_(6);
  EXPECT_ANY_THROW(WaitForTheDevice());
  EXPECT_NO_THROW(WaitForTheDevice());
}

TEST_F(LateCopies, FailIfTheCallerFreesTheSource) {
  std::optional<at::Tensor> host = Pinned(5);
  const at::Tensor on_device = at::from_blob(host->mutable_data_ptr(), {3}, at::kFloat).to(kGpu, at::kFloat, true);
  host.reset();
  EXPECT_ANY_THROW(WaitForTheDevice());
}

TEST_F(LateCopies, KeepTheMemoryThatLibTorchAllocated) {
  const at::Tensor on_device = Pinned(5).to(kGpu, at::kFloat, /*non_blocking=*/true);
  EXPECT_NO_THROW(WaitForTheDevice());
  EXPECT_EQ(on_device.sum().item<float>(), 15);
}

}  // namespace
}  // namespace chainfleet
