"""Reads a PromQL expression: its metrics, the labels it selects them by and those it groups by. Enough of the language
for our own panels and rules; `promtool` and Prometheus judge the rest."""
import dataclasses
import re

_GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_SELECTOR = re.compile(r"(?<![\w.])([a-zA-Z_:][\w:]*)\s*(\{[^{}]*\})?(?!\s*\()(?![\w:])")
_KEYWORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}


@dataclasses.dataclass(frozen=True)
class Asked:
    selected: tuple  # (metric, the labels of its selector) of each
    grouped: frozenset  # labels in by, on, without, ...


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def parse(expr):
    bare = _STRING.sub('""', expr)
    grouped = {label for found in _GROUPING.finditer(bare) for label in _names(found.group(1))}
    bare = re.sub(r"\[[^\]]*\]", "", _GROUPING.sub(" ", bare))  # ranges
    selected = [(name, tuple(_names(re.sub(r'\s*(?:=~|!~|!=|=)\s*""', "", (labels or "{}")[1:-1]))))
                for name, labels in _SELECTOR.findall(bare) if name.lower() not in _KEYWORDS]
    return Asked(tuple(selected), frozenset(grouped))
