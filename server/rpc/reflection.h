// gRPC's reflection service, which asks for no token.
#pragma once

#include <grpcpp/grpcpp.h>

namespace chainfleet {

// Leaves the reflection service out of what `builder` builds. The library adds the service to every builder of a
// process that is linked with it.
void LeaveOutReflection(grpc::ServerBuilder* builder);

}  // namespace chainfleet
