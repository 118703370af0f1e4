"""What is served: an index printed from the handlers' declarations, and the pages that show it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from runpy import run_path

import pytest

from partita.broker.api.apis import SERVED, ServedApi
from support.every_case import every_case

TOOLS = Path(__file__).parents[4] / "tools"
VECTORS = Path(__file__).parents[3] / "vectors"


@pytest.mark.parametrize("tool", ["apis.py", "compatibility.py"])
def test_the_index_and_the_pages_are_printed_from_the_declarations(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [tool, "--check"])
    with pytest.raises(SystemExit) as ended:
        run_path(str(TOOLS / tool), run_name="__main__")
    assert not ended.value.code, capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["Kafka ends here.", "it also rebalances; Kafka does not.", "one user has at most ten."]
)
def test_a_deviation_that_its_reader_cannot_understand_is_not_printed(text: str, tmp_path: Path) -> None:
    """Finding newcomer 19: it stands alone on the page, so it says what Partita does, and where Kafka does what."""
    source = tmp_path / "source.py"
    sentences = run_path(str(TOOLS / "compatibility.py"))["sentences"]
    source.write_text('"""A place.\n\nDeviation: Partita refuses it,\nv. 2 too. Kafka does not.\n\nMore.\n"""\n')
    assert list(sentences(source)) == [(3, "Partita refuses it, v. 2 too. Kafka does not.")]
    source.write_text(f"# Deviation: {text}\n")
    with pytest.raises(ValueError, match="expected 'Partita"):
        list(sentences(source))


@every_case("api", SERVED.values(), lambda api: api.name)
def test_a_handler_s_file_is_named_after_its_api_and_takes_its_request(api: ServedApi) -> None:
    module = api.module
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()
    assert module.__name__ == f"partita.broker.handlers.{name}"
    assert api.declared.request is api.request
    context, request = inspect.signature(module.handle).parameters.values()
    assert (context.name, context.annotation) == ("ctx", "RequestContext")
    assert (request.name, request.annotation) == ("request", api.request.__name__)
    assert api.handler is module.handle


def test_the_page_names_every_api_of_kafka_that_is_not_served() -> None:
    missing = run_path(str(TOOLS / "compatibility.py"))["MISSING"]
    apis = json.loads((VECTORS / "schema.json").read_text())["apis"]
    of_kafka = {api["api"]: api["name"] for api in apis if "BROKER" in api["listeners"]}
    assert {key: name for key, (name, _) in missing.items()} == {k: n for k, n in of_kafka.items() if k not in SERVED}
