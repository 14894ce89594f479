# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .lookup import Specification as Specification
from .lookup import capabilities as capabilities
from .lookup import capability as capability
from .lookup import error as error
from .lookup import errors as errors
from .lookup import explain_method as explain_method
from .lookup import header as header
from .lookup import headers as headers
from .lookup import http_condition as http_condition
from .lookup import http_status as http_status
from .lookup import http_statuses as http_statuses
from .lookup import meta_key as meta_key
from .lookup import meta_keys as meta_keys
from .lookup import method as method
from .lookup import method_status as method_status
from .lookup import methods as methods
from .lookup import specification as specification
from .lookup import transport as transport
from .lookup import transports as transports
from .lookup.meta_key_check import MetaProblem as MetaProblem
from .lookup.meta_key_check import check_meta_key as check_meta_key
from .lookup.revision_diff import Detail as Detail
from .lookup.revision_diff import Diff as Diff
from .lookup.revision_diff import SpecChange as SpecChange
from .lookup.revision_diff import diff as diff
from .lookup.schemas import json_schema as json_schema
from .types import type_ as type
from .types import types as all_types


__all__ = [
    "Detail",
    "Diff",
    "MetaProblem",
    "SpecChange",
    "Specification",
    "all_types",
    "capabilities",
    "capability",
    "check_meta_key",
    "diff",
    "error",
    "errors",
    "explain_method",
    "header",
    "headers",
    "http_condition",
    "http_status",
    "http_statuses",
    "json_schema",
    "meta_key",
    "meta_keys",
    "method",
    "method_status",
    "methods",
    "specification",
    "transport",
    "transports",
    "type",
]
