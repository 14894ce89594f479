"""A server with every feature of MCP, each shown by a small tool, prompt or resource.

    python examples/everything_server.py [PORT]

It serves Streamable HTTP at http://127.0.0.1:PORT/mcp, port 8000 by default, in all revisions at
once. The names and texts are those that the official conformance suites call; `make conformance`
runs the suites against this file.

A handler is written once for both eras. A handler that asks the client something sends a request
to a client with a session (2024-11-05 to 2025-11-25), and answers a client without one
(2026-07-28) with an `input_required` result.
"""

from __future__ import annotations

import asyncio
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct

from trunkline import Context, ErrorKind, ParamHeader, RequestError, Server, TaskSettings, ToolError
from trunkline.mcp.types import (
    ContentBlock,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceContents,
    TextContent,
)
from trunkline.skills import Skills

app = Server(
    "everything",
    version="1.0.0",
    instructions="Every feature of MCP, each in a small example.",
    tasks=TaskSettings(poll_interval=0.2),
)

# One red pixel, and a sound of no length: the formats are recognised by their first bytes.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV = b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=")


# -- content: what a tool can return ---------------------------------------------------------


@app.tool
async def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool
async def test_image_content() -> bytes:
    """Return an image."""
    return PNG


@app.tool
async def test_audio_content() -> bytes:
    """Return a sound."""
    return WAV


@app.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Return a resource inside the result."""
    return embedded("test://embedded-resource", "This is an embedded resource content.")


@app.tool
async def test_multiple_content_types() -> list[ContentBlock]:
    """Return a text, an image and a resource."""
    return [
        TextContent("Multiple content types test:"),
        ImageContent(b64encode(PNG).decode(), "image/png"),
        embedded("test://mixed-content-resource", '{"test":"data"}', "application/json"),
    ]


@app.tool
async def test_error_handling() -> str:
    """Fail, with a text for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


def embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    """Return a resource as a content block."""
    return EmbeddedResource(ResourceContents(uri, text=text, mime_type=mime_type))


# -- notifications during a call -------------------------------------------------------------


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages, 50 ms apart."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    await ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    await ctx.info("Tool execution completed")
    return "Tool with logging executed successfully"


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times, 50 ms apart."""
    await ctx.progress(0, 100)
    await asyncio.sleep(0.05)
    await ctx.progress(50, 100)
    await asyncio.sleep(0.05)
    await ctx.progress(100, 100)
    return "Tool with progress executed successfully"


@app.tool
async def test_logging_tool(ctx: Context) -> str:
    """Send a log message, which only clients that set a log level receive."""
    await ctx.info("This is a log message")
    return "Logged"


# -- input schemas ---------------------------------------------------------------------------

# Sent as it is written: the schema library must not reorder or resolve it.
PERSON: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.tool(input_schema=PERSON)
async def json_schema_2020_12_tool(person: dict[str, Any]) -> str:
    """Take arguments that a JSON Schema describes."""
    return f"Received {', '.join(sorted(person))}"


@app.tool
async def test_x_mcp_header(region: Annotated[str, ParamHeader("Region")]) -> str:
    """Take an argument that clients repeat in the HTTP header Mcp-Param-Region."""
    return f"Region: {region}"


# -- elicitation, sampling and roots ---------------------------------------------------------


class UserData(Struct):
    """A form with two required fields."""

    username: str
    email: str


class Profile(Struct):
    """A form whose fields have defaults."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


# A form as a JSON Schema, with each way in which a choice can be written.
CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ]
            },
        },
    },
}


@app.tool
async def test_sampling(ctx: Context, prompt: str) -> str:
    """Ask the client's model."""
    reply = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {text_of(reply)}"


@app.tool
async def test_elicitation(ctx: Context, message: str) -> str:
    """Ask the user to fill in a form."""
    answer = await ctx.elicit(message, UserData)
    if answer.action != "accept":
        return f"User response: {answer.action}"
    return f"User response: {answer.content.username}, {answer.content.email}"


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask the user to change a form that is filled in already."""
    answer = await ctx.elicit("Please review and update the form fields with defaults", Profile)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask the user to choose, in each form that a choice can have."""
    answer = await ctx.elicit("Please select options from the enum fields", CHOICES)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user a yes-or-no question."""
    answer = await ctx.elicit("Continue?", bool)
    return f"Elicitation completed: action={answer.action}"


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need the client's model: a client without sampling receives an error that says so."""
    reply = await ctx.sample("Which capabilities does a client need?", max_tokens=100)
    return text_of(reply)


def text_of(reply: CreateMessageResult) -> str:
    """Return the text of a model's reply; "" for an image or a sound."""
    return reply.content.text if isinstance(reply.content, TextContent) else ""


# -- several questions, and round trips ------------------------------------------------------
#
# In 2026-07-28 a client repeats the call with the answers, and the handler runs again from its
# first line. `key` names a question, so that an answer finds it. Between the calls the state is in
# a sealed `requestState` that the client sends back: the server keeps nothing.


class Person(Struct):
    """The name of the user."""

    name: str


class Color(Struct):
    """A colour that the user likes."""

    color: str


class Topic(Struct):
    """What a prompt is about."""

    context: str


class Agreement(Struct):
    """Yes or no."""

    ok: bool


@app.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    return f"Hello, {await ask_name(ctx)}!"


@app.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model."""
    reply = await ctx.sample(
        "What is the capital of France?", max_tokens=100, key="capital_question"
    )
    return f"The model said: {text_of(reply)}"


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's folders."""
    roots = await ctx.roots(key="client_roots")
    return f"Roots: {', '.join(root.uri for root in roots)}"


@app.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Keep a value from the first run of the handler to the second."""
    state = await ctx.once("state", lambda: "state-ok", type=str)
    answer = await ctx.elicit("Please confirm", Agreement, key="confirm")
    return f"{state}: {answer.action}"


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three questions in one round trip."""
    name, greeting, roots = await asyncio.gather(
        ask_name(ctx),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{name}, {text_of(greeting)}, {len(roots)} roots"


@app.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one question after the other."""
    person = await ctx.elicit("Step 1: What is your name?", Person, key="step1")
    if person.action != "accept":
        return "You have no name."
    color = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    if color.action != "accept":
        return f"{person.content.name} likes no color"
    return f"{person.content.name} likes {color.content.color}"


@app.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask for a confirmation: a client that changes the state receives an error."""
    answer = await ctx.elicit("Please confirm", Agreement, key="confirm")
    return f"The state is intact: {answer.action}"


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what the client can answer."""
    if ctx.client.supports("elicitation"):
        return f"Hello, {await ask_name(ctx)}!"
    reply = await ctx.sample("Generate a greeting", max_tokens=50, key="greeting")
    return text_of(reply)


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask for context before a prompt is written."""
    topic = await ctx.elicit("What context should the prompt use?", Topic, key="user_context")
    return f"Use this context: {topic.content.context if topic.action == 'accept' else 'none'}"


async def ask_name(ctx: Context) -> str:
    """Return the name of the user; "stranger" for a user that declines."""
    answer = await ctx.elicit("What is your name?", Person, key="user_name")
    return answer.content.name if answer.action == "accept" else "stranger"


# -- tasks -----------------------------------------------------------------------------------


@app.tool
async def greet(name: str) -> str:
    """Greet: a tool that never runs as a task."""
    return f"Hello, {name}!"


@app.tool(task="optional")
async def slow_compute(
    ctx: Context, seconds: Annotated[float, "how long to sleep"], label: str = ""
) -> str:
    """Sleep, as a task if the client supports tasks."""
    await asyncio.sleep(seconds)
    return f"Computed {label} in {seconds} s"


@app.tool(task="required")
async def failing_job() -> str:
    """Fail as a tool does: the task is completed, with an error for the model."""
    raise ToolError("The job failed")


@app.tool(task="required")
async def protocol_error_job() -> str:
    """Fail with a JSON-RPC error: the task is failed."""
    raise RequestError(ErrorKind.INTERNAL_ERROR, "The job could not run")


class Deletion(Struct):
    """Whether to delete something."""

    confirm: bool


@app.tool(task="required")
async def confirm_delete(ctx: Context, filename: str) -> str:
    """Wait in the task until the user has answered."""
    answer = await ctx.elicit(f"Delete {filename}?", Deletion, key="confirm")
    if answer.action != "accept" or not answer.content.confirm:
        return f"Kept {filename}"
    return f"Deleted {filename}"


@app.tool(task="required")
async def multi_input(ctx: Context) -> str:
    """Wait in the task for two answers, in any order."""
    name, deletion = await asyncio.gather(
        ask_name(ctx),
        ctx.elicit("Delete the account?", Deletion, key="confirm"),
    )
    return f"{name}: {deletion.action}"


@app.tool(task="required", task_start="handler")
async def test_tool_with_task(ctx: Context) -> str:
    """Ask first, and become a task then."""
    name = await ask_name(ctx)
    await ctx.become_task()
    return f"Hello, {name}!"


# -- changes that clients subscribe to -------------------------------------------------------


@app.tool
async def test_trigger_tool_change() -> str:
    """Change the list of tools: clients are notified."""
    app.add_tool(greet, "test_short_lived_tool")
    app.remove_tool("test_short_lived_tool")
    return "The list of tools has changed"


@app.tool
async def test_trigger_prompt_change() -> str:
    """Change the list of prompts: clients are notified."""
    app.add_prompt(test_simple_prompt, "test_short_lived_prompt")
    app.remove_prompt("test_short_lived_prompt")
    return "The list of prompts has changed"


# -- streams ---------------------------------------------------------------------------------


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """End the HTTP stream before the result: the client reconnects, and receives it there."""
    ctx.close_stream()
    await asyncio.sleep(0.1)
    return "Reconnection test completed successfully"


# -- prompts ---------------------------------------------------------------------------------


@app.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments.

    Args:
        arg1: the first of them.
        arg2: the second of them.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage]:
    """A prompt that contains a resource.

    Args:
        resourceUri: the URI of the resource.
    """
    resource = embedded(resourceUri, "Embedded resource content for testing.")
    return [
        PromptMessage(resource, "user"),
        PromptMessage(TextContent("Please process the embedded resource above."), "user"),
    ]


@app.prompt
def test_prompt_with_image() -> list[PromptMessage]:
    """A prompt that contains an image."""
    return [
        PromptMessage(ImageContent(b64encode(PNG).decode(), "image/png"), "user"),
        PromptMessage(TextContent("Please analyze the image above."), "user"),
    ]


@app.completion(prompt="test_prompt_with_arguments", argument="arg1")
def first_arguments(typed: str) -> list[str]:
    """Complete the first argument."""
    return [each for each in ("testValue1", "testValue2", "other") if each.startswith(typed)]


# -- resources -------------------------------------------------------------------------------


@app.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@app.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:
    """A resource for each id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@app.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A resource that clients may subscribe to."""
    return "Watched resource content."


# -- skills ----------------------------------------------------------------------------------

app.add_extension(Skills(Path(__file__).parent / "skills", directory_read=True))


if __name__ == "__main__":
    port = sys.argv[1] if len(sys.argv) > 1 else "8000"
    app.run(f"http://127.0.0.1:{port}/mcp")
