"""Contents of a certificate: its owner, in the words of Java, and its end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.lazy import later

if TYPE_CHECKING:
    from cryptography import x509
else:
    x509 = later("cryptography.x509")

_SHORT_NAMES = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O",
    "2.5.4.11": "OU", "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}  # fmt: skip
"""The attributes that RFC 2253 has a short name for."""
_IA5_ATTRIBUTES = frozenset({"1.2.840.113549.1.9.1", "0.9.2342.19200300.100.1.25"})
_IA5_STRING, _UTF8_STRING = 0x16, 0x0C
_ESCAPED = frozenset(',+"\\<>;')


class CertificateNotes(NamedTuple):
    """The distinguished name, the names that clients may connect to, and the last moment it is valid."""

    name: str
    hosts: tuple[str, ...]
    ends: datetime

    def days_left(self) -> float:
        """Remaining validity; negative when it has ended."""
        return (self.ends - datetime.now(UTC)).total_seconds() / 86_400


def notes_of_pem(pem: str) -> CertificateNotes:
    """Return the notes of the first certificate in the text. Raises ValueError when there is none."""
    return _notes(x509.load_pem_x509_certificate(pem[pem.index("-----BEGIN CERTIFICATE-----") :].encode()))


def distinguished_name(der: bytes) -> str:
    """The subject of a certificate as Java prints it (RFC 2253): the most specific part first."""
    return _named(x509.load_der_x509_certificate(der).subject)


def _notes(certificate: x509.Certificate) -> CertificateNotes:
    hosts: list[str] = []
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]
    except x509.ExtensionNotFound:
        pass
    return CertificateNotes(_named(certificate.subject), tuple(hosts), certificate.not_valid_after_utc)


def _named(subject: x509.Name) -> str:
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(subject.rdns))


def _attribute(attribute: x509.NameAttribute[Any]) -> str:
    """`CN=name`; an attribute without a short name is its number and its bytes."""
    oid, value = attribute.oid.dotted_string, attribute.value
    short = _SHORT_NAMES.get(oid)
    if short is not None and isinstance(value, str):
        return f"{short}={_escaped(value)}"
    raw = value.encode() if isinstance(value, str) else value
    size = bytes([len(raw)]) if len(raw) < 128 else b"\x82" + len(raw).to_bytes(2, "big")
    tag = _IA5_STRING if oid in _IA5_ATTRIBUTES else _UTF8_STRING
    return f"{oid}=#{(bytes([tag]) + size + raw).hex()}"


def _escaped(value: str) -> str:
    """Escape what RFC 2253 escapes: special characters, a leading # and blanks at the ends."""
    text = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    if text.startswith(("#", " ")):
        text = "\\" + text
    if text.endswith(" ") and len(value) > 1:
        text = text[:-1] + "\\ "
    return text
