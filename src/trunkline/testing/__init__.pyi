# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .authorization_server.authorization import Approval as Approval
from .authorization_server.authorization import ConsentRequest as ConsentRequest
from .authorization_server.clients import OAuthClient as OAuthClient
from .authorization_server.messages import RecordedRequest as RecordedRequest
from .authorization_server.server import AuthorizationServer as AuthorizationServer
from .both_eras import BothEras as BothEras
from .both_eras import EraRun as EraRun
from .both_eras import ErasDiffer as ErasDiffer
from .both_eras import run_in_both_eras as run_in_both_eras
from .both_eras import run_in_both_eras_sync as run_in_both_eras_sync
from .scripted_answers import AskedQuestion as AskedQuestion
from .scripted_answers import UnansweredQuestion as UnansweredQuestion


__all__ = [
    "Approval",
    "AskedQuestion",
    "AuthorizationServer",
    "BothEras",
    "ConsentRequest",
    "EraRun",
    "ErasDiffer",
    "OAuthClient",
    "RecordedRequest",
    "UnansweredQuestion",
    "run_in_both_eras",
    "run_in_both_eras_sync",
]
