"""The rules of a conversation, by topic.

A rule is a function of what was just seen, what is remembered, and the checker that it writes.
It says for each requirement it knows whether there was an occasion and whether it was kept;
which revisions ask for that at all is for the checker to know.
"""

from __future__ import annotations
