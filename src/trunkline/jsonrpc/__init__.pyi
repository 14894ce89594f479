# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from ..errors import IdsExhausted as IdsExhausted
from ..errors import InvalidMessage as InvalidMessage
from ..errors import LocalProtocolError as LocalProtocolError
from ..errors import RemoteProtocolError as RemoteProtocolError
from .codec import Codec as Codec
from .codec import decode as decode
from .codec import encode as encode
from .error_codes import named_error as named_error
from .framing import BadHeader as BadHeader
from .framing import ContentLengthFraming as ContentLengthFraming
from .framing import DetectingFraming as DetectingFraming
from .framing import Framing as Framing
from .framing import LengthPrefixFraming as LengthPrefixFraming
from .framing import NewlineFraming as NewlineFraming
from .framing import Oversize as Oversize
from .framing import Truncated as Truncated
from .framing import framing_named as framing_named
from .ids import IdSource as IdSource
from .incoming import IncomingRequest as IncomingRequest
from .incoming import IncomingRequests as IncomingRequests
from .limits import Limits as Limits
from .messages import Batch as Batch
from .messages import Call as Call
from .messages import EnvelopeExtras as EnvelopeExtras
from .messages import ErrorObject as ErrorObject
from .messages import ExtendedCall as ExtendedCall
from .messages import ExtendedNotification as ExtendedNotification
from .messages import ExtendedRequest as ExtendedRequest
from .messages import Failure as Failure
from .messages import Message as Message
from .messages import Notification as Notification
from .messages import Reply as Reply
from .messages import Request as Request
from .messages import RequestId as RequestId
from .messages import Success as Success
from .outgoing import OutgoingRequests as OutgoingRequests
from .outgoing import Pending as Pending
from .outgoing import Replies as Replies
from .outgoing import UnmatchedReply as UnmatchedReply
from .peer import Peer as Peer
from .peer import ProtocolProblem as ProtocolProblem
from .peer import UnmatchedReplyEvent as UnmatchedReplyEvent
from .policy import Policy as Policy
from .sse import Event as Event
from .sse import EventReader as EventReader
from .sse import encode_comment as encode_comment
from .sse import encode_event as encode_event


__all__ = [
    "BadHeader",
    "Batch",
    "Call",
    "Codec",
    "ContentLengthFraming",
    "DetectingFraming",
    "EnvelopeExtras",
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
