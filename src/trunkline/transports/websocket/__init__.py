"""The WebSocket transport: `ws://` and `wss://` clients, and servers beside HTTP."""
