"""Throw-away certificates for tests: an authority, and what it signs, as PEM files."""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate


class Certificates:
    """Files in a folder: `ca`, and `issue(...)` for keys with their chains."""

    def __init__(self, folder: Path, organisation: str = "Partita") -> None:
        self.folder = folder
        self.authority = trustme.CA(organization_name=organisation)
        self.ca = folder / f"{organisation}-ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)

    def issue(self, name: str, *names: str, ended: bool = False) -> Path:
        """A file with key and chain; `ended` makes a certificate of the past."""
        issued = self.authority.issue_cert(
            *(names or ("localhost", "127.0.0.1")),
            common_name=name,
            not_before=datetime(2020, 1, 1, tzinfo=UTC) if ended else None,
            not_after=datetime(2021, 1, 1, tzinfo=UTC) if ended else None,
        )
        path = self.folder / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def server(self, path: Path | None = None, *, wants_client: bool = False) -> ssl.SSLContext:
        """The context of a server that shows the file, a good one for localhost by default."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path or self.issue("server"))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


def key_and_chain(path: Path) -> tuple[str, str]:
    """The two parts of a file, as text."""
    text = path.read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    return text[:at], text[at:]


def encrypted(path: Path, password: str) -> Path:
    """The same file with its key encrypted."""
    key, chain = key_and_chain(path)
    loaded = load_pem_private_key(key.encode(), None)
    sealed = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    made = path.with_suffix(".sealed.pem")
    made.write_bytes(sealed + chain.encode())
    return made


def as_pkcs12(path: Path, password: str, suffix: str = ".p12") -> Path:
    """The same key and certificate as a PKCS12 store."""
    key, chain = key_and_chain(path)
    loaded = load_pem_private_key(key.encode(), None)
    certificate = load_pem_x509_certificate(chain.encode())
    sealed = BestAvailableEncryption(password.encode())
    made = path.with_suffix(suffix)
    made.write_bytes(pkcs12.serialize_key_and_certificates(b"key", loaded, certificate, None, sealed))  # type: ignore[arg-type]  # trustme makes EC keys, which are among the accepted types
    return made


def as_pkcs8(path: Path) -> Path:
    """The same file with its key in the one form that Java reads."""
    key, chain = key_and_chain(path)
    loaded = load_pem_private_key(key.encode(), None)
    made = path.with_suffix(".pkcs8.pem")
    made.write_bytes(loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + chain.encode())
    return made


def client_hello(context: ssl.SSLContext) -> bytes:
    """What a client sends first: one whole record."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()
