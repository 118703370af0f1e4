"""References to values that are kept elsewhere (security.md 20; KIP-297, KIP-421)."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita import Admin, AsyncConsumer, Consumer, Producer
from partita.options import ConfigError
from partita.references import UnresolvedReference, resolve, resolve_options
from partita.security.meaning import security_of_options
from partita.spark.settings.options import parse_source


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BILLING_PASSWORD", "p$1}x")
    (tmp_path / "kafka.properties").write_text("user = alice\npassword : a\\u0020b\n")
    (tmp_path / "token").write_text("eyJ\n")
    return tmp_path


@pytest.mark.case("SE-Q02")
def test_each_provider_gives_its_value(secrets: Path) -> None:
    properties = secrets / "kafka.properties"
    assert resolve("${env:BILLING_PASSWORD}") == "p$1}x"
    assert resolve(f"${{file:{properties}:password}}") == "a b"
    assert resolve(f"${{dir:{secrets}:token}}") == "eyJ", "without the line end"
    assert resolve(f"u='${{file:{properties}:user}}' p='${{env:BILLING_PASSWORD}}'") == "u='alice' p='p$1}x'"


@pytest.mark.parametrize("text", ["plain", "$env", "${vault:a:b}", "${}", "${env}", "cost: ${price}", "{env:HOME}"])
def test_anything_else_stays_as_it_is(text: str) -> None:
    assert resolve(text) == text


def test_a_value_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "${env:INNER}")
    assert resolve("${env:OUTER}") == "${env:INNER}"


@pytest.mark.case("SE-Q02")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${env:NO_SUCH_VARIABLE}", "the environment variable NO_SUCH_VARIABLE is not set in this process"),
        ("${file:DIR/kafka.properties:pass}", "has no property 'pass'; its properties are: password, user$"),
        ("${file:DIR/none:x}", "cannot read DIR/none: No such file or directory"),
        ("${file:x}", r"must be \$\{file:/path:key\}"),
        ("${dir:DIR:none}", "cannot read DIR/none: No such file or directory"),
        ("${dir:DIR:}", r"must be \$\{dir:/path:name\}"),
    ],
)
def test_what_is_missing_is_named_and_no_value_is_told(secrets: Path, text: str, told: str) -> None:
    with pytest.raises(UnresolvedReference, match=told.replace("DIR", str(secrets))) as caught:
        resolve(text.replace("DIR", str(secrets)))
    assert "a b" not in str(caught.value)


@pytest.mark.case("SE-Q02")
def test_every_option_of_a_client_may_be_a_reference(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD", "-7")
    for client, name in ((Consumer, "max.poll.records"), (AsyncConsumer, "max.poll.records"), (Producer, "linger.ms"),
                         (Admin, "request.timeout.ms")):  # fmt: skip
        with pytest.raises(ConfigError, match=f"^{name.replace('.', '_')} must be at least .*, not -7$"):
            client({"bootstrap.servers": "127.0.0.1:1", name: "${env:BAD}"})
        with pytest.raises(ConfigError, match=r"^client_id: .* the environment variable NO_SUCH is not set"):
            client(bootstrap_servers="127.0.0.1:1", client_id="${env:NO_SUCH}")


@pytest.mark.case("SE-Q02")
def test_a_secret_of_a_spark_job_is_resolved_in_the_process_that_connects(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "kafka.bootstrap.servers": "${env:BROKERS}",
        "subscribe": "orders",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "${env:BILLING_PASSWORD}",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROKERS", "broker.example:9093")
        client = parse_source(options).client
    assert client["bootstrap.servers"] == "broker.example:9093"
    assert client["sasl.password"] == "${env:BILLING_PASSWORD}", "the value must not travel with the job"
    monkeypatch.setenv("BILLING_PASSWORD", "of the executor")
    sasl = security_of_options(resolve_options(client)).sasl
    assert sasl is not None
    assert sasl.login[1].reveal() == "of the executor"
