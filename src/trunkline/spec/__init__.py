"""The specifications as rows: consulted by the whole library, calling none of it.

    from trunkline import spec

    spec.method("tools/call", "2025-06-18").result
    spec.explain_method("ping")
    spec.error(-32602)
    spec.diff("2025-11-25", "2026-07-28")

Rows are loaded when something asks for them. `all_types` is the function that
`trunkline.spec.types` calls `types`: here that name is the module.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "lookup": (
            "Specification capabilities capability error errors explain_method header headers "
            "http_condition http_status http_statuses meta_key meta_keys method method_status "
            "methods specification transport transports"
        ),
        "lookup.meta_key_check": "MetaProblem check_meta_key",
        "lookup.revision_diff": "Detail Diff SpecChange diff",
        "lookup.schemas": "json_schema",
        "types": "type_=type types=all_types",
    },
)
