"""Look at a cluster and change it: topics, options, records, groups and their offsets. See `client`."""

from partita.admin.blocking import Admin
from partita.admin.client import AsyncAdmin
from partita.admin.reset import Target
from partita.admin.results import SomeFailed
from partita.admin.topics import NewTopic

__all__ = ["Admin", "AsyncAdmin", "NewTopic", "SomeFailed", "Target"]
