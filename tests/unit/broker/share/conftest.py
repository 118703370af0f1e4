"""A broker without sockets that serves share groups."""

from collections.abc import Iterator

import pytest

from support.share.plane import SharePlane, share_plane


@pytest.fixture
def plane() -> Iterator[SharePlane]:
    with share_plane() as made:
        yield made
