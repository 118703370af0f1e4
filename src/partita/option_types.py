"""Keyword arguments of clients and brokers, by name and type, for annotations: `**options: Unpack[BrokerOptions]`.

At run time these are plain dicts; option_types.pyi beside this file, written by `tools/option_types.py` from the tables
of options, has a TypedDict for each.
"""

from __future__ import annotations

from typing import Any

ClientOptions = AdminOptions = ConsumerOptions = ShareOptions = ProducerOptions = BrokerOptions = dict[str, Any]
