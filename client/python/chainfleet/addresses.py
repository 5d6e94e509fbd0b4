"""Where a server is and which token it gets, as the command line finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from .errors import invalid_field, no_file

DEFAULT_ADDRESS = "127.0.0.1:7400"
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):(\d{1,5})")


def parse_addresses(address: str | Sequence[str] | None) -> list[str]:
    """`address`, else CHAINFLEET_ADDRESS, else 127.0.0.1:7400; one "host:port", a list, or one text with commas.

    Raises InvalidArgument that names the part that is not host:port.
    """
    given = os.environ.get("CHAINFLEET_ADDRESS") or DEFAULT_ADDRESS if address is None else address
    parts = given.split(",") if isinstance(given, str) else list(given)
    addresses = [part.strip() for part in parts]
    hint = 'for example "localhost:7400"'
    for part in addresses:
        match = _HOST_PORT.fullmatch(part)
        if not match or not 0 < int(match.group(2)) < 65536:
            raise invalid_field("address", f"{part!r} is not host:port", hint)
    if not addresses:
        raise invalid_field("address", "is an empty list", hint)
    return addresses


def find_token(token: str | None) -> str:
    """`token`, else CHAINFLEET_TOKEN, else the first word of the file of CHAINFLEET_TOKEN_FILE, else "".

    Raises InvalidArgument if the file cannot be read or the token has other characters than visible ASCII.
    """
    found = token if token is not None else os.environ.get("CHAINFLEET_TOKEN", "")
    path = os.environ.get("CHAINFLEET_TOKEN_FILE", "")
    if token is None and not found and path:
        try:
            with open(path, encoding="utf-8") as file:
                found = (file.read().split() or [""])[0]
        except (OSError, UnicodeDecodeError) as error:
            raise no_file("the file of CHAINFLEET_TOKEN_FILE", error) from None
    if re.search(r"[^!-~]", found):
        raise invalid_field("token", "has spaces or characters that are not ASCII", "pass the token alone")
    return found
