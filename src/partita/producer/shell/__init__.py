"""The two faces of the producer and the asyncio driver that runs its core."""
