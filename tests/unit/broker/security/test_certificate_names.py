"""Distinguished names as Java prints them. (SE-H07, SE-H12)"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import CertificateBuilder, Name, NameAttribute, ObjectIdentifier, random_serial_number
from cryptography.x509.oid import NameOID

from partita.broker.security.certificates import distinguished_name


def named(*pairs: tuple[ObjectIdentifier, str]) -> str:
    key = generate_private_key(SECP256R1())
    name = Name([NameAttribute(oid, value) for oid, value in pairs])
    now = datetime.now(UTC)
    made = (
        CertificateBuilder(name, name, key.public_key(), random_serial_number(), now, now + timedelta(days=1))
        .sign(key, SHA256())
        .public_bytes(Encoding.DER)
    )
    return distinguished_name(made)


@pytest.mark.case("SE-H07")
def test_the_most_specific_part_comes_first() -> None:
    parts = [(NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Partita"), (NameOID.COMMON_NAME, "Carol")]
    assert named(*parts) == "CN=Carol,O=Partita,C=DE"


@pytest.mark.case("SE-H12")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a,b", r"CN=a\,b"),
        ('a+b"c', r"CN=a\+b\"c"),
        (r"a\b<c>;", r"CN=a\\b\<c\>\;"),
        (" a ", r"CN=\ a\ "),
        ("#a", r"CN=\#a"),
        ("a=b", "CN=a=b"),
    ],
)
def test_special_characters_are_escaped(value: str, text: str) -> None:
    assert named((NameOID.COMMON_NAME, value)) == text


def test_attributes_without_a_short_name_are_numbers_and_bytes() -> None:
    assert named((NameOID.EMAIL_ADDRESS, "a@b")) == "1.2.840.113549.1.9.1=#1603614062"
