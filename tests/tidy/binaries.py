"""The libraries that a built binary is linked to."""

import re
import subprocess

from source_tree import Violation

_TORCH = re.compile(r"lib(torch|c10|caffe2|cudart|nv\w+)[\w.-]*\.so")


def check_libraries(binary, ldd_output):
    names = sorted({m.group() for m in _TORCH.finditer(ldd_output)})
    return [Violation(binary, 1, "no-torch", f"is linked to {name}") for name in names]


def check_server(binary):
    done = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [Violation(binary, 1, "no-torch", f"ldd cannot read it: {done.stderr.strip()}")]
    return check_libraries(binary, done.stdout)
