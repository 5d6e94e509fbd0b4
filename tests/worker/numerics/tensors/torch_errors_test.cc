// Which exceptions mean that memory is short, so that a batch is split, and which mean that the device is lost. The
// texts are those of LibTorch 2.11 and cuDNN 9.
#include "worker/numerics/tensors/torch_errors.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

namespace chainfleet {
namespace {

template <typename Exception>
absl::Status StatusAfter(const Exception& exception) {
  return CatchTorch("a batch", [&]() -> absl::Status { throw exception; });
}

absl::Status StatusOfText(const std::string& text) { return StatusAfter(c10::Error({"f", "f.cc", 1}, text)); }

absl::Status StatusOfCudaError(int code, const std::string& text) {
  return StatusAfter(c10::AcceleratorError({"f", "f.cc", 1}, code, "CUDA error: " + text + "\nSearch for `"));
}

TEST(TorchErrors, MemoryIsShortBeforeAnyText) {
  EXPECT_TRUE(absl::IsResourceExhausted(StatusAfter(std::bad_alloc())));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusAfter(
      c10::OutOfMemoryError({"f", "f.cc", 1}, "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total"))));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOfCudaError(2, "out of memory")));
}

class TextsOfShortMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(TextsOfShortMemory, LetABatchBeSplit) {
  const absl::Status status = StatusOfText(GetParam());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find(GetParam()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    OfLibraries, TextsOfShortMemory,
    ::testing::Values(
        "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 "
        "bytes. Error code 12",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cuDNN Frontend error: [cudnn_frontend] Error: No execution plans support the graph. "
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "GET was unable to find an engine to execute this computation",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "CUDA driver error: out of memory"));

TEST(TorchErrors, OtherTextsAreNoMatterOfMemory) {
  for (const char* text : {"cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
                           "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
                           "CUDA driver error: invalid argument", "mat1 and mat2 shapes cannot be multiplied"}) {
    const absl::Status status = StatusOfText(text);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(ReasonOf(status), "") << status;
  }
}

TEST(TorchErrors, AnErrorOfCudaLosesTheDevice) {
  for (const int code : {46, 700, 719}) {
    const absl::Status status = StatusOfCudaError(code, "an illegal memory access was encountered");
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(ReasonOf(status), kDeviceLost) << status;
  }
}

}  // namespace
}  // namespace chainfleet
