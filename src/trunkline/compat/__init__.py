"""Compatibility modules: the APIs of erlmcp, Pierre and mcpp over the same core.

A module holds names, constants and types; the rules of messages stay in
`trunkline.jsonrpc`, under the policy of the same name.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__, {"": "erlmcp mcpp pierre"})
