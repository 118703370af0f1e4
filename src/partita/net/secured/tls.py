"""TLS contexts from `TlsSettings`: PEM or PKCS12 files, PEM text, the system's authorities. (security.md 3.3, 4.)

A context is made when a connection is opened and a file has changed since the last one, so that short-lived
certificates need no restart. `TlsContexts` makes the first one at once: a missing file fails the client's constructor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from partita.options import ConfigError
from partita.secret import Secret
from partita.security.settings import Store, TlsSettings

_LOG = logging.getLogger("partita.security")
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = {"TLSv1", "TLSv1.1", "SSLv3"}
_FILE_BYTES_MAX = 1 << 20
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JKS = (
    "{option}: {location} is a JKS key store, Java's own format, which is not read. Convert it once: "
    "keytool -importkeystore -srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12; "
    "then name the .p12 file"
)


class TlsContexts:
    """Hands out the TLS context of a client, and recreates it when one of its files has changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._seen: tuple[object, ...] = ()
        self._context = settings.context
        if settings.context is None and not settings.verifies:
            _LOG.warning(
                "enable_ssl_certificate_verification is false: the brokers' certificates are not checked, and whoever "
                "sits between can read and change everything"
            )
        self.context()

    def context(self) -> ssl.SSLContext:
        """The context for the next connection. Raises ConfigError, naming the option, when a file is unusable."""
        if self._settings.context is not None:
            return self._settings.context
        seen = tuple(_stamp(store) for store in self._stores())
        if self._context is None or seen != self._seen:
            self._context, self._seen = client_context(self._settings), seen
        return self._context

    def _stores(self) -> list[Store]:
        settings = self._settings
        return [store for store in (settings.trusted, settings.certificate, settings.key) if store is not None]


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context that verifies as the settings say. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    set_versions(context, settings.versions)
    if settings.ciphers:
        set_ciphers(context, settings.ciphers)
    context.check_hostname = settings.checks_host_name and settings.verifies
    if not settings.verifies:
        context.verify_mode = ssl.CERT_NONE
    if settings.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        trust(context, settings.trusted)
    if settings.certificate is not None:
        show(context, settings.certificate, settings.key, settings.key_password)
    elif settings.key is not None:
        raise ConfigError(f"{settings.key.option} gives a private key, but no certificate goes with it")
    return context


def set_versions(context: ssl.SSLContext, versions: tuple[str, ...]) -> None:
    """Speak just these versions; TLS 1.1 and older are passed over. Raises ConfigError when none is left."""
    known = [_VERSIONS[version] for version in versions if version in _VERSIONS]
    unknown = [version for version in versions if version not in _VERSIONS and version not in _OLD_VERSIONS]
    if unknown or not known:
        raise ConfigError(f"ssl_enabled_protocols must be of TLSv1.2 and TLSv1.3, not {', '.join(versions) or 'empty'}")
    context.minimum_version, context.maximum_version = min(known), max(known)


def set_ciphers(context: ssl.SSLContext, ciphers: tuple[str, ...]) -> None:
    """Choose the suites of TLS 1.2, in Java's or OpenSSL's spelling. Raises ConfigError."""
    names = [_openssl_name(name) for name in ciphers if not name.startswith(("TLS_AES_", "TLS_CHACHA20_"))]
    if len(names) < len(ciphers):
        _LOG.info("ssl_cipher_suites: the suites of TLS 1.3 cannot be chosen in Python; all of OpenSSL's are offered")
    if not names:
        return
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        raise ConfigError(f"ssl_cipher_suites: none of {', '.join(ciphers)} is a suite of TLS 1.2 here") from None


def _openssl_name(name: str) -> str:
    """A name as OpenSSL spells it: Java writes WITH and underscores; other names stay as they are."""
    if not name.startswith("TLS_"):
        return name
    text = name.removeprefix("TLS_").replace("RSA_WITH_AES", "AES", 1) if name.startswith("TLS_RSA_WITH") else name[4:]
    return (
        text.replace("_WITH_", "_")
        .replace("AES_128", "AES128")
        .replace("AES_256", "AES256")
        .replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
        .replace("_", "-")
    )


def trust(context: ssl.SSLContext, store: Store) -> None:
    """Trust the authorities in the store. Raises ConfigError when it holds no certificate."""
    try:
        context.load_verify_locations(cadata=certificates_of(store))
    except ssl.SSLError:
        raise ConfigError(f"{_named(store)} holds no certificate") from None


def show(context: ssl.SSLContext, certificate: Store, key: Store | None, key_password: Secret | None) -> None:
    """Show this certificate; its key is in the same store unless `key` names another. Raises ConfigError."""
    content = _content(certificate)
    if _is_pkcs12(content):
        private, chain = pkcs12_pem(certificate, content)
        text, password = private + chain, None
    else:
        text, password = _pem_text(certificate, content), key_password
        if key is not None:
            text = _pem_text(key, _content(key)) + "\n" + text
    if "PRIVATE KEY-----" not in text:
        raise ConfigError(
            f"{_named(certificate)} holds no private key; give it in the same file or as ssl_key_location"
        )
    given = password.reveal() if password else ""
    with _private_file(text) as path:
        try:
            context.load_cert_chain(path, password=lambda: given)
        except ssl.SSLError as error:
            named = _named(key or certificate)
            if "ENCRYPTED" in text and error.reason != "KEY_VALUES_MISMATCH":
                what = (
                    "ssl_key_password does not open"
                    if password
                    else "ssl_key_password is not set, and it is needed for"
                )
                raise ConfigError(f"{what} {named}") from None
            if error.reason == "KEY_VALUES_MISMATCH":
                raise ConfigError(f"the private key of {named} does not belong to the certificate") from None
            raise ConfigError(f"{named} does not hold a certificate with its private key: {error.reason}") from None


def certificates_of(store: Store) -> str:
    """The certificates in the store as PEM text. Raises ConfigError."""
    content = _content(store)
    return pkcs12_pem(store, content)[1] if _is_pkcs12(content) else _pem_text(store, content)


def pkcs12_pem(store: Store, content: bytes) -> tuple[str, str]:
    """(private key, certificates) of a PKCS12 store as PEM text. Raises ConfigError."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise ConfigError(
            f"{_named(store)} is a PKCS12 store; reading it needs: pip install 'partita[security]' (PEM needs nothing)"
        ) from None
    password = store.password.reveal().encode() if store.password else None
    try:
        found = pkcs12.load_pkcs12(content, password)
    except ValueError:
        option = store.option.replace("location", "password")
        raise ConfigError(f"{option} does not open {store.location}, or it is no PKCS12 store") from None
    private = ""
    if found.key is not None:
        private = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    certificates = [found.cert, *found.additional_certs]
    return private, "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in certificates if each)


def _content(store: Store) -> bytes:
    if store.pem is not None:
        return store.pem.reveal().encode()
    location = store.location or ""
    try:
        found = os.stat(location)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _FILE_BYTES_MAX:
            raise ConfigError(f"{store.option}: {location} is no file of at most {_FILE_BYTES_MAX >> 20} MiB")
        content = Path(location).read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{store.option}: no such file: {location}") from None
    except OSError as error:
        raise ConfigError(f"{store.option}: cannot read {location}: {error.strerror}") from None
    if content.startswith(_JKS_MAGIC):
        raise ConfigError(_JKS.format(option=store.option, location=location))
    return content


def _is_pkcs12(content: bytes) -> bool:
    """A PKCS12 store is DER: a sequence. PEM is text."""
    return content.startswith(b"\x30") and b"-----BEGIN" not in content


def _pem_text(store: Store, content: bytes) -> str:
    if b"-----BEGIN" not in content:
        raise ConfigError(f"{_named(store)} is neither PEM nor PKCS12")
    return content.decode(errors="replace")


def _named(store: Store) -> str:
    return f"{store.option}: {store.location}" if store.location else store.option


def _stamp(store: Store) -> object:
    if store.location is None:
        return None
    try:
        found = os.stat(store.location)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@contextlib.contextmanager
def _private_file(text: str) -> Iterator[str]:
    """A path at which `ssl` can read the text, seen by this process alone and gone afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("partita-key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="partita-") as directory:
        path = Path(directory) / "key.pem"
        path.touch(mode=0o600)
        path.write_text(text)
        yield str(path)
