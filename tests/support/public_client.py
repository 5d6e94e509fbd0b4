"""The public client of the Open Inference Protocol, which deploy/install_deps.sh --with-tests has unpacked."""
import os
import sys

DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
sys.path[:0] = [os.path.join(DEPS, "tritonclient-2.73.0"), os.path.join(DEPS, "tritonclient-http-2.73.0")]
import tritonclient.grpc as triton  # noqa: E402
from tritonclient.grpc import service_pb2  # noqa: E402,F401


def tensor(array, datatype):
    """The input x."""
    made = triton.InferInput("x", list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made
