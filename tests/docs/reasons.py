"""The error reasons that the product gives: the last argument of each WithReason."""

import glob
import os
import re

import job_file

# Comments, and characters that would look like the ends of strings.
_COMMENT = re.compile(r"(?<!:)//[^\n]*|'\\?\"'")


def _arguments(text, start):
    """The top-level arguments from `start`, behind the opening parenthesis."""
    depth, inside, parts, part, i = 1, False, [], "", start
    while depth:
        character = text[i]
        if inside and character == "\\":
            part += text[i:i + 2]
            i += 2
            continue
        inside ^= character == '"'
        depth += 0 if inside else {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 1 and not inside:
            parts.append(part)
            part = ""
        elif depth:
            part += character
        i += 1
    return [p.strip() for p in [*parts, part]]


def of_sources():
    """Reason -> one file that gives it."""
    paths = [path for top in ("core", "server", "worker", "client") for suffix in ("cc", "h")
             for path in glob.glob(f"{top}/**/*.{suffix}", root_dir=job_file.ROOT, recursive=True)]
    texts = {path: _COMMENT.sub("", job_file.read(path)) for path in sorted(paths)}
    constants = {name: value for text in texts.values() for name, value in
                 re.findall(r'constexpr char (k\w+)\[\] = "([A-Z_]+)";', text)}
    found = {}
    for path, text in texts.items():
        for match in re.finditer(r"\bWithReason\(", text):
            last = _arguments(text, match.end())[-1]
            if local := re.search(rf"std::string {last} =\s([^;]*);", text) if re.match(r"\w+$", last) else None:
                last = local.group(1)
            for reason in [*re.findall(r'"([A-Z][A-Z_]+)"', last), *(constants[n] for n in re.findall(r"\bk\w+", last)
                                                                         if n in constants)]:
                found.setdefault(reason, path)
    return found


def of_page(text):
    """The reasons that the table under "Reasons" lists."""
    return re.findall(r"^\| `([A-Z_]+)` \|", text.partition("\n## Reasons\n")[2], re.M)
