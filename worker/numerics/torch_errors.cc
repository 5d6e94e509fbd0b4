#include "worker/numerics/torch_errors.h"

#include <c10/util/Exception.h>

#include <new>

namespace chainfleet {

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
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    // The CPU allocator throws a plain c10::Error.
    if (why.find("can't allocate memory") != std::string::npos) return out_of_memory(why);
    return absl::InternalError("LibTorch failed in " + what + ": " + why);
  } catch (const std::exception& error) {
    return absl::InternalError(what + " failed: " + error.what());
  } catch (...) {
    return absl::InternalError(what + " failed with an exception of no known type");
  }
}

}  // namespace chainfleet
