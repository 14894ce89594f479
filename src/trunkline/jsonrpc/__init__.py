"""JSON-RPC 2.0: messages, codec, framing and peer, without I/O, clock or method names."""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".errors": "IdsExhausted InvalidMessage LocalProtocolError RemoteProtocolError",
        "codec.codec": "Codec decode encode",
        "error_codes": "named_error",
        "framing.framing": (
            "BadHeader ContentLengthFraming DetectingFraming Framing LengthPrefixFraming "
            "NewlineFraming Oversize Truncated framing_named"
        ),
        "ids": "IdSource",
        "peer.incoming": "IncomingRequest IncomingRequests",
        "limits": "Limits",
        "messages": (
            "Batch Call EnvelopeExtras ErrorObject ExtendedCall ExtendedNotification "
            "ExtendedRequest Failure Message Notification Reply Request RequestId Success"
        ),
        "peer.outgoing": "OutgoingRequests Pending Replies UnmatchedReply",
        "peer.peer": "Peer ProtocolProblem UnmatchedReplyEvent",
        "policy": "Policy",
        "framing.sse": "Event EventReader encode_comment encode_event",
    },
)
