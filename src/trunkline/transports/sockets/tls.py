"""TLS between a socket and the framing: bytes in, bytes out, no I/O of its own.

The event loop reads and writes the socket as it does without TLS, so everything that holds
there about buffers, turns and backlogs holds here. Who is trusted is said by an address; the
contexts that do the trusting are made here.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from ...errors import TransportError
from ..addresses import Tls

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ..io.fd import FdWriter

__all__ = ["TlsChannel", "client_context", "server_context"]

# The most that one record of TLS holds is 16 KiB; several at a time cost fewer calls.
_CHUNK: Final = 256 * 1024


def client_context(tls: bool | Tls | ssl.SSLContext) -> ssl.SSLContext:
    """Return what checks a server.

    Raises:
        TransportError: a file cannot be read or does not hold what it should; the text names it.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    given = tls if isinstance(tls, Tls) else Tls()
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if given.ca is not None:
        # Only these: who names an authority does not mean all others too.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load(given.ca, lambda: context.load_verify_locations(given.ca))
    return _finished(context, given)


def server_context(tls: bool | Tls | ssl.SSLContext) -> ssl.SSLContext:
    """Return what a server shows itself by, and checks clients with.

    Raises:
        TransportError: there is no certificate to show, or a file cannot be read.
    """
    if isinstance(tls, ssl.SSLContext):
        return tls
    if not isinstance(tls, Tls) or tls.cert is None:
        raise TransportError("a server of tls:// needs a certificate: Tls(cert=..., key=...)")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        _load(tls.ca, lambda: context.load_verify_locations(tls.ca))
    return _finished(context, tls)


def _finished(context: ssl.SSLContext, tls: Tls) -> ssl.SSLContext:
    """Set what both sides have: a certificate, and what may be agreed on."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Else a write could have to wait for a read.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if tls.cert is not None:
        cert, key = tls.cert, tls.key
        # Never asked for at the terminal, which OpenSSL would do by itself.
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
        # What else it may complain of is a password longer than any.
        raise TransportError(f"{named} cannot be used for TLS: bad password") from None


def _reason(error: ssl.SSLError) -> str:
    """Return what went wrong, in the words of the library and without its line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate is not trusted"
    reason = (error.reason or error.strerror or "unknown").replace("_", " ").lower()
    return reason


class TlsChannel:
    """One connection's encryption: what is read goes in, what it means comes out.

    `on_bytes` is called with what the other side wrote, `on_end` once: with None at its proper
    end, else with what went wrong. Has the members of a writer that a transport uses.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_name: str | None,
        on_bytes: Callable[[bytes], object],
        on_end: Callable[[OSError | None], object],
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
        self._has_ended = False  # nothing more comes
        self._is_closed = False  # nothing more is written
        self._shaken: asyncio.Future[None] | None = None
        self._writer: FdWriter | None = None

    @property
    def backlog(self) -> int:
        """How many bytes, encrypted, are not written yet."""
        return 0 if self._writer is None else self._writer.backlog

    @property
    def written(self) -> int:
        """How many bytes, encrypted, were written in all."""
        return 0 if self._writer is None else self._writer.written

    async def shake(self, writer: FdWriter, loop: asyncio.AbstractEventLoop) -> None:
        """Agree with the other side on who is who.

        Raises:
            TransportError: they do not agree, or it left; the text says why.
        """
        self._writer = writer
        self._shaken = loop.create_future()
        self._step()
        await self._shaken

    def feed(self, data: bytes) -> None:
        """Take in what was read from the socket."""
        self._incoming.write(data)
        self._step()

    def feed_end(self, error: OSError | None) -> None:
        """Take in that nothing more will come."""
        if error is None:
            # Who was cut off says nothing, and who leaves in order says so inside TLS. Many do
            # not; frames have ends of their own, so one that is cut is known by the framing.
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

    async def finish(self, patience: float) -> None:
        """Say that nothing more will come, and wait until all is written; see `Backlog`."""
        if self._writer is None:
            return
        self._is_closed = True
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it waits for the other side's answer, which nobody needs; or never began
        self._flush()
        await self._writer.finish(patience)

    def close(self) -> None:
        """Write no more."""
        self._has_ended = self._is_closed = True
        if self._writer is not None:
            self._writer.close()

    def _step(self) -> None:
        """Go on with whatever the bytes so far allow."""
        try:
            if self._shaken is not None and not self._shaken.done():
                self._tls.do_handshake()
                self._shaken.set_result(None)
            while not self._has_ended:
                data = self._tls.read(_CHUNK)
                if not data:
                    self._fail(None)  # it said in order that nothing more comes
                    return
                self._on_bytes(data)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._fail(None)
        except ssl.SSLError as error:
            self._fail(error)
        finally:
            self._flush()  # also what says to the other side why it is refused

    def _fail(self, error: OSError | None) -> None:
        if self._shaken is not None and not self._shaken.done():
            reason = "the other side left" if error is None else _words(error)
            self._shaken.set_exception(TransportError(f"TLS was not agreed on: {reason}"))
            self._has_ended = True
        elif not self._has_ended:
            self._has_ended = True
            self._on_end(error)

    def _flush(self) -> None:
        if self._writer is not None and self._outgoing.pending:
            self._writer.write(self._outgoing.read())


def _words(error: OSError) -> str:
    return _reason(error) if isinstance(error, ssl.SSLError) else str(error.strerror)
