"""The token of one server: when it is sent, renewed and replaced, and how often."""
