"""`groups describe --timers`: what the coordinator of a live group waits for. (Issue 30, item 7)"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer
from partita.cli.commands import cli


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_timers_of_a_live_group_are_shown(protocol: str) -> None:
    with Broker(admin_port=0) as broker:
        broker.create_topics({"T": 1})
        options = {
            "bootstrap_servers": broker.bootstrap,
            "group_id": "G",
            "client_id": "one",
            "group_protocol": protocol,
        }
        with Consumer(options) as consumer:
            consumer.subscribe(["T"])
            while not consumer.assignment():
                consumer.poll(0.1)
            port = ["--admin-port", str(broker.admin_port), "--admin-token", broker.admin_token, "-b", broker.bootstrap]
            shown = CliRunner().invoke(cli, ["groups", "describe", "G", "--timers", *port])
            values = CliRunner().invoke(cli, ["groups", "describe", "G", "--timers", "--json", *port])
            member_id = consumer.group_metadata().member_id
        refused = CliRunner().invoke(cli, ["groups", "describe", "G", "--timers", "-b", broker.bootstrap])
    assert shown.exit_code == 0, shown.output
    assert "session ends" in shown.output
    (session,) = [timer for timer in json.loads(values.output)[0]["timers"] if timer["what"] == "session ends"]
    assert session["member_id"] == member_id
    assert 0 < session["left_ms"] <= 45_000
    assert refused.exit_code == 2
    assert "--timers needs --admin-port" in refused.output
