"""Certificates for fleets without their own authority, as `chainfleet pki` makes them; needs that program.

A folder holds the authority, ca.crt for clients and ca.key, which nobody else may read, and what it issued. Everything
raises the error that the program's exit status means, with its words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .programs import flags, run_program

_YEAR = 365  # days


def init(folder: str | os.PathLike[str] = "pki", days: int = 10 * _YEAR) -> None:
    """Makes an authority. days: until its certificate expires."""
    run_program(["pki", "init", *flags({"folder": folder, "days": days})])


def issue(name: str, hosts: Sequence[str] = (), folder: str | os.PathLike[str] = "pki", days: int = _YEAR) -> None:
    """Writes NAME.crt and NAME.key, for a server, a worker or a client.

    hosts: DNS names and IP addresses at which the holder is reached. days: until the certificate expires.
    """
    named = [f"--host={host}" for host in hosts]
    run_program(["pki", "issue", name, *named, *flags({"folder": folder, "days": days})])


def renew(name: str, folder: str | os.PathLike[str] = "pki", days: int = _YEAR) -> None:
    """Replaces NAME.crt by one for the same key and hosts; servers load it by themselves."""
    run_program(["pki", "renew", name, *flags({"folder": folder, "days": days})])
