"""Share groups (KIP-932) as rules: the records of one partition that the members of a group share, and their sessions.

Nothing here knows sockets, logs or the share coordinator. (Kafka: server.share.)
"""
