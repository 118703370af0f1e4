"""Share groups (KIP-932) as rules: the records of one partition that the members of a group share, and their sessions.

Nothing here knows sockets or logs, and what is stored of a share partition does not know its leader. (Kafka:
server.share.)
"""
