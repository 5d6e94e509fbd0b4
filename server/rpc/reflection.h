// Disables gRPC's reflection service, which checks no token.
#pragma once

#include <grpcpp/grpcpp.h>

namespace chainfleet {

// Leaves the reflection service out of the server that `builder` builds. Linking the library adds the service to every
// builder of the process.
void LeaveOutReflection(grpc::ServerBuilder* builder);

}  // namespace chainfleet
