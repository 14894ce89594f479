"""Our client and servers that have a short menu: what every library of MCP can do over HTTP."""

from __future__ import annotations

from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from . import our_client, our_client_asked
from .checks import ANY, Checks, expect
from .menu import SHORT_PROMPTS, SHORT_RESOURCES, SHORT_TEMPLATES, SHORT_TOOLS
from .our_client import Talk, said

__all__ = ["CHECKS", "PLAIN_CHECKS", "RESUMED_CHECKS"]

CHECKS = Checks()
RESUMED_CHECKS = Checks()
PLAIN_CHECKS = Checks()
# The checks of the long menu that the short one is enough for.
SHARED = {
    "the server says who it is",
    "discover tells who and what",
    "ping is answered",
    "a text comes back as it went",
    "many calls at once are told apart",
    "values have the type asked for",
    "an image is an image",
    "a tool that fails says so",
    "bad arguments are told",
    "an unknown tool is refused",
    "an unknown method is refused",
    "the server knows who is asking",
    "progress is reported",
    "the log begins at its level",
    "a call that is cancelled stops",
    "a call that takes too long stops",
    "a text is read",
    "bytes are read",
    "a template is read",
    "a missing resource is an error",
    "a prompt is filled in",
    "an unknown prompt is refused",
    "arguments are completed",
    "our model is asked",
    "our user is asked",
    "our user fills in a form",
    "our roots are asked",
    "many questions at once are told apart",
    "a call that is cancelled calls its question off",
    "a question that is refused ends the call",
    "nothing is answered by responses",
}


# Those in which a request has one answer, and nothing else is sent.
PLAIN = {
    "the server says who it is",
    "ping is answered",
    "a text comes back as it went",
    "many calls at once are told apart",
    "values have the type asked for",
    "an image is an image",
    "a tool that fails says so",
    "bad arguments are told",
    "an unknown method is refused",
    "a text is read",
    "bytes are read",
    "a template is read",
    "a prompt is filled in",
    "arguments are completed",
}


@CHECKS.about(ANY)
async def everything_is_listed(talk: Talk) -> None:
    """Tools, resources, templates and prompts."""
    expect([tool.name for tool in await talk.client.list_tools()], list(SHORT_TOOLS))
    expect([each.uri for each in await talk.client.list_resources()], list(SHORT_RESOURCES))
    templates = await talk.client.list_resource_templates()
    expect([each.uri_template for each in templates], list(SHORT_TEMPLATES))
    expect([each.name for each in await talk.client.list_prompts()], list(SHORT_PROMPTS))


for each in (*our_client.CHECKS, *our_client_asked.CHECKS):
    if each.name in SHARED:
        CHECKS.append(each)
    if each.name in PLAIN:
        PLAIN_CHECKS.append(each)
# A name that is written otherwise would be left out.
assert (len(CHECKS), len(PLAIN_CHECKS)) == (len(SHARED) + 1, len(PLAIN))


@RESUMED_CHECKS.about(Window(V2025_11_25, V2026_07_28))
async def a_stream_that_is_cut_is_resumed(talk: Talk) -> None:
    """A server that ends the stream of a call sends the result when the client comes back."""
    expect(await said(talk, "cut"), "whole")
    expect(talk.events.count("resume"), 1, "resumptions")
