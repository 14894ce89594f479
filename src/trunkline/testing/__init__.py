"""Helpers for tests of servers, stores and transports.

Nothing is imported until a name is used: pytest loads the plugin of this package in every run.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "authorization_server.authorization": "Approval ConsentRequest",
        "authorization_server.clients": "OAuthClient",
        "authorization_server.messages": "RecordedRequest",
        "authorization_server.server": "AuthorizationServer",
        "both_eras": "BothEras EraRun ErasDiffer run_in_both_eras run_in_both_eras_sync",
        "scripted_answers": "AskedQuestion UnansweredQuestion",
    },
)
