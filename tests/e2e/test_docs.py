"""The how-tos in docs/ do what they say: their Python runs, their links lead somewhere, the generated pages are fresh.

A page's python blocks run one after another in one namespace, with `bootstrap`, the address of a fresh broker whose
topics have four partitions. A block behind `<!-- not run: reason -->` is only compiled.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partita import Broker, Consumer
from partita.broker.control.verbs import Control
from partita.net.secured.tokens import TokenSource
from partita.security.settings import SaslSettings
from support.every_case import every_case

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    "index",
    "first-consumer",
    "consumer",
    "what-a-rebalance-does-to-you",
    "why-did-it-rebalance",
    "consumer-protocol",
    "why-a-group-coordinator",
    "long-processing",
    "work-queues",
    "arrow-to-pandas-polars-duckdb",
    "testing-with-partita",
    "migrating",
    "errors",
    "security",
    "providers",
    "test-security-settings",
    "schema-registry",
    "monitoring",
    "operating",
    "transactions",
    "dashboard",
)
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```python\n(.*?)```", re.S)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / f"{page}.md").read_text()
    monkeypatch.chdir(tmp_path)
    with Broker(num_partitions=4) as broker:
        namespace = {"bootstrap": broker.bootstrap, "__name__": "page"}
        blocks = list(BLOCK.finditer(text))
        assert any(not block[1] for block in blocks), "a how-to shows something that runs"
        for block in blocks:
            line = text[: block.start(2)].count("\n")
            flags = PyCF_ALLOW_TOP_LEVEL_AWAIT if block[1] else 0
            code = compile("\n" * line + block[2], f"docs/{page}.md", "exec", flags=flags)
            if not block[1]:
                exec(code, namespace)


def test_the_recipe_for_msk_gives_tokens_and_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Signer:
        """In place of Amazon's, which counts the ends of tokens in milliseconds."""

        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            return f"token for {region}", 4_000_000_000_000

    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", SimpleNamespace(MSKAuthTokenProvider=Signer))
    text = (DOCS / "providers.md").read_text()
    recipe = next(block[2] for block in BLOCK.finditer(text) if "def msk_token" in block[2])
    namespace: dict[str, Any] = {"Consumer": Consumer}
    exec(recipe, namespace)
    tokens = TokenSource(SaslSettings("OAUTHBEARER", token_provider=namespace["msk_token"]))
    token = asyncio.run(tokens.token())
    assert (token.token.reveal(), token.expires_at_s) == ("token for eu-west-1", 4_000_000_000)


def test_every_control_verb_has_an_example() -> None:
    page = (DOCS / "testing-with-partita.md").read_text()
    verbs = [name for name in vars(Control) if not name.startswith("_")]
    assert [verb for verb in verbs if f"control.{verb}(" not in page] == []


def test_the_generated_pages_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: python tools/reference.py"


@every_case("page", sorted(DOCS.glob("*.md")), lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []
