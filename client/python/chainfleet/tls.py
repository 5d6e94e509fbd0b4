"""The files for TLS: certificates and a private key, all PEM."""

from __future__ import annotations

import os
from dataclasses import dataclass

import grpc

from .errors import invalid_field, no_file

_VARIABLES = ("CHAINFLEET_CA_FILE", "CHAINFLEET_CERT_FILE", "CHAINFLEET_KEY_FILE")
_SYSTEM = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True)
class TlsFiles:
    """Calls use TLS if there is any file.

    ca_file: certificates that sign the server's; "system": those of this host. cert_file and key_file: the client's
    certificate and its private key, for a server that wants one.
    """

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Returns channel credentials; None for plaintext. Raises InvalidArgument for an unreadable or empty file."""
        if self == NO_TLS:
            return None
        if bool(self.cert_file) != bool(self.key_file):
            raise invalid_field(
                "key_file", "a certificate needs its private key, and a key its certificate", "give both"
            )
        authorities = _SYSTEM if self.ca_file in ("", "system") else self.ca_file
        return grpc.ssl_channel_credentials(_read(authorities), _read(self.key_file), _read(self.cert_file))

    def environment(self) -> dict[str, str]:
        """The variables that name the files. The program `chainfleet` takes "~" for the name of a folder."""
        files = map(os.path.expanduser, (self.ca_file, self.cert_file, self.key_file))
        return dict(zip(_VARIABLES, files, strict=True))


NO_TLS = TlsFiles()


def find_tls_files(given: TlsFiles, of_context: TlsFiles) -> TlsFiles:
    """`given`, else the files that CHAINFLEET_CA_FILE and its like name, else those of the context."""
    named = TlsFiles(*(os.environ.get(variable, "") for variable in _VARIABLES))
    return next((files for files in (given, named, of_context) if files != NO_TLS), NO_TLS)


def _read(path: str) -> bytes | None:
    if not path:
        return None
    try:
        with open(os.path.expanduser(path), "rb") as file:
            if content := file.read():
                return content
    except OSError as error:
        raise no_file("a file for TLS", error) from None
    raise no_file("a file for TLS", ValueError(f"{path} is empty"))  # gRPC aborts for an empty certificate
