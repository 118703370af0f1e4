"""`make taste`: a stranger sees a group survive a crash (item 1 of the first minutes)."""

from __future__ import annotations

import re
import signal
import subprocess
import sys


def test_the_taste_counts_every_order_and_says_why() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "partita.cli.main", "taste"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"ben owns all six, \d+\.\d s after the kill", done.stdout)
    sent = re.search(r"^sent +([\d,]+)", done.stdout, re.M)
    assert sent
    assert int(sent[1].replace(",", "")) > 0
    assert re.search(r"^lost +0$", done.stdout, re.M)
    assert "ana probably crashed" in done.stdout


def test_ctrl_c_while_orders_are_sent_leaves_no_words_of_theirs() -> None:
    command = [sys.executable, "-m", "partita.cli.main", "taste"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as taste:
        assert taste.stdout is not None
        next(line for line in taste.stdout if "share the group" in line)
        taste.send_signal(signal.SIGINT)
        _, said = taste.communicate(timeout=120)
    assert (taste.returncode, said) == (130, "")
