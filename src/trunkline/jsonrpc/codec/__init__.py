"""The codec: messages from bytes and to bytes, and what is wrong with those that fail."""
