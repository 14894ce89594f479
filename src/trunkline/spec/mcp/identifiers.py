"""Where messages hold identifiers: texts that are compared, looked up or sent back unchanged.

A text may be cleaned for display; an identifier may not, because two that differ could become
one. The rows are paths from the message, in any revision: `a|b` is one of several names, `*` any
element of an array or member of an object.

Names count where they select something: those of tools, prompts and their arguments, not those
of resources, roots or programs. URIs count but for icons and websites, which are displayed. What
an application defines, such as the arguments of a tool or the answer to a form, has none.
"""

from __future__ import annotations

from typing import Final

__all__ = ["IDENTIFIERS"]

# Blocks in the results of tools that are quoted in a sampling message.
_BLOCKS: Final = ("content/*/uri", "content/*/resource/uri")
_SAMPLED: Final = tuple(f"{at}/{block}" for at in ("content", "content/*") for block in _BLOCKS)
# Requests for elicitation and sampling.
_CLIENT_REQUEST: Final = (
    "url",
    "tools/*/name",
    *(f"messages/*/{block}" for block in _SAMPLED),
)

IDENTIFIERS: Final = (
    "id",
    "method",
    # Requests and notifications
    "params/name|uri|cursor|requestState|requestId|taskId|progressToken|elicitationId",
    "params/_meta/progressToken",
    "params/ref/name|uri",
    "params/argument/name",
    "params/notifications/resourceSubscriptions/*",
    *(f"params/{place}" for place in _CLIENT_REQUEST),
    # Results
    "result/nextCursor|requestState|taskId",
    "result/task/taskId",
    "result/tasks/*/taskId",
    "result/tools|prompts/*/name",
    "result/prompts/*/arguments/*/name",
    "result/resources/*/uri",
    "result/resourceTemplates/*/uriTemplate",
    "result/contents/*/uri",
    "result/roots/*/uri",
    *(f"result/{block}" for block in _BLOCKS),
    "result/messages/*/content/uri",
    "result/messages/*/content/resource/uri",
    *(f"result/{block}" for block in _SAMPLED),
    # Requests inside results, and their answers
    *(f"params|result/inputRequests/*/params/{place}" for place in _CLIENT_REQUEST),
    "params/inputResponses/*/roots/*/uri",
    *(f"params/inputResponses/*/{block}" for block in _SAMPLED),
)
