import json
from pathlib import Path

import pytest

from partita.admin.config import OPTIONS, admin_config
from partita.client_options import PARTITA_SECURITY_OPTIONS
from partita.options import ConfigError


def test_every_option_of_kafka_is_known_with_its_default() -> None:
    vectors = Path(__file__).parents[2] / "vectors" / "configs.json"
    known = {option.dotted: option for option in OPTIONS}
    ours = {"send.buffer.bytes": -1, "receive.buffer.bytes": -1}
    for fact in json.loads(vectors.read_text())["admin"]:
        option = known.pop(fact["name"])
        if fact["type"] in ("INT", "LONG", "SHORT", "BOOLEAN", "DOUBLE"):
            assert option.default == ours.get(fact["name"], fact.get("default")), fact["name"]
    assert known.keys() == {option.dotted for option in PARTITA_SECURITY_OPTIONS}, "the rest is documented as ours"


def test_options_reach_the_connections() -> None:
    servers, config = admin_config({"bootstrap.servers": "a:1,b:2"}, {"request_timeout_ms": 5})
    assert (servers, config.request_timeout_ms, config.client_id) == (["a:1", "b:2"], 5, "admin")


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'client_id'"):
        admin_config(None, {"bootstrap_servers": "a:1", "client": "x"})
    with pytest.raises(ConfigError, match="sasl_mechanism is not set"):
        admin_config(None, {"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL"})
