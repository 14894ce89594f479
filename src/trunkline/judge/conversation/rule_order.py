"""The rules about messages, in the order in which they are applied to each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ..rules import (
    elicitation,
    headers,
    http,
    lifecycle,
    lists,
    messages,
    multi_round_trip,
    per_request,
    progress,
    subscriptions,
    tasks,
)
from ..rules.checker import Checker
from ..rules.state import ObservedMessage, State

__all__ = ["RULES"]

_Rule: TypeAlias = Callable[[ObservedMessage, State, Checker], None]

# In this order: a rule may store facts about a request that a later rule reads.
RULES: Final[tuple[_Rule, ...]] = (
    messages.check_envelope,
    messages.check_ids,
    lifecycle.check_lifecycle,
    lifecycle.check_negotiated,
    lifecycle.check_capabilities,
    per_request.check_sides,
    per_request.check_meta,
    per_request.check_result,
    per_request.check_error,
    per_request.check_discovery,
    progress.check_progress,
    progress.check_cancellation,
    progress.check_logging,
    multi_round_trip.check_rounds,
    subscriptions.check_subscriptions,
    lists.check_listings,
    lists.check_tools,
    elicitation.check_questions,
    elicitation.check_roots,
    tasks.check_tasks,
    headers.check_headers,
    http.check_stream,
    messages.check_refusals,
)
