"""Finds the functions and classes of clang-formatted C++ by matching braces."""

import dataclasses
import re

_TEMPLATE = re.compile(r"^\s*template\s*<[^{;]*?>\s*(?=[\w:\[~])", re.S)
_SCOPE = re.compile(r"^\s*(inline\s+)?(namespace\b|extern\s*$)")
_TYPE = re.compile(r"^\s*(typedef\s+)?(class|struct|union|enum)\b[^()=]*$", re.S)
_CLASS = re.compile(r"\b(?:class|struct|union)\b(?:\s+(?:ABSL_\w+|alignas\s*\([^)]*\)))*\s+([\w:]+)(?:\s*final)?\s*(?::[^:].*)?$", re.S)
_LABEL = re.compile(r"\s*((public|private|protected)\s*:)?\s*")
_NAME = re.compile(r"([\w:~]+|operator[^\w\s(]+)\s*\(")


@dataclasses.dataclass(frozen=True)
class Piece:
    """A function or a class."""
    name: str
    first_line: int
    last_line: int

    @property
    def num_lines(self):
        return self.last_line - self.first_line + 1


def _without_parentheses(head):
    """`head` with what stands in (...), [...] taken out: "A::A() : b_()"."""
    out, depth = [], 0
    for c in head:
        if c in ")]":
            depth -= 1
        if depth == 0:
            out.append(c)
        if c in "([":
            depth += 1
    return "".join(out)


def _kind(head):
    """Returns the kind of block that a brace after `head` opens, at namespace or class level: scope, function or value."""
    head = _TEMPLATE.sub("", head)
    if _SCOPE.match(head) or _TYPE.match(re.sub(r"\b(alignas|ABSL_\w+|CHAINFLEET_\w+)\s*\([^)]*\)|\b[A-Z_]{4,}\b", "", head)):
        return "scope"
    flat = _without_parentheses(head)
    if "()" not in flat or re.search(r"(?<!operator)(?<![=!<>+\-*/&|^])=(?!=)", flat.replace("operator==", "operator")):
        return "value"
    after = flat[flat.index("()") + 2:]
    if re.match(r"\s*(noexcept\s*)?:(?!:)", after) and re.search(r"[\w>]\s*$", after):
        return "value"  # a member in a constructor's list
    return "function"


def find(source):
    """All functions with a body, lambdas and local ones within theirs; None if the braces do not balance."""
    pieces = _find(source)
    return pieces and pieces[0]


def find_classes(source):
    """All classes, structs and unions that are not local to a function; None if the braces do not balance."""
    pieces = _find(source)
    return pieces and pieces[1]


def _find(source):
    code, functions, classes, stack = source.code, [], [], []  # stack: (kind, offset of the head, of the brace)
    head = 0
    for match in re.finditer(r"[{};]", code):
        c, at = match.group(), match.start()
        inside = stack[-1][0] if stack else "scope"
        if c == "{":
            kind = _kind(code[head:at]) if inside == "scope" else "block"
            stack.append((kind, head, at))
            if kind != "value":
                head = at + 1
        elif c == "}":
            if not stack:
                return None
            kind, start, brace = stack.pop()
            begin = _LABEL.match(code, start).end()
            if kind == "function":
                name = _NAME.search(_TEMPLATE.sub("", code[begin:at]))
                functions.append(Piece(name.group(1) if name else "?", source.line(begin), source.line(at)))
            named = _CLASS.search(_TEMPLATE.sub("", code[begin:brace])) if kind == "scope" else None
            if named and "enum" not in code[begin:brace].split():
                classes.append(Piece(named.group(1), source.line(begin), source.line(at)))
            if kind != "value":
                head = at + 1
        elif inside == "scope":
            head = at + 1
    return None if stack else (functions, classes)
