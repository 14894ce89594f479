"""The public names, pinned: a new one is a promise, a missing one breaks somebody."""

from __future__ import annotations

import importlib
import inspect

import pytest

EXPORTS = {
    "trunkline": """
        AssistantMessage Audio AuthorizationFailed CacheHint Cancelled ChoiceTitles Client
        ClientExtension ConnectionLost Context ElicitationResult ErrorKind Extension File Http
        HttpLimits
        HttpOptions HttpSettings Image InputRequestFailed LocalProtocolError
        MissingCapability ParamHeader PeerError PendingCall ProtocolError
        RemoteProtocolError RequestAborted RequestError RequestTimeout ResultTypeMismatch
        Server ServerChange ServerLimits SocketLimits Stdio Subscription SyncClient
        TaskHandle TaskSettings Tcp Tls TooManyRoundTrips ToolError ToolFailed ToolOutput
        ToolResult Transport TransportError TrunklineError Unix UserMessage Ws __version__
        auth jsonrpc judge mcp memory_pair spec
    """,
    "trunkline.auth": """
        ApiKey ApiKeys AuditEvent AuthSettings Bearer Chain ClientCredentials Credential
        Dpop FileTokens Fixed Introspection InvalidCredential JsonLinesAudit JwtBearer
        KeyringTokens MemoryTokens OAuth PeerCertificate PeerUid Principal SigningKey
        TenantLimits Tenants TokenExchange TokenStorage Verifier VerifierUnavailable
        WorkloadIdentity
    """,
    "trunkline.client": """
        Client ClientExtension PendingCall ServerChange Subscription SubscriptionTopics
        SyncClient SyncPendingCall SyncSubscription SyncTaskHandle TaskHandle ToolResult
    """,
    "trunkline.server": """
        AcceptedElicitation AsgiApp AssistantMessage Audio CacheHint CapabilitySwitches
        ChoiceTitles ClientRequest ClientShares Context DeclinedElicitation ElicitationResult
        ErrorMap Extension File HttpListener Image InvalidClientResponse InvalidRequestState
        JsonFormatter METRICS_CONTENT_TYPE MissingCapability ParamHeader RateLimit
        ReplayMismatch RequestLog RequestStateTooLarge RequestTimer ResultCache
        RoundTripLimitExceeded Server ServerLimits ServerListener ServerStats SocketLimits
        TaskSettings ToolOutput UserMessage
    """,
    "trunkline.skills": """
        FrontmatterError SkillEntry SkillResource Skills VerificationFailed verify
    """,
    "trunkline.store": """
        ChannelSubscription Cursor EndReason InvalidStoreKey Key Lease LogEntry LogPage
        MemoryStore Message RecordPage Retention Store StoreClosed StoreError StoreFull
        StoreLimits StoreUnavailable Stored SubscriptionEnded
    """,
    "trunkline.testing": """
        Approval AskedQuestion AuthorizationServer BothEras ConsentRequest EraRun ErasDiffer
        OAuthClient RecordedRequest UnansweredQuestion run_in_both_eras run_in_both_eras_sync
    """,
    "trunkline.transports": """
        Address Frame Http HttpLimits HttpOptions HttpRequest HttpSettings MemoryTransport
        Relay Stdio StdioServer Tapped TappedTransport Tcp Tls Transport Unix Ws memory_pair
        parse_address
    """,
    "trunkline.errors": """
        AuthorizationFailed Cancelled ConnectionLost IdsExhausted InputRequestFailed
        InvalidMessage
        LocalProtocolError PeerError ProtocolError RemoteProtocolError RequestAborted
        RequestError RequestTimeout ResultTypeMismatch TooManyRoundTrips ToolError
        ToolFailed TransportError TrunklineError
    """,
    "trunkline.jsonrpc": """
        BadHeader Batch Call Codec ContentLengthFraming DetectingFraming EnvelopeExtras
        ErrorObject Event EventReader ExtendedCall ExtendedNotification ExtendedRequest
        Failure Framing IdSource IdsExhausted IncomingRequest IncomingRequests
        InvalidMessage LengthPrefixFraming Limits LocalProtocolError Message NewlineFraming
        Notification OutgoingRequests Oversize Peer Pending Policy ProtocolProblem
        RemoteProtocolError Replies Reply Request RequestId Success Truncated UnmatchedReply
        UnmatchedReplyEvent decode encode encode_comment encode_event framing_named
        named_error
    """,
    "trunkline.judge": """
        Change Comparison Conversation Finding Outcome TraceEntry TraceFault TraceWriter
        compare judge judge_type read_listing read_trace
    """,
    "trunkline.spec.requirements": """
        ACTORS Actor JUDGES Judge LEVELS Level Requirement UnknownRequirement requirement
        requirements
    """,
    "trunkline.spec.profiles": """
        OFFICIAL_PROFILE PROFILE_NAMES Profile RESERVED_CODES UnknownProfile
        UnknownRevision
        UnknownSymbol candidates is_reserved profile
    """,
    "trunkline.spec.revisions": """
        FORMER_NAMES LATEST REVISIONS V2024_11_05 V2025_03_26 V2025_06_18 V2025_11_25
        V2026_07_28 Window
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
