// Tests missing devices.
#include "worker/numerics/arena/device.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

TEST(Device, ParsesOnlyCpuAndCudaN) {
  EXPECT_EQ(ParseDevice("cpu").value(), Device{});
  EXPECT_EQ(ParseDevice("cuda:3").value(), Device{3});
  for (const char* text : {"", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:999"}) {
    EXPECT_EQ(ParseDevice(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Device, TellsNamesOfGpusFromOtherWords) {
  EXPECT_TRUE(IsGpuName("GPU-8f6ae3a4-91d9-4f0e-b6f2-0123456789ab"));
  EXPECT_TRUE(IsGpuName("MIG-8F6AE3A4-91d9-4f0e-b6f2-0123456789ab"));
  for (const char* text : {"", "MIG", "MIG-", "GPU-8f6ae3a4", "FPU-8f6ae3a4-91d9-4f0e-b6f2-0123456789ab",
                           "MIG-8f6ae3a4-91d9-4f0e-b6f2-0123456789az", "MIG-8f6ae3a4-91d9-4f0e-b6f2-0123456789ab ",
                           "MIG-8f6ae3a4a91d9-4f0e-b6f2-0123456789ab", "cpu", "cuda:0"}) {
    EXPECT_FALSE(IsGpuName(text)) << text;
  }
}

TEST(InitializeDevice, ReportsMissingPartsForAGpu) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "this host has a GPU";
  const absl::Status status = InitializeDevice("cuda:0", 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(ReasonOf(status), "NO_DEVICE");
  EXPECT_NE(status.message().find("cuda"), std::string::npos) << status;
}

}  // namespace
}  // namespace chainfleet
