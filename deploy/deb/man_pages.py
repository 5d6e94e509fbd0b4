#!/usr/bin/env python3
"""Writes a man page for each command of docs/reference/cli.md, which has the help that the programs print.

  deploy/deb/man_pages.py VERSION FOLDER    # chainfleet.1, chainfleet-submit.1, chainfleet-server.1, ...
"""

import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "reference", "cli.md")
ENTRY = re.compile(r"  (\S+(?: \S+)*)(?:  +(\S.*))?")  # a flag or a verb, and what it is


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def entries(lines):
    for line in lines:
        name, words = ENTRY.fullmatch(line).groups() if line[2] != " " else (None, line.strip())
        if name:
            yield ".TP"
            yield f"\\fB{roff(name)}\\fR"
        if words:
            yield roff(words)


def body(paragraph):
    """One paragraph of the help: a section with a heading, or prose."""
    first, *rest = paragraph.split("\n")
    if re.fullmatch(r"\w+:", first):
        yield f".SH {first[:-1].upper()}"
        yield from (".nf", *(roff(line[2:]) for line in rest), ".fi") if first == "Examples:" else entries(rest)
    else:
        yield ".SH NOTES"
        for line in (first, *rest):
            yield roff(line)
            if line.endswith("."):
                yield ".br"


def man_page(command, text, version):
    about, usage, *paragraphs = text.replace("\nUsage: ", "\n\n", 1).split("\n\n")
    name = command.replace(" ", "-")
    about = about.removeprefix(f"{command}: ").replace("\n", " ")
    lines = [f'.TH {name.upper()} 1 "" "chainfleet {version}" chainfleet', ".SH NAME", f"{name} \\- {roff(about)}",
             ".SH SYNOPSIS", roff(usage)]
    for paragraph in paragraphs:
        lines += body(paragraph)
    return "\n".join(lines) + "\n"


def main(version, folder):
    with open(PAGE, encoding="utf-8") as file:
        commands = re.findall(r"^## (chainfleet\S*(?: \S+)*)\n\n```text\n(.*?)\n```$", file.read(), re.M | re.S)
    os.makedirs(folder, exist_ok=True)
    for command, text in commands:
        with open(os.path.join(folder, command.replace(" ", "-") + ".1"), "w", encoding="utf-8") as file:
            file.write(man_page(command, text, version))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
