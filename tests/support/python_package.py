"""Finds the Python package of the tree. It runs on Debian's numpy, grpcio and protobuf, the oldest that it supports.

Its extras run on Debian's scikit-learn and on ArviZ 0.x. With CHAINFLEET_NEWEST_WHEELS=1 all of them, and MLflow, run on
the newest wheels that deploy/install_deps.sh --with-tests has unpacked for the tests.
"""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "client", "python")
sys.path.insert(0, PACKAGE)
DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
if os.environ.get("CHAINFLEET_NEWEST_WHEELS"):
    sys.path.insert(0, os.path.join(DEPS, "mlflow-skinny-3.17.2"))
    sys.path.insert(0, os.path.join(DEPS, "science-2026.11"))
    sys.path.insert(0, os.path.join(DEPS, "tritonclient-2.73.0"))  # numpy, grpcio and protobuf are among them
else:
    sys.path.append(os.path.join(DEPS, "arviz-0.17.1"))


def enter_context(test, context):
    entered = context.__enter__()
    test.addCleanup(context.__exit__, None, None, None)
    return entered


if not hasattr(unittest.TestCase, "enterContext"):  # Python 3.10
    unittest.TestCase.enterContext = enter_context
import chainfleet  # noqa: E402,F401
