"""The arguments of a handler that has a JSON Schema of its own: one dict, as it was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.json import Decoder

from .arguments import Arguments, is_context
from .signature import Handler

__all__ = ["raw_arguments"]

_object: Final = Decoder(dict[str, Any])


def raw_arguments(function: Callable[..., Any]) -> Arguments:
    """Return how `function` is called with the arguments as one dict.

    Raises:
        TypeError: it does not take one dict, and at most the context beside it.
    """
    handler = Handler(function)
    parameters = handler.parameters()
    hints = handler.resolved(
        {each.name: each.annotation for each in parameters if each.annotation is not each.empty}
    )
    places = [at for at, each in enumerate(parameters) if is_context(hints.get(each.name))]
    if len(parameters) - len(places) != 1 or len(places) > 1:
        raise TypeError(
            f"{handler.label} has a schema of its own: it takes one argument, the dict of what "
            "was sent, and the context if it likes"
        )
    call: Callable[[Any, Any], Any]
    if not places:
        call = lambda values, _: function(values)  # noqa: E731  # as short as the others
    elif places == [0]:
        call = lambda values, context: function(context, values)  # noqa: E731
    else:
        call = lambda values, context: function(values, context)  # noqa: E731
    made = Arguments(handler, (), call, hooked=False, wants_context=bool(places), headers={})
    made.decode = _object.decode
    return made
