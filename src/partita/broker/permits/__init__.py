"""The ACLs and quotas of a cluster, and the audit log of what they refused."""
