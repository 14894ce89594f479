"""JSON-RPC 2.0: messages, codec, framing and peer, without I/O, clock or method names."""

from ..errors import IdsExhausted, InvalidMessage, LocalProtocolError, RemoteProtocolError
from .codec import Codec, decode, encode
from .error_codes import named_error
from .framing import (
    BadHeader,
    ContentLengthFraming,
    DetectingFraming,
    Framing,
    LengthPrefixFraming,
    NewlineFraming,
    Oversize,
    Truncated,
    framing_named,
)
from .ids import IdSource
from .incoming import IncomingRequest, IncomingRequests
from .limits import Limits
from .messages import (
    Batch,
    Call,
    ErrorObject,
    ExtendedCall,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Message,
    Notification,
    Reply,
    Request,
    RequestId,
    Success,
)
from .outgoing import OutgoingRequests, Pending, Replies, UnmatchedReply
from .peer import Peer, ProtocolProblem, UnmatchedReplyEvent
from .policy import Policy
from .sse import Event, EventReader, encode_comment, encode_event

__all__ = [
    "BadHeader",
    "Batch",
    "Call",
    "Codec",
    "ContentLengthFraming",
    "DetectingFraming",
    "ErrorObject",
    "Event",
    "EventReader",
    "ExtendedCall",
    "ExtendedNotification",
    "ExtendedRequest",
    "Failure",
    "Framing",
    "IdSource",
    "IdsExhausted",
    "IncomingRequest",
    "IncomingRequests",
    "InvalidMessage",
    "LengthPrefixFraming",
    "Limits",
    "LocalProtocolError",
    "Message",
    "NewlineFraming",
    "Notification",
    "OutgoingRequests",
    "Oversize",
    "Peer",
    "Pending",
    "Policy",
    "ProtocolProblem",
    "RemoteProtocolError",
    "Replies",
    "Reply",
    "Request",
    "RequestId",
    "Success",
    "Truncated",
    "UnmatchedReply",
    "UnmatchedReplyEvent",
    "decode",
    "encode",
    "encode_comment",
    "encode_event",
    "framing_named",
    "named_error",
]
