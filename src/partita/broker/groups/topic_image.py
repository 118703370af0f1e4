"""The catalogue's topics as KIP-848 groups see them: partitions, racks, and a version that changes with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from partita.group.state.consumers import TopicFacts

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.topics.catalogue import TopicCatalogue


class CatalogueImage:
    """A `partita.group.state.consumers.TopicImage` over the catalogue; it counts its changes."""

    def __init__(self, catalogue: TopicCatalogue, config: BrokerConfig) -> None:
        self._catalogue = catalogue
        self._config = config
        self.version = 0
        catalogue.on_created(lambda topic: self._changed())
        catalogue.on_deleted(lambda topics: self._changed())

    def _changed(self) -> None:
        self.version += 1

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""
        topic = self._catalogue.get(name)
        if topic is None:
            return None
        rack = self._config.get("broker.rack")
        racks = [[str(rack)]] * len(topic.partitions) if rack is not None else ()
        return TopicFacts(topic.topic_id, len(topic.partitions), racks)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        topic = self._catalogue.by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        """Every topic's name."""
        return tuple(self._catalogue.by_name)
