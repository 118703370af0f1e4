"""What anyone may do where nobody is refused, as the bits clients read: 1 << the number of the operation.

Upstream: AclEntry.supportedOperations. The operations: read 3, write 4, create 5, delete 6, alter 7, describe 8,
cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
"""

from __future__ import annotations

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
