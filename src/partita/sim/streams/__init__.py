"""Streams groups under faults: members of an application that joins two topics, and the rules of their tasks."""
