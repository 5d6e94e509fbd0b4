"""The files of the tree, and C++ text with comments, strings and preprocessor lines blanked out."""

import dataclasses
import functools
import os
import re

ROOTS = ("core", "server", "worker", "client", "tests", "proto", "cmake", "deploy", "docs")
CPP = (".h", ".cc", ".cu")
TEXT = (".py", ".sh", ".proto", ".cmake", ".md", ".yml", ".yaml", ".service")

_BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.S)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


@dataclasses.dataclass(frozen=True)
class Source:
    path: str  # from the root, with "/"
    text: str

    @functools.cached_property
    def code(self):
        """Same offsets and lines as `text`, nothing but code left."""
        return _PREPROCESSOR.sub(_blank, _BLANKED.sub(_blank, self.text))

    @property
    def num_lines(self):
        return self.text.count("\n")

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def includes(self):
        """(line, name) of each."""
        return [(self.line(m.start()), m.group(1)) for m in _INCLUDE.finditer(self.text)]

    def is_cpp(self):
        return self.path.endswith(CPP)

    def is_product(self):
        return self.is_cpp() and not self.path.startswith("tests/")


@dataclasses.dataclass(frozen=True)
class Violation:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def load(root):
    sources = []

    def add(full):
        with open(full, encoding="utf-8") as file:
            sources.append(Source(os.path.relpath(full, root).replace(os.sep, "/"), file.read()))

    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CMakeLists.txt"):
        add(os.path.join(root, name))
    for top in ROOTS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(names):
                if name.endswith(CPP + TEXT) or name == "CMakeLists.txt":
                    add(os.path.join(folder, name))
    return sources
