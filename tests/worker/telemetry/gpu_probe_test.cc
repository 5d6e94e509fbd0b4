#include "worker/telemetry/gpu_probe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(GpuProbe, ReadsEveryDeviceAndLeavesOutWhatItsDriverDoesNotTell) {
  const auto probe = GpuProbe::Open(NVML_STUB, std::nullopt);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const std::vector<GpuReading> readings = (*probe)->Read();
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].utilization, 0.87);
  EXPECT_EQ(readings[0].memory_used_bytes, 20.0 * (1 << 30));
  EXPECT_EQ(readings[0].memory_size_bytes, 80.0 * (1 << 30));
  EXPECT_EQ(readings[0].power_watts, 312.5);
  EXPECT_EQ(readings[1].index, 1);
  EXPECT_EQ(readings[1].power_watts, std::nullopt);
}

TEST(GpuProbe, ReadsOnlyTheWorkersOwnDevice) {
  const auto probe = GpuProbe::Open(NVML_STUB, 1);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const std::vector<GaugeFamily> families = GpuGauges((*probe)->Read());
  ASSERT_EQ(families.size(), 4u);
  EXPECT_EQ(families[1].name, "chainfleet_gpu_memory_used_bytes");
  ASSERT_EQ(families[1].samples.size(), 1u);
  EXPECT_EQ(families[1].samples[0].labels, (Labels{{"gpu", "1"}}));
  EXPECT_EQ(families[1].samples[0].value, 1.0 * (1 << 30));
  EXPECT_TRUE(families[3].samples.empty()) << "no power sensor";
}

TEST(GpuProbe, FindsTheDeviceBehindWhatCudaIsShown) {
  EXPECT_EQ(DriverIndex(1, ""), 1);
  EXPECT_EQ(DriverIndex(0, "3"), 3);
  EXPECT_EQ(DriverIndex(1, "4, 2"), 2);
  EXPECT_EQ(DriverIndex(2, "4,2"), std::nullopt);
  EXPECT_EQ(DriverIndex(0, "GPU-8932f937-d72c"), std::nullopt);
}

TEST(GpuProbe, ReportsWhyThereIsNoGpu) {
  const auto absent = GpuProbe::Open("/nowhere/libnvidia-ml.so.1", std::nullopt);
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.status().message()), testing::HasSubstr("/nowhere/libnvidia-ml.so.1"));
  const auto other = GpuProbe::Open("libm.so.6", std::nullopt);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(other.status().message()), testing::HasSubstr("nvmlInit_v2"));
}

}  // namespace
}  // namespace chainfleet
