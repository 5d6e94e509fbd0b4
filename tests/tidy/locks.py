"""Clang checks the annotations of core/base/mutex.h, which gcc ignores, in the files that have guarded members."""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess

from source_tree import Source, Violation

_GUARDED = re.compile(r"CHAINFLEET_(PT_)?GUARDED_BY\(")
_UNITY = re.compile(r'^#include "([^"]+)"', re.M)
_ERROR = re.compile(r"^([^\s:][^:\n]*):(\d+):\d+: (?:fatal )?error: (.*)$", re.M)


def _flags(command):
    """Returns the part of gcc's command line that clang needs."""
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")):]
    for name in ("-o", "-c"):
        at = words.index(name)
        del words[at:at + 2]
    return [word for word in words if not word.startswith("-W")]


def check_unit(clang, root, flags, code, folder):
    """Errors of `code`, a translation unit. Makes an object of it in `folder`, because ccache keeps only those that have one."""
    source = os.path.join(folder, hashlib.sha256(code.encode()).hexdigest()[:16] + ".cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    launcher = [path for path in [shutil.which("ccache")] if path]
    done = subprocess.run(
        [*launcher, clang, *flags, "-O0", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", "-c", source, "-o",
         source + ".o"], capture_output=True, text=True, check=False, cwd=root)
    found = [Violation(os.path.relpath(os.path.join(root, path), root), int(line), "locks", message)
             for path, line, message in _ERROR.findall(done.stderr)]
    if done.returncode != 0 and not found:
        found = [Violation("(clang)", 1, "locks", done.stderr.strip())]
    return found


def has_guarded_members(path, texts):
    """In `path` itself or in a header that it includes. `texts`: path -> text, of the product."""
    text = texts.get(path, "")
    return any(_GUARDED.search(texts.get(name, "")) for _, name in [(0, path), *Source(path, text).includes()])


def units(root, build, texts):
    """(flags, sources) for each translation unit of the build; of a unity file the sources that have guarded members."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    for command in commands:
        paths = [command["file"]]
        if "/Unity/" in command["file"]:
            with open(command["file"], encoding="utf-8") as file:
                paths = _UNITY.findall(file.read())
        sources = [os.path.relpath(path, root) for path in paths]
        sources = [path for path in sources if path.endswith(".cc") and has_guarded_members(path, texts)]
        if sources:
            yield _flags(command["command"]), sources


def check(sources, root, build, clang):
    texts = {s.path: s.text for s in sources if s.is_product()}
    work = {tuple(paths): flags for flags, paths in units(root, build, texts)}
    if not work:
        return [Violation(build, 1, "locks", "compiles no file with guarded members")]

    folder = os.path.join(build, "locks")
    os.makedirs(folder, exist_ok=True)

    def run(entry):
        return check_unit(clang, root, entry[1], "".join(f'#include "{path}"\n' for path in entry[0]), folder)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        violations = [v for found in pool.map(run, work.items()) for v in found]
    print(f"{sum(map(len, work))} files with guarded members in {len(work)} translation units")
    return violations
