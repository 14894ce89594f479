"""Conversations: each message in the order of those before it, and the outcome of each rule."""
