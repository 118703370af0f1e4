"""The guide names every option of the consumer with its default."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.consumer.config import OPTIONS
from partita.options import REQUIRED, Option
from partita.security_options import SECURITY_OPTIONS

GUIDE = (Path(__file__).parents[3] / "docs" / "consumer.md").read_text()
DOCUMENTED = [option for option in OPTIONS if option not in SECURITY_OPTIONS]


@pytest.mark.parametrize("option", DOCUMENTED, ids=lambda option: option.name)
def test_the_guide_says_the_default(option: Option) -> None:
    default = "(required)" if option.default is REQUIRED else repr(option.default)
    assert f"| `{option.name}` | `{default}` |" in GUIDE
