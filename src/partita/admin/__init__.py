"""Look at a cluster and change it: topics, options, records, groups and their offsets, ACLs, logins. See `client`."""

from partita.admin.access.delegation_tokens import DelegationToken
from partita.admin.access.scram import ScramCredential, ScramUser
from partita.admin.blocking import Admin
from partita.admin.client import AsyncAdmin
from partita.admin.reset import Target
from partita.admin.results import SomeFailed
from partita.admin.topics import NewTopic
from partita.security.rights.acls import AclBinding, AclFilter

__all__ = [
    "AclBinding",
    "AclFilter",
    "Admin",
    "AsyncAdmin",
    "DelegationToken",
    "NewTopic",
    "ScramCredential",
    "ScramUser",
    "SomeFailed",
    "Target",
]
