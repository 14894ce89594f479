"""The rules of a conversation, by topic.

A rule is a function of the observed message, the state of the conversation and the checker. It
tells the checker of each requirement that the message is an occasion for, and whether the
requirement was kept; the checker knows which revisions have that requirement at all.
"""
