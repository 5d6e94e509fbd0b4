// A CUDA module of another build is refused when it is loaded. The module in this test's folder has structs of another
// size.
#include "worker/numerics/kernels/cuda_module.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(CudaModule, RefusesAModuleOfAnotherBuild) {
  const absl::Status loaded = LoadCudaModule();
  EXPECT_EQ(loaded.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(loaded), "NO_DEVICE");
  EXPECT_THAT(std::string(loaded.message()), testing::HasSubstr("is of another build than this worker"));
}

}  // namespace
}  // namespace chainfleet
