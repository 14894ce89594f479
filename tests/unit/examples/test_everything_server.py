"""`examples/everything_server.py`: each feature, in memory, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from examples.everything_server import CHOICES, PERSON, PNG, WAV, app
from trunkline import Client
from trunkline.errors import PeerError
from trunkline.mcp.types import (
    AudioContent,
    CreateMessageResult,
    ElicitRequestParams,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from trunkline.skills import verify
from trunkline.testing import run_in_both_eras_sync

from ...cases import for_each

ERAS = ("2025-11-25", "2026-07-28")

# What the official suites call, by the tables of their documentation.
TOOLS = {
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "json_schema_2020_12_tool",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_x_mcp_header",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
}
PROMPTS = {
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
}
RESOURCES = {"test://static-text", "test://static-binary", "test://watched-resource"}

# Tool, arguments, answers by key, text of the result.
ASKING: list[tuple[str, dict[str, Any], Any, str]] = [
    ("test_sampling", {"prompt": "Hi?"}, ["Hi."], "LLM response: Hi."),
    (
        "test_elicitation",
        {"message": "Who?"},
        [{"username": "testuser", "email": "test@example.com"}],
        "User response: testuser, test@example.com",
    ),
    ("test_elicitation", {"message": "Who?"}, ["decline"], "User response: decline"),
    ("test_streaming_elicitation", {}, [True], "Elicitation completed: action=accept"),
    ("test_missing_capability", {}, ["None."], "None."),
    (
        "test_input_required_result_elicitation",
        {},
        {"user_name": {"name": "Alice"}},
        "Hello, Alice!",
    ),
    ("test_input_required_result_elicitation", {}, ["decline"], "Hello, stranger!"),
    (
        "test_input_required_result_sampling",
        {},
        {"capital_question": "Paris"},
        "The model said: Paris",
    ),
    (
        "test_input_required_result_list_roots",
        {},
        {"client_roots": ["file:///a", "file:///b"]},
        "Roots: file:///a, file:///b",
    ),
    (
        "test_input_required_result_request_state",
        {},
        {"confirm": {"ok": True}},
        "state-ok: accept",
    ),
    (
        "test_input_required_result_multiple_inputs",
        {},
        {"user_name": {"name": "Alice"}, "greeting": "Hi.", "client_roots": ["file:///a"]},
        "Alice, Hi., 1 roots",
    ),
    (
        "test_input_required_result_multi_round",
        {},
        {"step1": {"name": "Alice"}, "step2": {"color": "blue"}},
        "Alice likes blue",
    ),
    (
        "test_input_required_result_tampered_state",
        {},
        {"confirm": {"ok": True}},
        "The state is intact: accept",
    ),
    (
        "test_input_required_result_capabilities",
        {},
        {"user_name": {"name": "Alice"}},
        "Hello, Alice!",
    ),
]


def in_each_era(script: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    async def both() -> None:
        for revision in ERAS:
            async with asyncio.timeout(20), Client(app, revision=revision, **options) as client:
                await script(client)

    asyncio.run(both())


# -- lists -----------------------------------------------------------------------------------


def test_everything_that_the_suites_name_is_listed_and_described() -> None:
    async def script(client: Client) -> None:
        tools = await client.list_tools()
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.description and tool.input_schema for tool in tools)
        # The suites call the first one without arguments.
        assert tools[0].name == "test_simple_text"
        prompts = await client.list_prompts()
        assert {prompt.name for prompt in prompts} == PROMPTS
        assert all(prompt.description for prompt in prompts)
        uris = {resource.uri for resource in await client.list_resources()}
        assert uris >= RESOURCES
        (template,) = [
            each for each in await client.list_resource_templates() if "template" in each.name
        ]
        assert template.uri_template == "test://template/{id}/data"

    in_each_era(script)


def test_schemas_are_sent_as_they_are_written() -> None:
    async def script(client: Client) -> None:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["json_schema_2020_12_tool"].input_schema == PERSON
        region = tools["test_x_mcp_header"].input_schema["properties"]["region"]
        assert region == {"type": "string", "x-mcp-header": "Region"}

    in_each_era(script)


# -- results and notifications ---------------------------------------------------------------


def test_content_has_the_kinds_and_types_of_media_that_the_suites_expect() -> None:
    async def script(client: Client) -> None:
        (image,) = (await client.call_tool("test_image_content")).content
        assert isinstance(image, ImageContent)
        assert image.mime_type == "image/png"
        (audio,) = (await client.call_tool("test_audio_content")).content
        assert isinstance(audio, AudioContent)
        assert audio.mime_type == "audio/wav"
        (embedded,) = (await client.call_tool("test_embedded_resource")).content
        assert isinstance(embedded, EmbeddedResource)
        assert embedded.resource.text == "This is an embedded resource content."
        mixed = (await client.call_tool("test_multiple_content_types")).content
        assert [type(each) for each in mixed] == [TextContent, ImageContent, EmbeddedResource]

    assert (PNG[:4], WAV[:4]) == (b"\x89PNG", b"RIFF")
    in_each_era(script)


def test_a_failing_tool_is_a_result_and_not_an_error() -> None:
    async def script(client: Client) -> None:
        result = await client.call_tool("test_error_handling")
        assert result.is_error
        assert result.text == "This tool intentionally returns an error for testing"

    in_each_era(script)


def test_progress_and_logs_come_three_times_each() -> None:
    async def script(client: Client) -> None:
        progress: list[float] = []
        await client.call_tool(
            "test_tool_with_progress",
            on_progress=lambda at, total, message: progress.append(at),
        )
        assert progress == [0, 50, 100]
        logged.clear()
        if client.revision == "2025-11-25":
            await client.set_logging_level("debug")
            await client.call_tool("test_tool_with_logging")
            assert logged == [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ]

    logged: list[Any] = []
    in_each_era(script, on_log=lambda message: logged.append(message.data))


def test_a_client_without_a_log_level_receives_no_log() -> None:
    async def received(*, logs: bool) -> list[str]:
        found: list[str] = []
        options: dict[str, Any] = {"on_notification": lambda method, params: found.append(method)}
        if logs:
            options["on_log"] = lambda message: found.append(message.level)
        async with Client(app, revision="2026-07-28", **options) as client:
            assert (await client.call_tool("test_logging_tool")).text == "Logged"
        return found

    assert asyncio.run(received(logs=False)) == []
    assert asyncio.run(received(logs=True)) == ["info"]


@for_each(
    ("name", "arguments", "text"),
    [
        ("test_simple_text", {}, "This is a simple text response for testing."),
        ("test_x_mcp_header", {"region": "eu"}, "Region: eu"),
        (
            "json_schema_2020_12_tool",
            {"contactMethod": "phone", "phone": "1"},
            "Received contactMethod, phone",
        ),
        ("greet", {"name": "Ada"}, "Hello, Ada!"),
        ("slow_compute", {"seconds": 0, "label": "a"}, "Computed a in 0.0 s"),
        ("test_reconnection", {}, "Reconnection test completed successfully"),
    ],
)
def test_tools_that_ask_nothing(name: str, arguments: dict[str, Any], text: str) -> None:
    async def script(client: Client) -> None:
        result = await client.call_tool(name, arguments)
        assert (result.text, result.is_error) == (text, False)

    in_each_era(script)


# -- questions -------------------------------------------------------------------------------


@for_each(("name", "arguments", "answers", "text"), ASKING)
def test_tools_that_ask_do_the_same_in_both_eras(
    name: str, arguments: dict[str, Any], answers: Any, text: str
) -> None:
    assert run_in_both_eras_sync(app, name, arguments, answers).result.text == text


def test_a_prompt_may_ask() -> None:
    answers = {"user_context": {"context": "tests"}}
    name = "test_input_required_result_prompt"
    both = run_in_both_eras_sync(app, name, None, answers, what="prompt")
    assert both.result.messages[0].content.text == "Use this context: tests"


def test_forms_have_the_defaults_and_choices_that_the_suites_expect() -> None:
    asked: list[Any] = []

    def on_elicit(question: ElicitRequestParams) -> str:
        asked.append(question.requested_schema)
        return "decline"

    async def script(client: Client) -> None:
        asked.clear()
        await client.call_tool("test_elicitation_sep1034_defaults")
        await client.call_tool("test_elicitation_sep1330_enums")
        defaults, choices = (schema["properties"] for schema in asked)
        assert {name: (field["type"], field["default"]) for name, field in defaults.items()} == {
            "name": ("string", "John Doe"),
            "age": ("integer", 30),
            "score": ("number", 95.5),
            "status": ("string", "active"),
            "verified": ("boolean", True),
        }
        assert defaults["status"]["enum"] == ["active", "inactive", "pending"]
        for name, field in CHOICES["properties"].items():
            assert field.items() <= choices[name].items(), name

    in_each_era(script, on_elicit=on_elicit)


def test_only_what_a_client_declares_is_asked() -> None:
    def model(question: object) -> CreateMessageResult:
        return CreateMessageResult(TextContent("Hi."), "a-model", "assistant")

    async def able(client: Client) -> None:
        name = "test_input_required_result_capabilities"
        assert (await client.call_tool(name)).text == "Hi."

    async def unable(client: Client) -> None:
        if client.era == "per_request":
            with pytest.raises(PeerError, match="sampling"):
                await client.call_tool("test_missing_capability")
        else:
            result = await client.call_tool("test_missing_capability")
            assert result.is_error
            assert "sampling" in result.text

    in_each_era(able, on_sample=model)
    in_each_era(unable)


# -- tasks -----------------------------------------------------------------------------------


@for_each(
    ("name", "arguments", "text"),
    [
        ("slow_compute", {"seconds": 0.1, "label": "a"}, "Computed a in 0.1 s"),
        ("confirm_delete", {"filename": "a.txt"}, "Deleted a.txt"),
        ("multi_input", {}, "Alice: accept"),
        ("test_tool_with_task", {}, "Hello, Alice!"),
    ],
)
def test_tasks_ask_and_complete(name: str, arguments: dict[str, Any], text: str) -> None:
    async def script(client: Client) -> None:
        task = await client.call_tool_as_task(name, arguments)
        assert (await task.result()).text == text
        assert task.id is not None

    def on_elicit(question: ElicitRequestParams) -> dict[str, Any]:
        assert question.requested_schema is not None
        asks_name = "name" in question.requested_schema["properties"]
        return {"name": "Alice"} if asks_name else {"confirm": True}

    in_each_era(script, on_elicit=on_elicit)


def test_a_task_fails_by_a_result_or_by_an_error() -> None:
    async def script(client: Client) -> None:
        task = await client.call_tool_as_task("failing_job")
        assert (await task.result()).is_error
        task = await client.call_tool_as_task("protocol_error_job")
        with pytest.raises(PeerError, match="could not run"):
            await task.result()

    in_each_era(script)


# -- changes, prompts, resources, skills -----------------------------------------------------


def test_triggers_are_reported_to_the_streams_that_asked_for_them() -> None:
    async def script(client: Client) -> None:
        async with client.listen(tools=True) as tools, client.listen(prompts=True) as prompts:
            await client.call_tool("test_trigger_tool_change")
            assert (await anext(tools)).kind == "tools"
            await client.call_tool("test_trigger_prompt_change")
            assert (await anext(prompts)).kind == "prompts"
        assert {tool.name for tool in await client.list_tools()} == TOOLS

    in_each_era(script)


def test_prompts_contain_their_arguments_resources_and_images() -> None:
    async def script(client: Client) -> None:
        plain = await client.get_prompt("test_simple_prompt")
        assert plain.messages[0].content.text == "This is a simple prompt for testing."
        both = {"arg1": "testValue1", "arg2": "testValue2"}
        filled = (await client.get_prompt("test_prompt_with_arguments", both)).messages[0].content
        assert filled.text == "Prompt with arguments: arg1='testValue1', arg2='testValue2'"
        uri = {"resourceUri": "test://x"}
        first, second = (
            await client.get_prompt("test_prompt_with_embedded_resource", uri)
        ).messages
        assert (first.content.resource.uri, second.content.type) == ("test://x", "text")
        image, text = (await client.get_prompt("test_prompt_with_image")).messages
        assert (image.content.type, text.content.type) == ("image", "text")

    in_each_era(script)


def test_resources_are_read_by_uri_and_by_template() -> None:
    async def script(client: Client) -> None:
        (text,) = (await client.read_resource("test://static-text")).contents
        assert (text.mime_type, text.text) == (
            "text/plain",
            "This is the content of the static text resource.",
        )
        (image,) = (await client.read_resource("test://static-binary")).contents
        assert image.mime_type == "image/png"
        assert image.blob
        (data,) = (await client.read_resource("test://template/123/data")).contents
        assert '"123"' in data.text
        with pytest.raises(PeerError):
            await client.read_resource("test://nonexistent")

    in_each_era(script)


def test_skills_are_listed_and_verified() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), Client(app, revision="2026-07-28") as client:
            skills = (await client.request("skills/list"))["skills"]
            names = {skill["frontmatter"]["name"] for skill in skills}
            assert names == {"meeting-minutes", "release-notes"}
            for entry in skills:
                assert verify(entry, await client.read_resource(entry["uri"])).startswith(b"---")

    asyncio.run(main())
