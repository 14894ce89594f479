# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from ..errors import IdsExhausted as IdsExhausted
from ..errors import InvalidMessage as InvalidMessage
from ..errors import LocalProtocolError as LocalProtocolError
from ..errors import RemoteProtocolError as RemoteProtocolError
from .codec.codec import Codec as Codec
from .codec.codec import decode as decode
from .codec.codec import encode as encode
from .error_codes import named_error as named_error
from .framing.framing import BadHeader as BadHeader
from .framing.framing import ContentLengthFraming as ContentLengthFraming
from .framing.framing import DetectingFraming as DetectingFraming
from .framing.framing import Framing as Framing
from .framing.framing import LengthPrefixFraming as LengthPrefixFraming
from .framing.framing import NewlineFraming as NewlineFraming
from .framing.framing import Oversize as Oversize
from .framing.framing import Truncated as Truncated
from .framing.framing import framing_named as framing_named
from .framing.sse import Event as Event
from .framing.sse import EventReader as EventReader
from .framing.sse import encode_comment as encode_comment
from .framing.sse import encode_event as encode_event
from .ids import IdSource as IdSource
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
from .peer.incoming import IncomingRequest as IncomingRequest
from .peer.incoming import IncomingRequests as IncomingRequests
from .peer.outgoing import OutgoingRequests as OutgoingRequests
from .peer.outgoing import Pending as Pending
from .peer.outgoing import Replies as Replies
from .peer.outgoing import UnmatchedReply as UnmatchedReply
from .peer.peer import Peer as Peer
from .peer.peer import ProtocolProblem as ProtocolProblem
from .peer.peer import UnmatchedReplyEvent as UnmatchedReplyEvent
from .policy import Policy as Policy


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
