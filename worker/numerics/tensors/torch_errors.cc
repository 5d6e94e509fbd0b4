#include "worker/numerics/tensors/torch_errors.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

namespace chainfleet {

namespace {

// Errors without a type of their own: of the CPU's allocator, and of libraries that allocate GPU memory themselves.
// LibTorch tries every cuDNN plan for a convolution and drops the error of each, also out-of-memory errors, so only the
// last text is left. A convolution without any plan gives the same text, and still fails with a single chain.
bool IsOutOfMemory(const std::string& why) {
  constexpr const char* kTexts[] = {"can't allocate memory",
                                    "CUBLAS_STATUS_ALLOC_FAILED",
                                    "CUDNN_STATUS_ALLOC_FAILED",
                                    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
                                    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
                                    "CUSOLVER_STATUS_ALLOC_FAILED",
                                    "CUDA driver error: out of memory",
                                    "unable to find an engine to execute this computation"};
  return std::ranges::any_of(kTexts, [&](const char* text) { return why.find(text) != std::string::npos; });
}

}  // namespace

absl::Status StatusOfException(const std::string& what) {
  const auto out_of_memory = [&what](const std::string& why) {
    return absl::ResourceExhaustedError("out of memory in " + what + ": " + why);
  };
  try {
    throw;
  } catch (const std::bad_alloc& error) {
    return out_of_memory(error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return out_of_memory(error.what_without_backtrace());
  } catch (const c10::AcceleratorError& error) {
    const std::string why = error.what_without_backtrace();
    constexpr int32_t kCudaErrorMemoryAllocation = 2;
    if (error.get_error_code() == kCudaErrorMemoryAllocation) return out_of_memory(why);
    return WithReason(absl::InternalError("the device failed in " + what + ": " + why), kDeviceLost);
  } catch (const c10::IndexError& error) {
    return absl::InvalidArgumentError(what + ": " + error.what_without_backtrace());
  } catch (const c10::ValueError& error) {
    return absl::InvalidArgumentError(what + ": " + error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    if (IsOutOfMemory(why)) return out_of_memory(why);
    return absl::InternalError("LibTorch failed in " + what + ": " + why);
  } catch (const std::exception& error) {
    return absl::InternalError(what + " failed: " + error.what());
  } catch (...) {
    return absl::InternalError(what + " failed with an exception of no known type");
  }
}

}  // namespace chainfleet
