"""The golden vectors of record batches: what Kafka's own classes said about each."""

import gzip
import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "vectors" / "record-batches.jsonl.gz"


def load() -> list[dict[str, Any]]:
    with gzip.open(PATH) as lines:
        return [json.loads(line) for line in lines]
