"""Finds the Python package of the tree. It runs on Debian's numpy, grpcio and protobuf, the oldest that it supports.

With CHAINFLEET_NEWEST_WHEELS=1 it runs on the wheels that deploy/install_deps.sh --with-tests has unpacked for the tests.
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "client", "python")
sys.path.insert(0, PACKAGE)
DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
if os.environ.get("CHAINFLEET_NEWEST_WHEELS"):
    sys.path.insert(0, os.path.join(DEPS, "tritonclient-2.73.0"))  # numpy, grpcio and protobuf are among them
import chainfleet  # noqa: E402,F401
