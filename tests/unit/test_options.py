from typing import Any

import pytest

from partita import Admin, Consumer, Producer
from partita.options import REQUIRED, ConfigError, Option, check_options

OPTIONS = (
    Option("bootstrap_servers", "list", REQUIRED, "addresses of brokers, such as localhost:9092"),
    Option("linger_ms", "int", 5, minimum=0),
    Option("acks", "str", "all", choices=("all", "0", "1")),
    Option("jitter", "float", 0.2, minimum=0.0, maximum=0.5),
    Option("enable_idempotence", "bool", True),
    Option("client_id", "str", None),
)


def test_defaults_fill_what_is_not_given() -> None:
    values = check_options(OPTIONS, {"bootstrap_servers": "a:1, b:2"})
    assert values["bootstrap_servers"] == ["a:1", "b:2"]
    assert values["linger_ms"] == 5
    assert values["client_id"] is None


def test_a_dict_in_dotted_spelling_is_accepted() -> None:
    dotted = {"bootstrap.servers": ["a:1"], "linger.ms": "20", "enable.idempotence": "FALSE"}
    values = check_options(OPTIONS, {}, dotted)
    assert (values["linger_ms"], values["enable_idempotence"]) == (20, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger_sm": 1}, "did you mean 'linger_ms'"),
        ({"linger.sm": 1}, "did you mean 'linger.ms'"),
        ({"zzzzzzzzzz": 1}, "unknown option 'zzzzzzzzzz'$"),
        (
            {"socket_timeout_ms": 1, "debug": "all", "linger": 1},
            "unknown option 'socket_timeout_ms'; did you mean 'request_timeout_ms'.*; "
            "unknown option 'debug'; set the level of the logger 'partita' instead; "
            "unknown option 'linger'; did you mean 'linger_ms'",
        ),
        ({"linger": 1}, "unknown option 'linger'; did you mean 'linger_ms'"),
        ({"linger": 1}, "did you mean 'linger_ms'"),
        ({"consumer_timeout_ms": 1}, r"unknown option 'consumer_timeout_ms'; give poll\(\) a timeout instead$"),
        ({"api_version": 1}, "unknown option 'api_version'; versions are agreed with each broker; leave it out$"),
        ({"brokers": "a:1"}, "did you mean 'bootstrap_servers'"),
        ({"linger_ms": -1}, "linger_ms must be at least 0, not -1"),
        ({"linger_ms": 1.5}, "linger_ms must be a whole number, not 1.5"),
        ({"linger_ms": True}, "linger_ms must be a whole number, not True"),
        ({"linger_ms": "soon"}, "linger_ms must be a whole number, not 'soon'"),
        ({"linger_ms": None}, "linger_ms must not be None"),
        ({"jitter": 0.6}, "jitter must be at most 0.5, not 0.6"),
        ({"acks": "al"}, "acks must be one of all, 0, 1, not 'al'; did you mean 'all'"),
        ({"enable_idempotence": "perhaps"}, "must be true or false, not 'perhaps'"),
        ({"client_id": 7}, "client_id must be a string, not 7"),
        ({"bootstrap_servers": 7}, "must be a list or comma-separated text, not 7"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_options(OPTIONS, {"bootstrap_servers": "a:1"} | given)


def test_a_missing_required_option_says_what_it_is_for() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers is required: addresses of brokers"):
        check_options(OPTIONS, {})


@pytest.mark.parametrize("client", [Consumer, Producer, Admin])
def test_a_topic_or_server_in_place_of_the_options_is_refused(client: Any) -> None:
    with pytest.raises(ConfigError, match="not 'orders'; give servers as bootstrap_servers="):
        client("orders", bootstrap_servers="a:1")


def test_an_option_given_both_ways_is_refused() -> None:
    with pytest.raises(ConfigError, match="given twice"):
        check_options(OPTIONS, {"linger_ms": 1}, {"bootstrap.servers": "a:1", "linger.ms": 2})


def test_a_list_default_is_not_shared() -> None:
    options = (Option("names", "list", ["x"]),)
    check_options(options, {})["names"].append("y")
    assert check_options(options, {})["names"] == ["x"]
