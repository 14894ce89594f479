"""Building blocks for asyncio that transports, servers and clients share."""
