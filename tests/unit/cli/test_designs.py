"""What `partita designs` says without running anything."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from partita.cli.designs import designs
from partita.designs.zookeeper import jars


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--members", "x"], "must be numbers such as 5,20,50"),
        (["--members", "1"], "groups have 2 to 100 members"),
        (["--designs", "4"], "there is no design '4'"),
        (["--scenario", "flood"], "there is no scenario 'flood'"),
    ],
)
def test_a_wrong_wish_is_said(monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str) -> None:
    pytest.importorskip("kazoo", reason="left out, the old designs speak to ZooKeeper through kazoo")
    monkeypatch.setattr(jars, "why_not", lambda: None)
    done = CliRunner().invoke(designs, ["compare", *arguments])
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.case("GC-W30")
@pytest.mark.parametrize("arguments", [["compare"], ["run", "3", "--for", "0.1"]], ids=" ".join)
def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    done = CliRunner().invoke(designs, arguments)
    assert done.exit_code == 1
    assert "kazoo, which is not installed; install it with: pip install 'partita[designs]'" in done.output


def test_the_flows_are_explained_without_a_server() -> None:
    done = CliRunner().invoke(designs, ["explain"])
    assert done.exit_code == 0
    assert [f"Design {name}" in done.output for name in ("1", "2", "3", "848")] == [True] * 4
