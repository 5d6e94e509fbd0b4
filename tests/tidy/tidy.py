#!/usr/bin/env python3
"""Holds the tree to its own rules. One check a call; says file:line and the rule, and exits 1 if one is broken.

  tests/tidy/tidy.py floors|cycles|files|functions|classes|calls|names|headers|subjects|comments|width|references
  tests/tidy/tidy.py server BINARY
  tests/tidy/tidy.py locks BUILD_FOLDER CLANG
"""

import pathlib
import sys

import binaries
import documents
import floors
import habits
import locks
import sizes
import source_tree

CHECKS = {
    "floors": floors.check,
    "cycles": floors.check_cycles,
    "files": sizes.check_files,
    "functions": sizes.check_functions,
    "classes": sizes.check_classes,
    "comments": sizes.report_comments,
    "calls": habits.check_calls,
    "names": habits.check_names,
    "headers": habits.check_headers,
    "subjects": habits.check_subjects,
    "width": documents.check_width,
    "references": documents.check_references,
}


def main(arguments):
    root = pathlib.Path(__file__).resolve().parents[2]
    if len(arguments) == 1 and arguments[0] in CHECKS:
        violations = CHECKS[arguments[0]](source_tree.load(root))
    elif len(arguments) == 3 and arguments[0] == "locks":
        violations = locks.check(source_tree.load(root), str(root), *arguments[1:])
    elif len(arguments) == 2 and arguments[0] == "server":
        violations = binaries.check_server(arguments[1])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
