"""The spellings of other systems over the same core.

`erlmcp`, `pierre` and `mcpp` give the users of those systems the names they know.
A front holds names, constants and shapes; every rule of a message stays in
`trunkline.jsonrpc`, under the policy that bears the system's name.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__, {"": "erlmcp mcpp pierre"})
