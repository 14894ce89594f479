"""The public names, pinned: a new one is a promise, a missing one breaks somebody."""

from __future__ import annotations

import importlib
import inspect

import pytest

EXPORTS = {
    "trunkline": """
        Answer Cache Call Cancelled Change ChangeStream Client ClientExtension ConnectionLost
        Context ErrorKind Extension Header InputFailed LocalProtocolError MissingCapability
        PeerError ProtocolError Refusal RemoteProtocolError RequestEnded Result Server ServerLimits
        SocketLimits Stdio SyncClient TaskCall TaskSettings Tcp TimedOut Titles Tls TooManyRounds
        ToolError ToolFailed ToolResult Transport TransportError TrunklineError Unix __version__
        jsonrpc judge mcp memory_pair spec
    """,
    "trunkline.client": """
        Call Change ChangeFilter ChangeStream Client ClientExtension SyncCall SyncChangeStream
        SyncClient SyncTaskCall TaskCall ToolResult
    """,
    "trunkline.server": """
        Accepted Answer Ask BadAnswer Cache ChangedQuestion Context Declined Extension Header
        InvalidState Listening MissingCapability Result RoundLimit Server ServerLimits SocketLimits
        StateTooLarge TaskSettings Titles
    """,
    "trunkline.skills": """
        FrontmatterError SkillEntry SkillResource Skills VerificationFailed verify
    """,
    "trunkline.store": """
        Cursor End InvalidKey Key Lease LogEntry LogPage MemoryStore Message Page Retention Store
        StoreClosed StoreError StoreFull StoreLimits StoreUnavailable Stored Subscription
        SubscriptionEnded
    """,
    "trunkline.testing": """
        AskedQuestion BothEras EraRun ErasDiffer UnansweredQuestion run_in_both_eras
        run_in_both_eras_sync
    """,
    "trunkline.transports": """
        Address Frame MemoryTransport Relay Stdio StdioServer Tapped TappedTransport Tcp Tls
        Transport Unix memory_pair parse_address
    """,
    "trunkline.errors": """
        Cancelled ConnectionLost IdsExhausted InputFailed InvalidMessage LocalProtocolError
        PeerError ProtocolError Refusal RemoteProtocolError RequestEnded TimedOut TooManyRounds
        ToolError ToolFailed TransportError TrunklineError
    """,
    "trunkline.jsonrpc": """
        Asked BadHeader Batch Call Codec ContentLengthFraming DetectingFraming ErrorObject Event
        EventReader ExtendedCall ExtendedNotification ExtendedRequest Failure Framing IdSource
        IdsExhausted Inbox InvalidMessage Ledger LengthPrefixFraming Limits LocalProtocolError
        Message NewlineFraming Notification Oversize Peer Pending Policy Problem
        RemoteProtocolError Replies Reply Request RequestId Stray StrayReply Success Truncated
        decode encode encode_comment encode_event framing_named named_error
    """,
    "trunkline.judge": """
        Change Comparison Conversation Finding Outcome TraceEntry TraceFault TraceWriter compare
        judge judge_type read_listing read_trace
    """,
    "trunkline.spec.requirements": """
        ACTORS Actor JUDGES Judge LEVELS Level Requirement UnknownRequirement requirement
        requirements
    """,
    "trunkline.spec.profiles": """
        PROFILE_NAMES Profile UnknownProfile UnknownRevision UnknownSymbol candidates profile
    """,
    "trunkline.spec.revisions": """
        FORMER_NAMES LATEST REVISIONS V2024_11_05 V2025_03_26 V2025_06_18 V2025_11_25 V2026_07_28
        Window
    """,
}


@pytest.mark.parametrize("module", EXPORTS)
def test_the_public_names_are_the_pinned_ones(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(EXPORTS[module].split())


@pytest.mark.parametrize("module", EXPORTS)
def test_every_public_name_exists_and_says_what_it_is(module: str) -> None:
    package = importlib.import_module(module)
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{module}.{name} has no docstring"
