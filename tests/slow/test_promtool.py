"""Prometheus's own promtool reads the alert rules and runs their tests; its first build takes minutes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.go_programs import go_program

PACKAGE, VERSION = "github.com/prometheus/prometheus/cmd/promtool", "v0.55.1"
MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
LIMIT_S = 120


def promtool(*arguments: str, folder: Path = MONITORING) -> subprocess.CompletedProcess[str]:
    """Run promtool in this folder."""
    program = go_program(PACKAGE, VERSION, "build")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)


def test_every_alert_rule_is_one_of_prometheus() -> None:
    done = promtool("check", "rules", "alerts.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    rules = (MONITORING / "alerts.yml").read_text().count("- alert:")
    assert f"{rules} rules found" in done.stdout


def test_the_rules_pass_their_tests_and_a_wrong_rule_does_not(tmp_path: Path) -> None:
    done = promtool("test", "rules", "alerts_test.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(MONITORING / "alerts_test.yml", tmp_path)
    rules = (MONITORING / "alerts.yml").read_text()
    wrong = rules.replace("partita_node_up == 0", "partita_node_up == 1")
    assert wrong != rules
    (tmp_path / "alerts.yml").write_text(wrong)
    done = promtool("test", "rules", "alerts_test.yml", folder=tmp_path)
    assert done.returncode == 1
    assert "KafkaNodeDown" in done.stdout + done.stderr
