"""The table of hosts: where each keeps its MCP servers, and how it writes an entry.

A row states what the public documentation of the host says; `source` is its address. Rows are
data: code reads them and never tests for a host by name.

A path is a template: `~` is the home folder, `${NAME:-default}` an environment variable that has
to hold an absolute path, or else the default is used. Paths of the project scope are relative to
the folder of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from .errors import UnknownHost

__all__ = [
    "ANY_FILE",
    "ANY_HOST",
    "HOSTS",
    "KNOWN_MEMBERS",
    "OTHER_MEMBERS",
    "PLATFORMS",
    "PROJECT_KEY",
    "EntryFields",
    "Format",
    "Host",
    "Location",
    "Scope",
    "Transport",
    "find_host",
    "members_of",
    "near_host",
]

Format: TypeAlias = Literal["json", "jsonc", "toml", "yaml"]
Scope: TypeAlias = Literal["local", "project", "user"]
Transport: TypeAlias = Literal["stdio", "http", "sse"]

PLATFORMS: Final = ("linux", "darwin", "win32")
# Stands for the absolute path of the project in the keys of a location.
PROJECT_KEY: Final = "${project}"

_CONFIG: Final = "${XDG_CONFIG_HOME:-~/.config}"
_SUPPORT: Final = "~/Library/Application Support"
_APPDATA: Final = "${APPDATA:-~/AppData/Roaming}"


class Location(NamedTuple):
    """One file that a host reads, and the place of the servers in it."""

    scope: Scope
    # Template of the path by platform. A platform that is missing has no such file.
    paths: Mapping[str, str]
    # Names of the nested objects down to the one that has the servers by name.
    keys: tuple[str, ...]
    # Another name that the host accepts for a file: it is written only if it is there.
    is_alternative: bool = False


class EntryFields(NamedTuple):
    """The members of an entry, by what they mean. An empty name: the host has no such member."""

    # The member that names the transport, and its value for each: "" is left out. A value that
    # the host accepts besides is in `type_aliases`.
    type: str = "type"
    stdio_type: str = ""
    http_type: str = ""
    sse_type: str = "sse"
    type_aliases: Mapping[str, Transport] = MappingProxyType(
        {
            "http": "http",
            "local": "stdio",
            "remote": "http",
            "sse": "sse",
            "stdio": "stdio",
            "streamable-http": "http",
            "streamableHttp": "http",
            "streamable_http": "http",
        }
    )
    # Types of entries that are not servers of the user but parts of the host.
    own_types: tuple[str, ...] = ()
    # The member that repeats the name of the entry.
    name: str = ""
    # Members that hold the URL of a server, and the transport of each without a type. The first
    # of a transport is the one to write.
    urls: Mapping[str, Transport] = MappingProxyType({"url": "http"})
    # With a dot: a member of a member.
    headers: str = "headers"
    command: str = "command"
    # "": the command and its arguments are one array.
    args: str = "args"
    env: str = "env"
    cwd: str = ""
    env_file: str = ""
    # Headers whose values are names of environment variables, and a variable with a bearer token.
    env_headers: str = ""
    bearer_env: str = ""
    # The login that the server needs, as `entries` describes it.
    auth: str = ""
    # The member that switches an entry off, and the value with which it does.
    disabled: tuple[str, bool] | None = None
    # Members that the host needs in every entry; the switch above has this value at first.
    fixed: Mapping[str, object] = MappingProxyType({})


class Host(NamedTuple):
    """One row: a program that starts MCP servers, or connects to them."""

    id: str
    title: str
    # Addresses of the documentation that the row was written from.
    source: tuple[str, ...]
    # From the strongest to the weakest: an entry hides those of the same name in later ones.
    locations: tuple[Location, ...]
    fields: EntryFields
    format: Format = "json"
    # The servers are an array, whose items have their names in `fields.name`.
    is_list: bool = False
    # What a new file has before the servers.
    new_file: str = ""
    # Forms of variables that the host replaces in values; see `expand`.
    variables: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    # What has to be done before the host notices a change.
    reload: str = ""
    # What else a host needs before it uses an entry of a scope, as a sentence; NAME is that of
    # the entry, FOLDER that of the project.
    approval: Mapping[Scope, str] = MappingProxyType({})


def _everywhere(path: str) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(PLATFORMS, path))


def _by_platform(linux: str, darwin: str, win32: str) -> Mapping[str, str]:
    return MappingProxyType({"linux": linux, "darwin": darwin, "win32": win32})


def _in_config_folder(path: str) -> Mapping[str, str]:
    """Return the paths of a file in the folder where each platform keeps configuration."""
    return _by_platform(f"{_CONFIG}/{path}", f"{_SUPPORT}/{path}", f"{_APPDATA}/{path}")


_MCP_SERVERS: Final = ("mcpServers",)


def _project(path: str, *keys: str, is_alternative: bool = False) -> Location:
    return Location("project", _everywhere(path), keys or _MCP_SERVERS, is_alternative)


def _user(path: str, *keys: str, is_alternative: bool = False) -> Location:
    return Location("user", _everywhere(path), keys or _MCP_SERVERS, is_alternative)


def _in_both(text: str) -> Mapping[Scope, str]:
    return MappingProxyType({"user": text, "project": text})


# Entries without a type: all remote servers have the same transport.
_UNTYPED: Final = EntryFields(type="", sse_type="")
_EDITOR_VARIABLES: Final = (
    *("${env:NAME}", "${userHome}", "${workspaceFolder}", "${workspaceFolderBasename}"),
    *("${pathSeparator}", "${/}"),
)

HOSTS: Final[tuple[Host, ...]] = (
    Host(
        id="claude-desktop",
        aliases=("claude",),
        title="Claude Desktop",
        source=(
            "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
            "https://github.com/modelcontextprotocol/python-sdk/blob/main/src/mcp/cli/claude.py",
        ),
        locations=(
            Location("user", _in_config_folder("Claude/claude_desktop_config.json"), _MCP_SERVERS),
        ),
        # Remote servers are connectors of the account, and not in this file.
        fields=_UNTYPED._replace(urls=MappingProxyType({})),
        reload="quit Claude Desktop and start it again",
    ),
    Host(
        id="claude-code",
        title="Claude Code",
        source=("https://code.claude.com/docs/en/mcp",),
        locations=(
            Location(
                "local",
                _everywhere("${CLAUDE_CONFIG_DIR:-~}/.claude.json"),
                ("projects", PROJECT_KEY, "mcpServers"),
            ),
            _project(".mcp.json"),
            _user("${CLAUDE_CONFIG_DIR:-~}/.claude.json"),
        ),
        fields=EntryFields(stdio_type="stdio", http_type="http"),
        variables=("${NAME}", "${NAME:-default}"),
        reload="start a new session of Claude Code",
        approval=MappingProxyType(
            {
                "project": "Claude Code does not use it until you approve it: it asks in the next "
                'session, and shows "Pending approval" in `claude mcp list` until then'
            }
        ),
    ),
    Host(
        id="cursor",
        title="Cursor",
        source=("https://cursor.com/docs/mcp",),
        locations=(
            _project(".cursor/mcp.json"),
            _user("~/.cursor/mcp.json"),
        ),
        fields=EntryFields(stdio_type="stdio", env_file="envFile"),
        variables=_EDITOR_VARIABLES,
        reload="restart Cursor",
    ),
    Host(
        id="vscode",
        aliases=("code", "vs-code"),
        title="VS Code",
        source=(
            "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
            "https://code.visualstudio.com/docs/configure/settings",
        ),
        locations=(
            _project(".vscode/mcp.json", "servers"),
            Location("user", _in_config_folder("Code/User/mcp.json"), ("servers",)),
        ),
        fields=EntryFields(stdio_type="stdio", http_type="http", env_file="envFile"),
        format="jsonc",
        variables=(*_EDITOR_VARIABLES, "${input:id}"),
        approval=_in_both("VS Code asks whether the server is trusted before it starts it"),
    ),
    Host(
        id="windsurf",
        title="Windsurf",
        source=("https://docs.windsurf.com/windsurf/cascade/mcp",),
        locations=(_user("~/.codeium/windsurf/mcp_config.json"),),
        fields=_UNTYPED._replace(
            urls=MappingProxyType({"serverUrl": "http", "url": "http"}),
            disabled=("disabled", True),
        ),
        variables=("${env:NAME}",),
        reload="refresh the list of MCP servers in Cascade",
    ),
    Host(
        id="gemini",
        aliases=("gemini-cli",),
        title="Gemini CLI",
        source=(
            "https://geminicli.com/docs/tools/mcp-server/",
            "https://geminicli.com/docs/reference/configuration/",
        ),
        locations=(
            _project(".gemini/settings.json"),
            _user("~/.gemini/settings.json"),
        ),
        fields=EntryFields(
            sse_type="",
            urls=MappingProxyType({"httpUrl": "http", "url": "sse"}),
            cwd="cwd",
        ),
        format="jsonc",
        variables=("$NAME", "${NAME}", "${NAME:-default}"),
        reload="restart Gemini CLI",
        approval=_in_both(
            "Gemini CLI starts no server, that of the user neither, in a folder that is not trusted"
        ),
    ),
    Host(
        id="codex",
        title="Codex",
        source=("https://developers.openai.com/codex/mcp",),
        locations=(
            _project(".codex/config.toml", "mcp_servers"),
            _user("${CODEX_HOME:-~/.codex}/config.toml", "mcp_servers"),
        ),
        fields=_UNTYPED._replace(
            headers="http_headers",
            cwd="cwd",
            env_headers="env_http_headers",
            bearer_env="bearer_token_env_var",
            disabled=("enabled", False),
        ),
        format="toml",
        reload="restart Codex",
        approval=MappingProxyType(
            {
                "project": "Codex ignores it, without a word, until the folder is trusted: say yes "
                'when it asks, or put `trust_level = "trusted"` below `[projects."FOLDER"]` in its '
                "config.toml"
            }
        ),
    ),
    Host(
        id="zed",
        title="Zed",
        source=(
            "https://zed.dev/docs/ai/mcp",
            "https://zed.dev/docs/configuring-zed",
        ),
        locations=(
            _project(".zed/settings.json", "context_servers"),
            Location(
                "user",
                _by_platform(
                    f"{_CONFIG}/zed/settings.json",
                    "~/.config/zed/settings.json",
                    f"{_APPDATA}/Zed/settings.json",
                ),
                ("context_servers",),
            ),
        ),
        fields=_UNTYPED._replace(disabled=("enabled", False)),
        format="jsonc",
    ),
    Host(
        id="copilot-cli",
        aliases=("copilot",),
        title="GitHub Copilot CLI",
        source=(
            "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
            "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
            "https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-command-reference",
        ),
        locations=(
            _project(".mcp.json"),
            _project(".github/mcp.json", is_alternative=True),
            _user("${COPILOT_HOME:-~/.copilot}/mcp-config.json"),
        ),
        fields=EntryFields(
            stdio_type="stdio", http_type="http", fixed=MappingProxyType({"tools": ("*",)})
        ),
        reload="restart Copilot CLI",
        approval=MappingProxyType(
            {"project": "Copilot CLI ignores it until the folder is trusted: say yes when it asks"}
        ),
    ),
    Host(
        id="cline",
        title="Cline",
        source=(
            "https://docs.cline.bot/mcp/mcp-overview",
            "https://docs.cline.bot/mcp/configuring-mcp-servers",
        ),
        locations=(
            _user("${CLINE_MCP_SETTINGS_PATH:-~/.cline/data/settings/cline_mcp_settings.json}"),
        ),
        fields=EntryFields(
            http_type="streamableHttp",
            urls=MappingProxyType({"url": "sse"}),
            disabled=("disabled", True),
        ),
    ),
    Host(
        id="roo",
        aliases=("roo-code",),
        title="Roo Code",
        source=("https://docs.roocode.com/features/mcp/using-mcp-in-roo",),
        # The global file is in the storage of the VS Code extension; its path is not documented.
        locations=(_project(".roo/mcp.json"),),
        fields=EntryFields(
            http_type="streamable-http",
            urls=MappingProxyType({"url": "sse"}),
            disabled=("disabled", True),
        ),
    ),
    Host(
        id="kiro",
        title="Kiro",
        source=("https://kiro.dev/docs/mcp/configuration",),
        locations=(
            _project(".kiro/settings/mcp.json"),
            _user("~/.kiro/settings/mcp.json"),
        ),
        fields=_UNTYPED._replace(disabled=("disabled", True)),
        variables=("${NAME}",),
    ),
    Host(
        id="lm-studio",
        aliases=("lmstudio",),
        title="LM Studio",
        source=("https://lmstudio.ai/docs/app/mcp",),
        locations=(_user("~/.lmstudio/mcp.json"),),
        fields=_UNTYPED,
    ),
    Host(
        id="warp",
        title="Warp",
        source=("https://docs.warp.dev/agents/capabilities/mcp",),
        locations=(
            _project(".warp/.mcp.json"),
            _user("~/.warp/.mcp.json"),
        ),
        fields=_UNTYPED._replace(cwd="working_directory"),
    ),
    Host(
        id="opencode",
        title="opencode",
        source=(
            "https://opencode.ai/docs/mcp-servers/",
            "https://opencode.ai/docs/config/",
        ),
        # The files of a scope are merged.
        locations=(
            _project("opencode.jsonc", "mcp", is_alternative=True),
            _project("opencode.json", "mcp"),
            _user(f"{_CONFIG}/opencode/opencode.jsonc", "mcp", is_alternative=True),
            _user(f"{_CONFIG}/opencode/opencode.json", "mcp"),
        ),
        fields=EntryFields(
            stdio_type="local",
            http_type="remote",
            sse_type="",
            args="",
            env="environment",
            cwd="cwd",
            disabled=("enabled", False),
        ),
        format="jsonc",
        variables=("{env:NAME}", "{file:PATH}"),
        reload="restart opencode",
    ),
    Host(
        id="qwen",
        aliases=("qwen-code",),
        title="Qwen Code",
        source=("https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",),
        locations=(
            _project(".qwen/settings.json"),
            _user("${QWEN_HOME:-~/.qwen}/settings.json"),
        ),
        fields=EntryFields(
            sse_type="",
            urls=MappingProxyType({"httpUrl": "http", "url": "sse"}),
            cwd="cwd",
        ),
        format="jsonc",
        variables=("$NAME", "${NAME}"),
        reload="restart Qwen Code",
        approval=_in_both(
            "with folder trust switched on, Qwen Code starts no server, that of the user neither, "
            "in a folder that is not trusted"
        ),
    ),
    Host(
        id="droid",
        aliases=("factory",),
        title="Droid",
        source=("https://docs.factory.ai/cli/configuration/mcp",),
        locations=(
            _project(".factory/mcp.json"),
            _user("${FACTORY_HOME_OVERRIDE:-~}/.factory/mcp.json"),
        ),
        fields=EntryFields(stdio_type="stdio", http_type="http", disabled=("disabled", True)),
        format="jsonc",
        variables=("${NAME}", "${NAME:-default}"),
        approval=_in_both(
            "Droid starts no server in a folder that is not trusted: say yes when it asks"
        ),
    ),
    Host(
        id="amp",
        title="Amp",
        source=("https://ampcode.com/manual",),
        locations=(
            _project(".amp/settings.json", "amp.mcpServers"),
            _project(".amp/settings.jsonc", "amp.mcpServers", is_alternative=True),
            _user(f"${{AMP_SETTINGS_FILE:-{_CONFIG}/amp/settings.json}}", "amp.mcpServers"),
            _user(f"{_CONFIG}/amp/settings.jsonc", "amp.mcpServers", is_alternative=True),
        ),
        fields=_UNTYPED,
        format="jsonc",
        variables=("${NAME}",),
        reload="restart Amp",
        approval=MappingProxyType(
            {"project": "Amp does not start it until you approve it: `amp mcp approve NAME`"}
        ),
    ),
    Host(
        id="crush",
        title="Crush",
        source=("https://github.com/charmbracelet/crush",),
        # Scripts, .crushrc and crushrc, are stronger than the files of the same folder.
        locations=(
            _project(".crush.json", "mcp", is_alternative=True),
            _project("crush.json", "mcp"),
            _user(f"${{CRUSH_GLOBAL_CONFIG:-{_CONFIG}/crush}}/crush.json", "mcp"),
        ),
        fields=EntryFields(stdio_type="stdio", http_type="http", disabled=("disabled", True)),
        variables=("$NAME", "${NAME}", "${NAME:-default}", "$(COMMAND)"),
        reload="restart Crush",
    ),
    Host(
        id="goose",
        title="goose",
        source=("https://block.github.io/goose/docs/guides/config-files",),
        locations=(
            Location(
                "user",
                _by_platform(
                    f"{_CONFIG}/goose/config.yaml",
                    f"{_CONFIG}/goose/config.yaml",
                    f"{_APPDATA}/Block/goose/config/config.yaml",
                ),
                ("extensions",),
            ),
        ),
        fields=EntryFields(
            stdio_type="stdio",
            http_type="streamable_http",
            own_types=("builtin", "platform", "frontend", "inline_python"),
            name="name",
            urls=MappingProxyType({"uri": "http"}),
            command="cmd",
            env="envs",
            disabled=("enabled", False),
            fixed=MappingProxyType({"enabled": True}),
        ),
        # Variables in URLs and headers are those of its keyring.
        format="yaml",
        reload="start a new session of goose",
    ),
    Host(
        id="continue",
        title="Continue",
        source=("https://docs.continue.dev/customize/deep-dives/mcp",),
        # Files of a project are one for each server, in .continue/mcpServers, and are read by
        # the extensions alone, not by the command line.
        locations=(_user("${CONTINUE_GLOBAL_DIR:-~/.continue}/config.yaml"),),
        fields=EntryFields(
            http_type="streamable-http",
            name="name",
            headers="requestOptions.headers",
            cwd="cwd",
        ),
        format="yaml",
        is_list=True,
        new_file="name: Main Config\nversion: 1.0.0\nschema: v1\n",
        variables=("${{ secrets.NAME }}",),
        reload="restart Continue",
    ),
)

# A file that names no host, such as the one of `--config`: all forms are understood.
ANY_FILE: Final = Host(
    id="",
    title="configuration file",
    source=(),
    locations=tuple(
        Location("user", MappingProxyType({}), (key,))
        for key in ("mcpServers", "servers", "context_servers", "mcp_servers")
    ),
    fields=EntryFields(
        stdio_type="stdio",
        http_type="http",
        urls=MappingProxyType({"url": "http", "httpUrl": "http", "serverUrl": "http"}),
        cwd="cwd",
        env_file="envFile",
        env_headers="env_http_headers",
        bearer_env="bearer_token_env_var",
        auth="auth",
        disabled=("disabled", True),
    ),
    format="jsonc",
    variables=("${NAME}", "${NAME:-default}", *_EDITOR_VARIABLES, "${input:id}"),
)

# Members of entries that hosts and other libraries have beside those of the rows: approval, time
# limits, texts for people. They are not read here, and are no mistake.
OTHER_MEMBERS: Final = frozenset(
    (
        *("alwaysAllow", "alwaysLoad", "apiKey", "authProviderType", "authentication"),
        *("autoApprove", "available_tools", "bundled", "codemode", "connectTimeout"),
        *("connectionTimeout", "display_name", "enabledTools", "env_keys"),
        *("default_tools_approval_mode", "description", "dev", "disabledTools"),
        *("disabled_tools", "discoveryTimeout", "enabled", "enabled_tools", "environment"),
        *("env_vars", "excludeTools", "exclude_tags", "experimental_environment", "extension"),
        *("fromGalleryId", "gallery", "headersHelper", "icon", "id", "includeTools"),
        *("include_tags", "isActive", "isProtected", "name", "networkTimeout", "note", "oauth"),
        *("oauth_client_id", "oauth_resource", "provider", "registryUrl", "remote"),
        *("remoteConfigured", "required", "sandbox", "sandboxEnabled", "scopes", "settings"),
        *("source", "sse_read_timeout", "start_on_launch", "startup_timeout_ms"),
        *("startup_timeout_sec", "supports_parallel_tool_calls", "tags", "targetAudience"),
        *("targetServiceAccount", "tcp", "timeout", "tool_timeout_sec", "tools", "transport"),
        *("transportType", "trust", "version", "watchPaths"),
    )
)


def members_of(fields: EntryFields) -> tuple[str, ...]:
    """Return the names of the members that an entry with these fields can have."""
    named = [
        *(fields.type, fields.command, fields.args, fields.env, fields.cwd, fields.env_file),
        *(*fields.urls, fields.headers.partition(".")[0], fields.env_headers, fields.bearer_env),
        *(fields.auth, fields.name),
        *((fields.disabled[0],) if fields.disabled is not None else ()),
        *fields.fixed,
    ]
    return tuple(dict.fromkeys(each for each in named if each))


# Every member of an entry that some host knows.
KNOWN_MEMBERS: Final = frozenset(
    (*OTHER_MEMBERS, *(each for host in (*HOSTS, ANY_FILE) for each in members_of(host.fields)))
)

# Letters from which on a name with one wrong letter is hardly another name.
_LONG_NAME: Final = 6
# Of a host that has no row: what most of them understand.
ANY_HOST: Final = Host(
    id="json",
    title="The host",
    source=(),
    locations=(),
    fields=EntryFields(http_type="http"),
)

_BY_NAME: Final = {name: host for host in HOSTS for name in (host.id, *host.aliases)}
_WITH_ANY_HOST: Final = {**_BY_NAME, ANY_HOST.id: ANY_HOST}


def find_host(name: str, *, takes_any: bool = False) -> Host:
    """Return the host with this id or alias; with `takes_any` it may be ANY_HOST too.

    Raises:
        UnknownHost: there is none; the text has the nearest name, or all.
    """
    known = _WITH_ANY_HOST if takes_any else _BY_NAME
    host = known.get(name.lower())
    if host is not None:
        return host
    near = _near(name, known)
    advice = (
        f"did you mean {near!r}?"
        if near
        else f"known hosts: {', '.join(each.id for each in HOSTS)}"
    )
    if takes_any and not near:
        advice += f"; for a host that is not among them, --to {ANY_HOST.id} prints an entry"
    raise UnknownHost(f"unknown host {name!r}; {advice}")


def near_host(name: str) -> str:
    """Return the name that was meant if a name is a typing error of it; "" if it is none.

    An unknown name may be that of a program without a row, and a user who follows the advice
    changes a file: a name that merely resembles it, as `codex` does `coder`, is not suggested.
    """
    return _near(name, _BY_NAME)


def _near(name: str, known: Iterable[str]) -> str:
    typed = name.lower()
    found = [each for each in known if _is_typing_error(typed, each)]
    return found[0] if len(found) == 1 else ""


def _is_typing_error(typed: str, name: str) -> bool:
    """Return True for two letters swapped, one left out or doubled, or in a long name one wrong."""
    longer, shorter = sorted((typed, name), key=len, reverse=True)
    if len(longer) == len(shorter):
        wrong = [
            place for place, pair in enumerate(zip(typed, name, strict=True)) if len({*pair}) > 1
        ]
        is_swapped = len(wrong) == 2 and sorted(typed) == sorted(name) and wrong[1] - wrong[0] == 1
        return is_swapped or (len(wrong) == 1 and len(name) >= _LONG_NAME)
    if len(longer) - len(shorter) > 1:
        return False
    places = [at for at in range(len(longer)) if longer[:at] + longer[at + 1 :] == shorter]
    if not places:
        return False
    if longer == name:
        return len(name) > 4
    return len(places) > 1 or len(name) >= _LONG_NAME
