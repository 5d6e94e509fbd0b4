"""Which packages only builds need: compilers, headers and build tools. As a program, fails if standard input names one.

  dpkg-query -W -f '${Package}\\n' | python3 -B tests/deploy/image_packages.py
"""
import os
import re
import sys

PACKAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "packages.txt")
ALSO_TO_RUN = {"ca-certificates"}
COMPILER = re.compile(r".*-dev|(gcc|g\+\+|cpp|clang|llvm|ld|make|pkgconf|patch|protobuf-compiler)(-[\d.]+)?|binutils.*")  # gcc-12-base is none


def build_tools():
    """The section `build` of deploy/packages.txt."""
    with open(PACKAGES) as f:
        section = re.search(r"^# build\n(.*?)^#", f.read(), re.M | re.S).group(1)
    return set(section.split()) - ALSO_TO_RUN


def only_for_builds(packages):
    tools = build_tools()
    return sorted(name for name in set(packages) if name in tools or COMPILER.fullmatch(name))


if __name__ == "__main__":
    listed = sys.stdin.read().split()
    if not listed or only_for_builds(listed):
        sys.exit(f"image_packages: {len(listed)} packages, and only builds need these: {only_for_builds(listed)}")
