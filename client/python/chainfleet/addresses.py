"""Where a server is and which token it gets, as the command line finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from .errors import InvalidArgument

DEFAULT_ADDRESS = "127.0.0.1:7400"
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):(\d{1,5})")


def parse_addresses(address: str | Sequence[str] | None) -> list[str]:
    """`address`, else CHAINFLEET_ADDRESS, else 127.0.0.1:7400; one "host:port", a list, or one text with commas.

    Raises InvalidArgument that names the part that is not host:port.
    """
    given = os.environ.get("CHAINFLEET_ADDRESS") or DEFAULT_ADDRESS if address is None else address
    parts = given.split(",") if isinstance(given, str) else list(given)
    addresses = [part.strip() for part in parts]
    for part in addresses:
        match = _HOST_PORT.fullmatch(part)
        if not match or not 0 < int(match.group(2)) < 65536:
            raise InvalidArgument(f"server address {part!r} is not host:port", hint='for example "localhost:7400"')
    if not addresses:
        raise InvalidArgument("no server address was given", hint='for example "localhost:7400"')
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
            raise InvalidArgument(f"the file of CHAINFLEET_TOKEN_FILE cannot be read: {error}") from None
    if re.search(r"[^!-~]", found):
        raise InvalidArgument("the token has spaces or characters that are not ASCII", hint="pass the token alone")
    return found
