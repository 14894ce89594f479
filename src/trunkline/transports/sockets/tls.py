"""TLS between a socket and the framing, without I/O, and the contexts for a `Tls`.

The event loop reads and writes the socket as it does without TLS, so the rules of `io.fd` about
buffers, turns and backlogs hold here too.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final

from ...errors import TransportError
from ..addresses import Tls

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ..io.fd import FdWriter

__all__ = ["TlsChannel", "client_context", "server_context"]

# A TLS record holds at most 16 KiB; reading several at a time takes fewer calls.
_READ_BYTES: Final = 256 * 1024


def client_context(tls: bool | Tls | ssl.SSLContext) -> ssl.SSLContext:
    """Return the context of a client, which verifies the server.

    Raises:
        TransportError: a file cannot be read or used; the text names it.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    given = tls if isinstance(tls, Tls) else Tls()
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if given.ca is not None:
        # Only these: the authorities of the system are not trusted as well.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load(given.ca, lambda: context.load_verify_locations(given.ca))
    return _finished(context, given)


def server_context(tls: bool | Tls | ssl.SSLContext) -> ssl.SSLContext:
    """Return the context of a server, with its certificate.

    Raises:
        TransportError: there is no certificate, or a file cannot be read or used.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    if not isinstance(tls, Tls) or tls.cert is None:
        raise TransportError("a tls:// server needs a certificate: Tls(cert=..., key=...)")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        _load(tls.ca, lambda: context.load_verify_locations(tls.ca))
    return _finished(context, tls)


def _finished(context: ssl.SSLContext, tls: Tls) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # With renegotiation a write could have to wait for a read.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if tls.cert is not None:
        cert, key = tls.cert, tls.key
        # Without a password OpenSSL would prompt for one at the terminal.
        password = tls.password or ""
        _load(cert, lambda: context.load_cert_chain(cert, key, password=lambda: password), key)
    return context


def _load(file: object, load: Callable[[], object], key: object = None) -> None:
    named = f"{file}" if key is None else f"{file} with {key}"
    try:
        load()
    except ssl.SSLError as error:
        raise TransportError(f"{named} cannot be used for TLS: {_reason(error)}") from None
    except OSError as error:
        raise TransportError(f"{named} cannot be read: {error.strerror}") from None
    except ValueError:
        # The only other cause is a password over the length limit of OpenSSL.
        raise TransportError(f"{named} cannot be used for TLS: bad password") from None


def _reason(error: ssl.SSLError) -> str:
    """Return the text of OpenSSL without its line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate is not trusted"
    return (error.reason or error.strerror or "unknown").replace("_", " ").lower()


class TlsChannel:
    """The encryption of one connection; it has the interface of a writer.

    `on_handshake` is called when the handshake is done, `on_bytes` with decrypted bytes, then
    `on_end` once: with the error, or None.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_name: str | None,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
        on_handshake: Callable[[], object] = lambda: None,
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(
                self._incoming,
                self._outgoing,
                server_side=server_side,
                server_hostname=server_name,
            )
        except (ValueError, ssl.SSLError) as error:
            raise TransportError(f"TLS cannot be used: {error}") from None
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._on_handshake = on_handshake
        self._has_ended = False  # the input
        self._is_closed = False  # the output
        self._handshake_done: asyncio.Future[None] | None = None
        self._writer: FdWriter | None = None

    @property
    def backlog(self) -> int:
        """The number of encrypted bytes not written yet."""
        return 0 if self._writer is None else self._writer.backlog

    @property
    def written(self) -> int:
        """The number of encrypted bytes written in total."""
        return 0 if self._writer is None else self._writer.written

    def peer_certificate(self) -> dict[str, Any] | None:
        """Return the certificate of the other side, if it was verified."""
        if self._tls.context.verify_mode != ssl.CERT_REQUIRED:
            return None
        found: dict[str, Any] | None = self._tls.getpeercert()
        return found

    async def handshake(self, writer: FdWriter, loop: asyncio.AbstractEventLoop) -> None:
        """Run the TLS handshake.

        Raises:
            TransportError: it failed, or the other side left; the text has the reason.
        """
        self._writer = writer
        self._handshake_done = loop.create_future()
        self._step()
        await self._handshake_done

    def feed(self, data: bytes) -> None:
        """Decrypt bytes that were read from the socket."""
        self._incoming.write(data)
        self._step()

    def feed_end(self, error: OSError | None) -> None:
        """End the input."""
        if error is None:
            # Many peers close without close_notify, which looks like truncation. Frames have
            # delimiters of their own, so the framing detects a truncated one.
            self._incoming.write_eof()
            self._step()
        self._fail(error)

    def write(self, data: bytes) -> None:
        """Encrypt `data` and write it at the end of this tick."""
        if self._is_closed:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._is_closed = True
            self._fail(error)
            return
        self._flush()

    async def finish(self, timeout: float) -> None:
        """Send close_notify, and wait until all is written; see `Backlog`."""
        if self._writer is None:
            return
        self._is_closed = True
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it waits for the other side's close_notify, or the handshake never began
        self._flush()
        await self._writer.finish(timeout)

    def close(self) -> None:
        """Stop writing."""
        self._has_ended = self._is_closed = True
        if self._writer is not None:
            self._writer.close()

    def _step(self) -> None:
        """Continue the handshake, then read, as far as the input allows."""
        # Delivered at once, not record by record: what a turn handles is counted per read.
        parts: list[bytes] = []
        is_over, reason = False, None
        try:
            try:
                if self._handshake_done is not None and not self._handshake_done.done():
                    self._tls.do_handshake()
                    self._handshake_done.set_result(None)
                    self._on_handshake()  # before any byte is delivered
                while not self._has_ended and not is_over:
                    data = self._tls.read(_READ_BYTES)
                    if data:
                        parts.append(data)
                    else:
                        is_over = True  # close_notify
            except ssl.SSLWantReadError:
                pass
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                is_over = True
            except ssl.SSLError as error:
                is_over, reason = True, error
            if parts:
                self._on_bytes(parts[0] if len(parts) == 1 else b"".join(parts))
            if is_over:
                self._fail(reason)
        finally:
            self._flush()  # also an alert that rejects the other side

    def _fail(self, error: OSError | None) -> None:
        if self._handshake_done is not None and not self._handshake_done.done():
            if error is None:
                reason = "the other side closed the connection"
            else:
                reason = _reason(error) if isinstance(error, ssl.SSLError) else str(error.strerror)
            self._handshake_done.set_exception(TransportError(f"TLS handshake failed: {reason}"))
            self._has_ended = True
        elif not self._has_ended:
            self._has_ended = True
            self._on_end(error)

    def _flush(self) -> None:
        if self._writer is not None and self._outgoing.pending:
            self._writer.write(self._outgoing.read())
