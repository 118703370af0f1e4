"""Security options: other clients' names, login lines, what does not fit together, and no secret in any text."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from partita.admin.config import admin_config
from partita.consumer.config import ConsumerConfig
from partita.options import ConfigError
from partita.producer.config import ProducerConfig
from partita.secret import Secret
from partita.security.meaning import Security

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def security(config: Mapping[str, Any] | None = None, /, **options: Any) -> Security:
    found: Security = ConsumerConfig.of(config, bootstrap_servers="b:1", **options).values["security"]
    return found


@pytest.mark.case("SE-N16")
def test_one_login_in_the_words_of_four_clients() -> None:
    ours = security(
        security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p", ssl_ca_location="ca"
    )
    confluent = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": "ca",
    }
    kafka_python: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
        "ssl_cafile": "ca",
    }
    assert security(confluent) == security(**kafka_python) == ours
    java = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": "ca"}
    assert security(java | {"sasl.jaas.config": f'{PLAIN} required username="u" password="p";'}) == ours


def test_a_delegation_token_is_said_by_an_option_or_in_javas_line() -> None:
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
    ours = security(**login, sasl_username="id", sasl_password="aGs=", sasl_scram_tokenauth=True)
    line = f'{SCRAM} required username="id" password="aGs=" tokenauth={{}};'
    assert security(**login, sasl_jaas_config=line.format('"true"')) == ours
    without = security(**login, sasl_jaas_config=line.format('"false"'))
    assert without == security(**login, sasl_username="id", sasl_password="aGs=") != ours
    with pytest.raises(ConfigError, match="logs in with a delegation token, which PLAIN cannot"):
        security(
            security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_username="id", sasl_password="aGs=",
            sasl_scram_tokenauth=True,
        )  # fmt: skip


@pytest.mark.case("SE-N19")
@pytest.mark.parametrize(
    "settings",
    [
        {  # Confluent Cloud, as its page for Java clients prints it
            "security.protocol": "SASL_SSL",
            "sasl.jaas.config": f"{PLAIN} required username='KEY' password='SECRET+/=';",
            "sasl.mechanism": "PLAIN",
            "client.dns.lookup": "use_all_dns_ips",
            "session.timeout.ms": "45000",
        },
        {  # Amazon MSK with SCRAM
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} required username="alice" password="alice-secret";',
        },
        {  # Aiven, with a client certificate
            "security.protocol": "SSL",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "service.cert",
            "ssl.key.location": "service.key",
        },
        {  # Azure Event Hubs
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} required username="$ConnectionString" '
            'password="Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=a+b/c=";',
        },
    ],
    ids=["confluent-cloud", "msk", "aiven", "event-hubs"],
)
def test_what_providers_print_is_accepted_as_it_stands(settings: dict[str, str]) -> None:
    found = security(settings)
    assert found.protocol == settings["security.protocol"]
    if found.sasl is not None and "Endpoint" in settings["sasl.jaas.config"]:
        assert found.sasl.user == "$ConnectionString"
        assert found.sasl.login[1].reveal().endswith("SharedAccessKey=a+b/c=")


@pytest.mark.case("SE-N17")
@pytest.mark.case("SE-N01")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism is not set.*set PLAIN, SCRAM-SHA-256"),
        ({"sasl_mechanism": "PLAIN"}, "needs a user and a password: sasl_username is not set"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "u"}, "sasl_password is not set"),
        ({"sasl_mechanism": "plain"}, "OAUTHBEARER or GSSAPI, not 'plain'"),
        ({"sasl_mechanism": "AWS_MSK_IAM"}, "MSKAuthTokenProvider.generate_auth_token"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "needs a source of tokens"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"{SCRAM} required;"}, "ScramLoginModule, which is for SCRAM"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": "com.example.Own required;"}, "only Java can load"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"{PLAIN} required"}, "not terminated by semi-colon"),
        (
            {
                "sasl_mechanism": "PLAIN",
                "sasl_username": "other",
                "sasl_jaas_config": f'{PLAIN} required username="u" password="hush";',
            },
            "are both given and differ",
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "http://idp.example/token"},
            "would send the client secret in plain text",
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "https://idp.example/token"},
            "needs sasl_oauthbearer_client_credentials_client_id",
        ),
        ({"security_protocol": "PLAINTEXT", "ssl_context": object()}, "ssl_context is given, but security_protocol"),
        ({"security_protocol": "SSL", "ssl_context": object(), "ssl_ca_location": "x"}, "both given"),
        ({"security_protocol": "SSL", "ssl_ca_location": "x", "ssl_ca_pem": "y"}, "both give the trusted authorities"),
        ({"sasl_password": 7}, "sasl_password must be a string, not a value of type int"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_cure(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        security(**({"security_protocol": "SASL_SSL"} | options))
    assert "hush" not in str(caught.value)


@pytest.mark.case("SE-P12")
def test_secrets_are_in_no_text_of_any_config() -> None:
    login: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "u",
        "sasl_password": "hush",
    }
    consumer = ConsumerConfig.of(bootstrap_servers="b:1", **login)
    producer = ProducerConfig.of(bootstrap_servers="b:1", **login)
    _, admin = admin_config(None, {"bootstrap_servers": "b:1", **login})
    for text in (repr(consumer), repr(consumer.values), str(producer), repr(producer.values), repr(admin)):
        assert "hush" not in text
    secret = Secret("hush")
    assert [f"{secret}", f"{secret:>5}", repr([secret])] == ["***", "  ***", "[***]"]
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)


def test_bearer_settings_come_from_the_login_line_or_from_options() -> None:
    line = f'{BEARER} required clientId="id" clientSecret="hush" scope="s" extension_logicalCluster="lkc";'
    url: dict[str, Any] = {"sasl_oauthbearer_token_endpoint_url": "https://idp.example/token"}
    base: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    by_line = security(**base, **url, sasl_jaas_config=line)
    by_options = security(
        **base,
        **url,
        sasl_oauthbearer_method="oidc",
        sasl_oauthbearer_client_id="id",
        sasl_oauthbearer_client_secret="hush",
        sasl_oauthbearer_scope="s",
        sasl_oauthbearer_extensions="logicalCluster=lkc",
    )
    assert by_line == by_options
