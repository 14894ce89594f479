"""The client under test: one conversation with the mock server of a scenario.

    MCP_CONFORMANCE_SCENARIO=tools_call python -m conformance.client URL

The suites start this module once for each scenario, all at the same time, with these variables:

* MCP_CONFORMANCE_SCENARIO: the name of the scenario.
* MCP_CONFORMANCE_PROTOCOL_VERSION: the revision to speak. The older suite does not set it, and
  then the revision is negotiated.
* MCP_CONFORMANCE_CONTEXT: JSON that some scenarios need.

Prints `DONE` and exits with 0 at the end of the conversation, or prints the error and exits with 1.
In some scenarios of authorization the client has to refuse: that is the end of the conversation.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline import AuthorizationFailed, Client, TrunklineError
from trunkline.mcp.types import CreateMessageRequestParams, CreateMessageResult, TextContent

# The last line of output. The suites ignore the exit status: `conformance.run` reads this.
DONE: Final = "conversation complete"
# Seconds for the whole conversation: a suite waits for its clients without a limit.
TIMEOUT_S: Final = 45.0

Conversation = Callable[[Client], Awaitable[None]]


# -- tools -----------------------------------------------------------------------------------


async def list_and_call(client: Client) -> None:
    """Call the first tool."""
    tools = await client.list_tools()
    await client.call_tool(tools[0].name, {})


async def list_tools(client: Client) -> None:
    """List the tools."""
    await client.list_tools()


async def add_numbers(client: Client) -> None:
    """Call a tool with two numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def form_defaults(client: Client) -> None:
    """Call a tool that sends a form; the client fills omitted fields with their defaults."""
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


async def resumed_stream(client: Client) -> None:
    """Call a tool whose stream is closed before its result."""
    await client.list_tools()
    await client.call_tool("test_reconnection")


async def input_required(client: Client) -> None:
    """Call tools that request input, with and without a state."""
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


async def received_schema(client: Client) -> None:
    """Send the schema of a tool back as it was received."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    await client.call_tool("json_schema_echo", {"schema": schema})


# -- headers ---------------------------------------------------------------------------------


async def everything(client: Client) -> None:
    """List and use all tools, resources and prompts."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def given_calls(client: Client) -> None:
    """Make the calls that the scenario gives."""
    await client.list_tools()
    context = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def every_tool(client: Client) -> None:
    """Call every tool of the listing."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {"value": "x"})


# -- skills ----------------------------------------------------------------------------------


async def list_skills(client: Client) -> None:
    """List the skills, and read none."""
    await client.request("skills/list")


async def read_skill(client: Client) -> None:
    """Read a skill, and the other files of it only if the first one is as it was listed."""
    from trunkline.skills import VerificationFailed, verify

    for entry in (await client.request("skills/list"))["skills"]:
        try:
            verify(entry, await client.read_resource(entry["uri"]))
            for resource in entry["resources"]:
                verify(entry, await client.read_resource(resource["uri"]))
        except VerificationFailed as error:
            print(f"not used: {error}")


# -- authorization ---------------------------------------------------------------------------


async def use_twice(client: Client) -> None:
    """Call the first tool twice: the server may ask for another login in between."""
    for _ in range(2):
        await list_and_call(client)


# Scenarios that are not listed are those of authorization, in which any request will do.
CONVERSATIONS: Final[dict[str, Conversation]] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": form_defaults,
    "sse-retry": resumed_stream,
    "request-metadata": list_tools,
    "http-standard-headers": everything,
    "http-custom-headers": given_calls,
    "http-invalid-tool-headers": every_tool,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": received_schema,
    "sep-2322-client-request-state": input_required,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": read_skill,
    "sep-2640-client-verify-size": read_skill,
    "sep-2640-client-verify-frontmatter": read_skill,
    "auth/authorization-server-migration": use_twice,
}


# -- the client ------------------------------------------------------------------------------


def fill_in(params: Any) -> dict[str, Any]:
    """Answer a form: confirm it if it asks for that, and leave the rest to the defaults."""
    fields = params.requested_schema["properties"]
    return {"confirmed": True} if "confirmed" in fields else {}


def sample(params: CreateMessageRequestParams) -> CreateMessageResult:
    """Answer as a model would."""
    return CreateMessageResult(TextContent("a model's answer"), "a model", "assistant")


def auth_of(scenario: str) -> Any:
    """Return the credentials of a scenario; None of one without authorization."""
    if not scenario.startswith("auth/"):
        return None
    # Imported here: all clients start at the same moment, and most have no credentials.
    from .auth_grants import AUTH
    from .auth_login import login

    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    return AUTH.get(scenario, login)(context)


async def run(url: str, scenario: str, revision: str | None) -> None:
    """Hold the conversation of a scenario."""
    client = Client(
        url,
        revision=revision,
        auth=auth_of(scenario),
        name="trunkline-conformance",
        roots=["file:///"],
        on_sample=sample,
        on_elicit=fill_in,
        on_event=lambda kind, text: print(f"{kind}: {text}"),
    )
    async with asyncio.timeout(TIMEOUT_S), client:
        await CONVERSATIONS.get(scenario, list_and_call)(client)


async def run_guarded(url: str, scenario: str, revision: str | None) -> None:
    """Hold a conversation, which the client has to refuse in some scenarios."""
    from .auth_login import LOGIN_FAILS

    step = LOGIN_FAILS.get(scenario)
    try:
        await run(url, scenario, revision)
    except AuthorizationFailed as error:
        if error.step != step:
            raise
        print(f"refused: {error}")
    else:
        if step is not None:
            raise TrunklineError(f"the client was to refuse at the step {step!r}")


def main() -> int:
    """Run the scenario that the environment names."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    try:
        if scenario.startswith("auth/"):
            asyncio.run(run_guarded(sys.argv[-1], scenario, revision))
        else:
            asyncio.run(run(sys.argv[-1], scenario, revision))
    except (TrunklineError, TimeoutError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(DONE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
