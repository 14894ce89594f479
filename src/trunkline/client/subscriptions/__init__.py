"""Change notifications: streams, callbacks, dispatch."""
