"""Methods that mcpp serves and MCP does not have: `methods(app)` registers them.

`prompts/complete` and `resources/complete` are `completion/complete` with the reference in their
name: access rules, completions and limits are those of that method.  [R-CP-05, K-23]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, encode

from ..jsonrpc.messages import Shown
from ..spec.error_kinds import ErrorKind

if TYPE_CHECKING:
    from ..server import Server
    from ..server.dispatch.request import ServerRequest

__all__ = ["methods"]

_COMPLETE: Final = "completion/complete"


class _PromptParams(Shown, Struct):
    name: str
    argument: Raw
    context: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class _ResourceParams(Shown, Struct):
    uri: str
    argument: Raw
    context: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class _CompleteParams(Shown, Struct):
    ref: dict[str, str]
    argument: Raw
    context: Raw | UnsetType
    meta: Raw | UnsetType = field(name="_meta")


def methods(app: Server) -> None:
    """Register the methods of mcpp that MCP does not have.

    They are `prompts/complete` with `name` and `argument`, and `resources/complete` with `uri` and
    `argument`; their results are those of `completion/complete`.

    Raises:
        ValueError: the server has one of them already.
    """
    # Imported here: the types of mcpp need no server.
    from ..server.dispatch.params import UNREADABLE, params_of
    from ..server.errors import plain
    from ..server.methods.methods import OwnMethod

    class Completion(OwnMethod):
        def __init__(
            self, kind: type[_PromptParams | _ResourceParams], type: str, key: str
        ) -> None:
            super().__init__(None)
            self._read = Decoder(kind).decode
            self._type, self._key = type, key

        def __call__(self, request: ServerRequest) -> Any:
            complete = request.rev.methods.get(_COMPLETE)
            if complete is None:
                return request.refuse(ErrorKind.METHOD_NOT_FOUND)
            try:
                params = self._read(params_of(request.message))
            except UNREADABLE as error:
                return request.refuse(ErrorKind.INVALID_PARAMS, plain(error))
            ref = {"type": self._type, self._key: getattr(params, self._key)}
            official = _CompleteParams(ref, params.argument, params.context, params.meta)
            request.message.set_params(Raw(encode(official)))
            return complete(request)

    core = app._core
    handlers = {
        "prompts/complete": Completion(_PromptParams, "ref/prompt", "name"),
        "resources/complete": Completion(_ResourceParams, "ref/resource", "uri"),
    }
    for name in handlers:
        if name in core.own_methods:
            raise ValueError(f"{name!r} is registered already")
    core.own_methods.update(handlers)
