"""The error reasons and bounds that the product gives."""

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


def _sources():
    """Path -> text without comments."""
    paths = [path for top in ("core", "server", "worker", "client") for suffix in ("cc", "h")
             for path in glob.glob(f"{top}/**/*.{suffix}", root_dir=job_file.ROOT, recursive=True)]
    return {path: _COMMENT.sub("", job_file.read(path)) for path in sorted(paths)}


def of_sources():
    """Reason -> one file that gives it, as the last argument of WithReason or BoundReached."""
    texts = _sources()
    constants = {name: value for text in texts.values() for name, value in
                 re.findall(r'constexpr char (k\w+)\[\] = "([A-Z_]+)";', text)}
    found = {}
    for path, text in texts.items():
        for match in re.finditer(r"\b(?:WithReason|BoundReached)\(", text):
            last = _arguments(text, match.end())[-1]
            if local := re.search(rf"std::string {last} =\s([^;]*);", text) if re.match(r"\w+$", last) else None:
                last = local.group(1)
            for reason in [*re.findall(r'"([A-Z][A-Z_]+)"', last), *(constants[n] for n in re.findall(r"\bk\w+", last)
                                                                         if n in constants)]:
                found.setdefault(reason, path)
    return found


def bounds_of_sources():
    """The bounds: the first argument of BoundReached, or the last one of checks that hand it on."""
    calls = [(call.group(1), _arguments(text, call.end())) for text in _sources().values()
             for call in re.finditer(r"\b(BoundReached|CheckLimit|CheckRoom)\(", text)]
    names = (arguments[0 if call == "BoundReached" else -1] for call, arguments in calls)
    return {name.strip('"') for name in names if re.fullmatch('"[a-z_]+"', name)}


def of_page(text):
    """The reasons that the table under "Reasons" lists."""
    return re.findall(r"^\| `([A-Z_]+)` \|", text.partition("\n## Reasons\n")[2], re.M)


def bounds_of_page(text):
    """The bounds that the table under "Bounds" lists."""
    return re.findall(r"^\| `([a-z_]+)` \|", text.partition("\n## Bounds\n")[2].partition("\n## ")[0], re.M)
