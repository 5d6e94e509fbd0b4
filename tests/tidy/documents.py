"""Documents for readers: prose of at most 120 characters a line, and references that lead somewhere."""

import functools
import os
import re

from source_tree import Violation

WIDEST = 120
# A path of a document, with a heading's anchor or, in a comment, the heading's words: docs/a/b.md#c; docs/a/b.md, "C".
_CITED = re.compile(r"(?<![\w/.-])((?:docs|deploy)/[\w/.-]*\.md)(?:#([\w-]+)|,\s+(?://\s+|#\s+)?\"([^\"\n]+)\")?")
# A path of a source file, not in an include or a string.
_SOURCE = re.compile(r"(?<![\w/.<\"'-])((?:core|server|worker|client|tests|proto|cmake|deploy)/[\w/.-]*\w"
                     r"\.(?:h|cc|cu|py|sh|proto|cmake))(?![\w.*{])")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
# "(protocol 4)" in a comment: sections of a document that is not in the tree.
_NUMBERED = re.compile(r"(?<!speaks )\bprotocol \d+\b(?=( and \d+|-\d+)?[);.:,])")
_FENCE = re.compile(r"^\s*```")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def _prose(text):
    """(line number, line) of what is neither a table nor code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ")):
            yield number, line


def check_width(sources):
    return [Violation(source.path, number, "prose-width", f"{len(line)} characters, the most is {WIDEST}")
            for source in sources if source.path.endswith(".md")
            for number, line in _prose(source.text) if len(line) > WIDEST]


def check_references(sources):
    documents, paths = {s.path: s for s in sources if s.path.endswith(".md")}, {s.path for s in sources}

    @functools.cache
    def anchors(path):
        return {slug(h) for h in re.findall(r"^#+ (.*)$", documents[path].text, re.M)}

    def broken(target, anchor):
        if target not in paths:
            return f"there is no {target}"
        return f"{target} has no heading '{anchor}'" if anchor and slug(anchor) not in anchors(target) else ""

    violations = []
    for source in sources:
        if source.path.startswith("tests/tidy/"):
            continue
        found = [(m.start(), m.group(1), m.group(2) or m.group(3) or "") for m in _CITED.finditer(source.text)]
        found += [(m.start(), m.group(1), "") for m in _SOURCE.finditer(source.text)]
        for match in _LINK.finditer(source.text) if source.path in documents else []:
            name, _, anchor = match.group(1).partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(source.path), name)) if name else source.path
            if "://" not in name and target.endswith(".md"):
                found.append((match.start(), target, anchor))
        found += [(m.start(), "numbered section of a document", "") for m in _NUMBERED.finditer(source.text)]
        for offset, target, anchor in found:
            if why := broken(target, anchor):
                violations.append(Violation(source.path, source.line(offset), "reference", why))
    return violations
