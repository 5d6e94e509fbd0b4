"""Contexts: the servers that a person uses, by name, in the file of `chainfleet context`.

    current: lab
    contexts:
      lab:
        address: lab-1:7400,lab-2:7400
        token_file: ~/.secrets/lab
      prod: {address: "prod:7400", token_command: pass show chainfleet/prod}

The command line reads all of YAML; the package has no parser of YAML. This module reads files of the form above: what
`chainfleet context set` writes, and what people write by hand in that form, with comments. It refuses every other file,
so it never understands a file otherwise than the command line does.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from .addresses import find_token, parse_addresses
from .errors import FailedPrecondition, InvalidArgument, NotFound, invalid_field, no_file
from .programs import flags, run_program
from .tls import NO_TLS, TlsFiles, find_tls_files

_MOST_BYTES = 64 << 10  # for the file, and for a token
_FIELDS = ("address", "token_file", "token_command", "ca_file", "cert_file", "key_file")
# Text on one line, quoted or plain. Plain text begins with none of YAML's signs and ends before ": " and " #".
_QUOTED = r"""\"(?:[^"\\]|\\.)*\"|'(?:[^']|'')*'"""
_FIRST = r"(?!(?:~|null|Null|NULL)\s*(?:$|[,:}]|\s#))[^\s\-?:,\[\]{}#&*!|>'\"%@`]"
_TEXT = rf"(?:{_QUOTED}|{_FIRST}(?:[^\s:#]|:(?=\S)|(?<=\S)#| +(?=[^\s#]))*)"
# In braces, commas and brackets end it, too.
_INSIDE = rf"(?:{_QUOTED}|{_FIRST}(?:[^\s:#,\[\]{{}}]|:(?=[^\s,\[\]{{}}])|(?<=\S)#| +(?=[^\s#,\[\]{{}}]))*)"
_PAIR = re.compile(rf" *({_INSIDE}): +({_INSIDE}) *")
_PAIRS = rf"{_PAIR.pattern}(?:,{_PAIR.pattern})*".replace(f"({_INSIDE})", _INSIDE)
_LINE = re.compile(rf"( *)({_TEXT}):(?: +(?:({_TEXT})|\{{({_PAIRS})\}}))? *(?: #.*)?")


@dataclass(frozen=True)
class Context:
    """A server. At most one of the two ways to a token is set; `token_command` prints the token. The rest: TlsFiles."""

    address: str
    token_file: str = ""
    token_command: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def token(self) -> str:
        """Raises FailedPrecondition if the command gives none, InvalidArgument if the file cannot be read."""
        if self.token_command:
            return _printed("token_command", self.token_command)
        text = ""
        if self.token_file:
            try:
                with open(os.path.expanduser(self.token_file), encoding="utf-8") as file:
                    text = file.read(_MOST_BYTES)
            except (OSError, UnicodeDecodeError) as error:
                raise no_file("token_file", error) from None
        return (text.split() or [""])[0]


@functools.cache
def _printed(name: str, command: str) -> str:
    """The token that a command prints. It runs once in a process: it may ask the user. `name`: its setting."""
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        text = child.stdout.read(_MOST_BYTES).decode("utf-8", "replace")
    words = text.split()
    if child.returncode != 0 or not words:
        happened = "failed" if child.returncode != 0 else "printed nothing"
        hint = "run the command by itself: its last words are on standard error"
        raise FailedPrecondition(f"{name} {happened}: {command}", reason="NO_TOKEN", hint=hint)
    return words[0]


def forget_tokens() -> None:
    """Lets the commands of tokens run again."""
    _printed.cache_clear()


@dataclass(frozen=True)
class Contexts:
    """Contents of the file. current: "" if none was chosen."""

    current: str = ""
    by_name: dict[str, Context] = field(default_factory=dict)


def find_server(
    address: str | Sequence[str] | None = None,
    token: str | None = None,
    context: str | None = None,
    tls: TlsFiles = NO_TLS,
) -> tuple[list[str], str, TlsFiles]:
    """(addresses, token, files for TLS) of a server, as the command line finds them; see chainfleet.connect."""
    if address is not None and context is not None:
        raise invalid_field("context", "an address and a context were given", "give one of them")
    found = _find_context(context) if address is None else None
    known = find_token(token)
    command = os.environ.get("CHAINFLEET_TOKEN_COMMAND", "")
    if command and not known and token is None:
        known = find_token(_printed("CHAINFLEET_TOKEN_COMMAND", command))
    if found is None:
        return parse_addresses(address), known, find_tls_files(tls, NO_TLS)
    files = find_tls_files(tls, TlsFiles(found.ca_file, found.cert_file, found.key_file))
    known = known if known or token is not None else find_token(found.token())
    return parse_addresses(found.address), known, files


def known() -> Contexts:
    """The servers that this user named, and the current one. Raises InvalidArgument for a file of another form."""
    return read_contexts(file_of_contexts())


def add(name: str, context: Context) -> None:
    """Adds or replaces a server; the first one becomes the current one. Needs the program `chainfleet`."""
    run_program(["context", "set", name, *flags(vars(context))])


def use(name: str) -> None:
    """Makes a server the current one, to which `connect` connects. Raises NotFound; needs the program `chainfleet`."""
    _get(known(), name)
    run_program(["context", "use", name])


def delete(name: str) -> None:
    """Forgets a server. Raises NotFound; needs the program `chainfleet`."""
    _get(known(), name)
    run_program(["context", "delete", name])


def file_of_contexts() -> str:
    """CHAINFLEET_CONTEXTS, else chainfleet/config.yaml in XDG_CONFIG_HOME, else in ~/.config."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.environ.get("HOME", ""), ".config")
    return os.environ.get("CHAINFLEET_CONTEXTS") or os.path.join(folder, "chainfleet", "config.yaml")


def read_contexts(path: str) -> Contexts:
    """The file `path`; nothing if it is not there. Raises InvalidArgument."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"the file is larger than {_MOST_BYTES} bytes")
        current, entries = _read(text)
        return Contexts(current, {name: _context(name, entry) for name, entry in entries.items()})
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError) as error:
        hint = "`chainfleet context set NAME --address HOST:PORT` writes the file anew"
        raise InvalidArgument(f"contexts of {path}: {error}", reason="NO_CONTEXT", hint=hint) from None


def _find_context(name: str | None) -> Context | None:
    """The context `name`, else that of CHAINFLEET_CONTEXT, else the current one; None if there is none of these.

    CHAINFLEET_ADDRESS goes before the current one. Raises NotFound for an unknown name, and InvalidArgument, with the
    line, for a file that this module does not read.
    """
    wanted = name or os.environ.get("CHAINFLEET_CONTEXT", "")
    if not wanted and os.environ.get("CHAINFLEET_ADDRESS"):
        return None
    contexts = known()
    wanted = wanted or contexts.current
    return _get(contexts, wanted) if wanted else None


def _get(contexts: Contexts, name: str) -> Context:
    if name not in contexts.by_name:
        raise NotFound(
            f"there is no context {name} in {file_of_contexts()}; known: {', '.join(contexts.by_name) or 'none'}",
            reason="NO_CONTEXT",
            hint=f"`chainfleet context set {name} --address HOST:PORT` adds it",
        )
    return contexts.by_name[name]


def _context(name: str, entry: dict[str, str]) -> Context:
    unknown = [key for key in entry if key not in _FIELDS]
    if unknown:
        raise ValueError(f"context {name} has the unknown key {unknown[0]}")
    if not entry.get("address"):
        raise ValueError(f"context {name} has no address")
    if entry.get("token_file") and entry.get("token_command"):
        raise ValueError(f"context {name} has two tokens")
    return Context(**entry)


def _read(text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """(the current name, the keys of each context). Raises ValueError, with the line, for files of another form."""
    top: dict[str, str | None] = {}
    entries: dict[str, dict[str, str]] = {}
    newest: dict[str, str] | None = None  # the context whose keys may come next
    levels = [0]  # the indents of the keys, of the names and of the keys of the newest name, as far as they are known
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" ") or line.lstrip(" ").startswith("#"):
            continue
        found = _LINE.fullmatch(line) if line.isprintable() else None
        indent = len(found[1]) if found else 0
        depth = sum(level < indent for level in levels)
        refusal = ValueError(f"line {number} is not in the form that the package reads: {line.strip()!r}")
        if found is None or depth > 2 or (depth < len(levels) and levels[depth] != indent):
            raise refusal
        levels = [*levels[:depth], indent]
        key, value = _plain(found[2]), None if found[3] is None else _plain(found[3])
        inside = [(_plain(one), _plain(other)) for one, other in _PAIR.findall(found[4] or "")]
        if depth == 0 and key not in top and not inside and key == ("contexts" if value is None else "current"):
            top[key], newest = value, None
        elif depth == 1 and [*top][-1:] == ["contexts"] and key not in entries and value is None:
            entries[key] = dict(inside)
            newest = None if inside else entries[key]
            if len(entries[key]) < len(inside):
                raise refusal
        elif depth == 2 and newest is not None and key not in newest and value is not None:
            newest[key] = value
        else:
            raise refusal
    return top.get("current") or "", entries


def _plain(text: str) -> str:
    """The meaning of `text`, plain or quoted. Raises ValueError for escapes that JSON does not have."""
    if text.startswith('"'):
        return str(json.loads(text))
    return text[1:-1].replace("''", "'") if text.startswith("'") else text.rstrip(" ")
