#!/usr/bin/env python3
"""Proves that a commit changes comments only: the objects of both trees are the same, bit by bit, without debug data.

  tests/tidy/same_objects.py BEFORE AFTER [--build DIR] [--jobs N] [--sample N]

BEFORE and AFTER are commits. The script compiles each changed .cc or .cu file, and for the changed headers as few
files as include them all, with the flags of DIR/compile_commands.json (build/release, configured and with generated
protobuf sources). Both trees are compiled at the same path, so that __FILE__ does not differ, then `strip -g` removes
line tables. CHECKs hold line numbers: a comment above one must keep its number of lines. nvcc names each of its objects
at random, so .cu files are compared after preprocessing. --sample N compiles at most N files and lists the changed
files that these do not cover. Exits 1 and names the files whose objects differ.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (".cc", ".cu")


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def commands(build):
    """Source file -> (working directory, compiler and flags); the members of a unity file have its flags."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        arguments = [a for a in shlex.split(entry["command"]) if not a.endswith("/ccache")]
        at = arguments.index("-c")
        flags = arguments[:at] + arguments[at + 2:]
        at = flags.index("-o")
        value = entry["directory"], flags[:at] + flags[at + 2:]
        file = pathlib.Path(entry["file"])
        members = [file]
        if "Unity" in file.parts and file.exists():
            members = [pathlib.Path(m) for m in re.findall(r'#include "([^"]+)"', file.read_text())]
        for member in members:
            if member.is_relative_to(ROOT):
                found.setdefault(str(member.relative_to(ROOT)), value)
    return found


def reached(tree, unit):
    """The files of the tree that `unit` includes, itself among them."""
    seen, waiting = set(), [unit]
    while waiting:
        path = waiting.pop()
        if path in seen or not (tree / path).is_file():
            continue
        seen.add(path)
        waiting += re.findall(r'^\s*#include "([^"]+)"', (tree / path).read_text(), re.MULTILINE)
    return seen


def choose(tree, changed, units, most):
    """Files to compile so that each changed file is in one of them, and the changed files left over."""
    chosen = sorted(path for path in changed if path in units)[:most]
    left = set(changed).difference(*(reached(tree, unit) for unit in chosen))
    offers = {unit: left & reached(tree, unit) for unit in units} if left and len(chosen) < most else {}
    while left and len(chosen) < most:
        best = max(sorted(offers), key=lambda unit: len(offers[unit] & left))
        if not offers[best] & left:
            break
        chosen.append(best)
        left -= offers[best]
    return chosen, sorted(left)


def result(tree, build, unit, command, output):
    """Returns the compiler's output for one file, without debug information."""
    directory, flags = command
    moved = [f.replace(str(build), "\0").replace(str(ROOT), str(tree)).replace("\0", str(build)) for f in flags]
    if unit.endswith(".cu"):
        text = subprocess.run([*moved, "-E", tree / unit], cwd=directory, check=True, capture_output=True).stdout
        return b"\n".join(line for line in text.split(b"\n") if line.strip() and not line.startswith(b"#"))
    subprocess.run([*moved, "-frandom-seed=0", "-c", tree / unit, "-o", output], cwd=directory, check=True)
    subprocess.run(["strip", "-g", output], check=True)
    content = pathlib.Path(output).read_bytes()
    os.remove(output)
    return content


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sample", type=int, default=sys.maxsize)
    options = parser.parse_args(arguments)
    build = options.build.resolve()
    names = git("diff", "--name-only", options.before, options.after).decode().split()
    changed = [name for name in names if name.endswith((".h", *SOURCES))]
    units = commands(build)
    objects, chosen, left = {}, None, []
    with tempfile.TemporaryDirectory() as folder:
        for revision in (options.before, options.after):
            tree = pathlib.Path(folder, "tree")
            subprocess.run(["rm", "-rf", tree], check=True)
            tree.mkdir()
            subprocess.run(["tar", "-x", "-C", tree], input=git("archive", revision), check=True)
            if chosen is None:
                chosen, left = choose(tree, changed, units, options.sample)
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                objects[revision] = list(pool.map(
                    lambda unit: result(tree, build, unit, units[unit], f"{folder}/{chosen.index(unit)}.o"), chosen))
    differ = [u for u, a, b in zip(chosen, objects[options.before], objects[options.after]) if a != b]
    for unit in differ:
        print(f"{unit}: its object differs")
    for name in left:
        print(f"{name}: in none of the compiled files")
    print(f"{len(chosen) - len(differ)} of {len(chosen)} objects are the same, for {len(changed)} changed files")
    return 1 if differ or (left and options.sample == sys.maxsize) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
