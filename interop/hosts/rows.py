"""The rows: hosts that npm has, how each is given a model, and how it is asked without a terminal.

In words and files, `{model}` is the URL of the stand-in for the model, `{prompt}` what the host is
asked, and `{project}` the folder in which it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["HOSTS", "PINS", "Host", "pinned_version"]

PINS: Final = Path(__file__).resolve().parent / "npm_hosts"
# Hosts want a key for their model; nobody checks it.
KEY: Final = "sk-of-nobody"
# Where nothing listens, for the services of a vendor that a run does not need.
NOWHERE: Final = "http://127.0.0.1:9"
# Stands for the program that runs a script.
NODE: Final = "{node}"
READ: Final = "read"
READ_IF_TRUSTED: Final = "read in a trusted folder"
NEEDS_LOGIN: Final = "needs a login for its model"


@dataclass(frozen=True, eq=False, kw_only=True)
class Host:
    """One row."""

    title: str
    # What `trunkline install --to` calls it.
    id: str
    # The package as `npm_hosts/package.json` names it.
    package: str
    # The program: a file of `node_modules`, after NODE if it is a script.
    program: tuple[str, ...]
    # Words after the program.
    arguments: tuple[str, ...]
    # Words of runs before that one: how some hosts are told of their model.
    before: tuple[tuple[str, ...], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    # Files in the home folder, written before `trunkline install`.
    files: Mapping[str, str] = field(default_factory=dict)
    # When the host reads the file in the folder of a project, as the table says it; empty if it has
    # no such file. Words of a run before, by which the entry there is approved.
    project: str = ""
    approve: tuple[str, ...] = ()
    # Why no model runs, so that connecting and listing is all there is.
    without_model: str = ""

    @property
    def version(self) -> str:
        """The version that is pinned."""
        return pinned_version(self.package)

    @property
    def name(self) -> str:
        """Title and version."""
        return f"{self.title} {self.version}"


def pinned_version(package: str) -> str:
    """Return the version of a package; that of `npm:NAME@VERSION` is after the last @."""
    document = json.loads((PINS / "package.json").read_bytes())
    pinned: str = document["optionalDependencies"][package]
    return pinned.rpartition("@")[2]


CLAUDE_ENVIRONMENT: Final = MappingProxyType(
    {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": "{model}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Otherwise the tools of servers are found by a search, which the script does not make.
        "ENABLE_TOOL_SEARCH": "false",
        # The first request waits for the tools of a server.
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_CONNECT_TIMEOUT_MS": "60000",
    }
)
CLAUDE_ARGUMENTS: Final = ("-p", "{prompt}", "--allowedTools", "mcp__warehouse")

HOSTS: Final = (
    Host(
        title="Claude Code",
        id="claude-code",
        package="@anthropic-ai/claude-code",
        program=(NODE, "@anthropic-ai/claude-code/cli-wrapper.cjs"),
        arguments=CLAUDE_ARGUMENTS,
        environment=CLAUDE_ENVIRONMENT,
        project=READ,
    ),
    Host(
        title="Claude Code",
        id="claude-code",
        package="claude-code-node20",
        program=(NODE, "claude-code-node20/cli-wrapper.cjs"),
        arguments=CLAUDE_ARGUMENTS,
        environment=CLAUDE_ENVIRONMENT,
        project=READ,
    ),
    Host(
        title="Gemini CLI",
        id="gemini",
        package="@google/gemini-cli",
        program=(NODE, "@google/gemini-cli/bundle/gemini.js"),
        arguments=("-p", "{prompt}", "--model", "gemini-2.5-flash", "--yolo", "--skip-trust"),
        environment={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "{model}"},
        files={
            ".gemini/settings.json": json.dumps(
                {
                    "general": {"disableAutoUpdate": True},
                    "privacy": {"usageStatisticsEnabled": False},
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                }
            ),
            ".gemini/trustedFolders.json": '{"{project}": "TRUST_FOLDER"}',
        },
        project=READ_IF_TRUSTED,
    ),
    Host(
        title="Codex",
        id="codex",
        package="@openai/codex",
        program=(NODE, "@openai/codex/bin/codex.js"),
        arguments=(
            # The first request waits for the tools of a server.
            *("exec", "-c", "mcp_servers.warehouse.required=true"),
            *("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            "{prompt}",
        ),
        environment={"SCRIPTED_KEY": KEY},
        files={
            ".codex/config.toml": """\
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "Scripted"
base_url = "{model}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[projects."{project}"]
trust_level = "trusted"
"""
        },
        project=READ_IF_TRUSTED,
    ),
    Host(
        title="Copilot CLI",
        id="copilot-cli",
        package="@github/copilot",
        program=(NODE, "@github/copilot/npm-loader.js"),
        arguments=("-p", "{prompt}", "--allow-all-tools", "--trust-folder", "--no-auto-update"),
        project=READ_IF_TRUSTED,
        environment={
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": "scripted",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_PROVIDER_BASE_URL": "{model}/v1",
        },
    ),
    Host(
        title="Cline",
        id="cline",
        package="@cline/cli-linux-x64",
        program=("@cline/cli-linux-x64/bin/cline",),
        before=(
            ("auth", "-p", "openai-compatible", "-k", KEY, "-m", "scripted", "-b", "{model}/v1"),
        ),
        arguments=("--json", "{prompt}"),
    ),
    Host(
        title="opencode",
        id="opencode",
        package="opencode-linux-x64",
        program=("opencode-linux-x64/bin/opencode",),
        arguments=("run", "--model", "scripted/scripted", "--auto", "{prompt}"),
        environment={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        files={
            ".config/opencode/opencode.json": json.dumps(
                {
                    "autoupdate": False,
                    "share": "disabled",
                    "provider": {
                        "scripted": {
                            "npm": "@ai-sdk/openai-compatible",
                            "options": {"baseURL": "{model}/v1", "apiKey": KEY},
                            "models": {"scripted": {}},
                        }
                    },
                }
            )
        },
        project=READ,
    ),
    Host(
        title="Qwen Code",
        id="qwen",
        package="@qwen-code/qwen-code",
        program=(NODE, "@qwen-code/qwen-code/cli-entry.js"),
        arguments=("-p", "{prompt}", "--yolo", "--auth-type", "openai"),
        environment={
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": "{model}/v1",
            "OPENAI_MODEL": "scripted",
        },
        files={
            ".qwen/settings.json": json.dumps(
                {
                    "general": {"disableAutoUpdate": True},
                    "privacy": {"usageStatisticsEnabled": False},
                    # As with Claude Code.
                    "tools": {"toolSearch": {"enabled": False}},
                }
            )
        },
        project=READ,
    ),
    Host(
        title="Continue",
        id="continue",
        package="@continuedev/cli",
        program=(NODE, "@continuedev/cli/dist/cn.js"),
        arguments=("--print", "--auto", "{prompt}"),
        environment={
            "CONTINUE_API_BASE": NOWHERE,
            "CONTINUE_CLI_ENABLE_TELEMETRY": "0",
            "CONTINUE_METRICS_ENABLED": "0",
        },
        files={
            ".continue/config.yaml": f"""\
name: scripted
version: 1.0.0
schema: v1
models:
  - name: scripted
    provider: openai
    model: scripted
    apiKey: {KEY}
    apiBase: "{{model}}/v1"
    roles: [chat]
    capabilities: [tool_use]
"""
        },
    ),
    Host(
        title="Droid",
        id="droid",
        package="@factory/cli-linux-x64",
        program=("@factory/cli-linux-x64/bin/droid",),
        arguments=("mcp", "list"),
        environment={
            "FACTORY_API_BASE_URL": NOWHERE,
            "FACTORY_DISABLE_KEYRING": "true",
            "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
            "FACTORY_TELEMETRY_INGEST_BASE_URL": NOWHERE,
        },
        project=READ,
        without_model=NEEDS_LOGIN,
    ),
    Host(
        title="Amp",
        id="amp",
        package="@ampcode/cli-linux-x64",
        program=("@ampcode/cli-linux-x64/amp",),
        arguments=("mcp", "doctor"),
        # Without a key it waits for a login before it looks at its servers.
        environment={"AMP_API_KEY": KEY, "AMP_SKIP_UPDATE_CHECK": "1", "AMP_URL": NOWHERE},
        project="read once approved",
        approve=("mcp", "approve", "warehouse"),
        without_model=NEEDS_LOGIN,
    ),
)
