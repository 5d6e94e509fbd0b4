"""Calls to a server: deadlines, bounded retries, several addresses, the token, errors with their details.

UNAVAILABLE is repeated with jittered backoff until the deadline, at the next address of the list. Every call is safe to
repeat: those that create carry a request id. Safe to use from several threads.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import grpc
from google.protobuf.message import DecodeError, Message

from .errors import (
    ChainfleetError,
    DeadlineExceeded,
    FieldViolation,
    InvalidArgument,
    NotFound,
    Unauthenticated,
    Unavailable,
    class_of,
    invalid_field,
    refusal,
)
from .rpc import error_details_pb2, status_pb2
from .scope import SCOPE, held
from .tls import NO_TLS, TlsFiles

_MAX_MESSAGE_BYTES = 16 << 20
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    # A watch may be silent for long; a server that is frozen or cut off is noticed by these pings alone.
    ("grpc.keepalive_time_ms", 12_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # The backoff is ours: the channel's own would answer attempts of the next seconds without trying.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
)
_LONGEST_WAIT = 1.0  # seconds between attempts
_CONNECTED = 5.0  # seconds: an attempt that took longer had reached a server
_PATIENCE = 60.0  # seconds of a stream that had begun, without a word from any server
TRANSFER_TIMEOUT = 1800.0  # seconds: the server decodes an upload before it answers

Metadata = tuple[tuple[str, str], ...]
ReplyT = TypeVar("ReplyT", bound=Message)
ResultT = TypeVar("ResultT")
AttemptT = TypeVar("AttemptT", covariant=True)


class _Attempt(Protocol[AttemptT]):
    def __call__(self, channel: grpc.Channel, *, timeout: float, metadata: Metadata) -> AttemptT: ...


class Connection:
    """Calls one server, or several of which one leads. `timeout`: seconds for a call, including its retries.

    find_token: returns the token anew, after the server refused the one that it knows.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        token: str,
        timeout: float,
        tls: TlsFiles = NO_TLS,
        find_token: Callable[[], str] = str,
    ) -> None:
        _after(timeout)
        self.addresses, self.timeout = list(addresses), timeout
        self._token, self._find_token = token, find_token
        self._tls, self._credentials = tls, tls.credentials()
        self._lock, self._renewing = threading.Lock(), threading.Lock()
        self._channels: dict[str, grpc.Channel] = {}
        self._methods: WeakKeyDictionary[grpc.Channel, dict[str, Any]] = (
            WeakKeyDictionary()
        )  # callables of each channel
        self._current = 0

    def call(self, method: str, request: Message, reply: type[ReplyT], timeout: float | None = None) -> ReplyT:
        """The reply of `method`, such as JobService/GetJob, within `timeout` seconds."""

        def attempt(channel: grpc.Channel, **options: Any) -> ReplyT:
            known = self._methods.setdefault(channel, {})
            made = known.get(method)
            if made is None:  # making it again for each call would take a measurable part of a small prediction
                made = channel.unary_unary(_path(method), type(request).SerializeToString, reply.FromString)
                known[method] = made
            return _reply_of(made, request, **options)  # type: ignore[no-any-return]

        return self._repeat(attempt, timeout or self.timeout, TRANSFER_TIMEOUT)

    def delete(self, method: str, request: Message, reply: type[Message]) -> None:
        """As `call`. NotFound after a failed attempt has a hint: that attempt may have deleted the thing.

        It stays an error, because the name may be wrong instead.
        """
        try:
            self.call(method, request, reply)
        except NotFound as error:
            if isinstance(error.__cause__, Unavailable):
                error.hint = "correct the name, unless an earlier attempt of this call has deleted the thing"
            raise

    def upload(self, method: str, messages: Callable[[], Iterator[Message]], reply: type[ReplyT]) -> ReplyT:
        """The reply after all `messages`, which are made again for each attempt.

        Raises Unavailable if no server was reached for `self.timeout` seconds. So does `read`.
        """

        def attempt(channel: grpc.Channel, **options: Any) -> ReplyT:
            made = channel.stream_unary(_path(method), lambda message: message.SerializeToString(), reply.FromString)
            return _reply_of(made, messages(), **options)  # type: ignore[no-any-return]

        return self._repeat(attempt, TRANSFER_TIMEOUT, self.timeout)

    def read(
        self, method: str, request: Message, reply: type[ReplyT], take: Callable[[Iterator[ReplyT]], ResultT]
    ) -> ResultT:
        """The result of `take`, which gets the messages of a stream that ends by itself; all again for each attempt."""

        def attempt(channel: grpc.Channel, **options: Any) -> ResultT:
            made = channel.unary_stream(_path(method), type(request).SerializeToString, reply.FromString)
            call = made(request, **options)
            with held(call):
                return take(iter(call))

        return self._repeat(attempt, TRANSFER_TIMEOUT, self.timeout)

    def pages(self, method: str, request: Any, reply: type[Any], items: str) -> list[Any]:
        """The `items` of all pages of a list call."""
        found: list[Any] = []
        request.page_size = 500
        while True:
            page = self.call(method, request, reply)
            found.extend(getattr(page, items))
            request.page_token = page.next_page_token
            if not request.page_token:
                return found

    def watch(self, method: str, request: Any, reply: type[ReplyT], timeout: float | None) -> Iterator[ReplyT]:
        """The messages of a stream that is opened again when it breaks; the caller ends it.

        Raises Unavailable after a minute without an open stream, DeadlineExceeded after `timeout` seconds; None: never.
        """
        end = _after(timeout) if timeout is not None else float("inf")
        last_heard, patience, wait = time.monotonic(), self.timeout, 0.05
        metadata, may_renew = self._metadata(), True
        while True:
            address, channel = self._channel()
            made = channel.unary_stream(_path(method), type(request).SerializeToString, reply.FromString)
            left = None if timeout is None else max(0.001, end - time.monotonic())
            call = made(request, timeout=left, metadata=metadata)
            error: ChainfleetError = Unavailable(
                f"the server keeps ending {method}", reason="NO_SERVER", hint="look into the server's log"
            )
            heard = False
            try:
                for message in _messages(call):
                    heard, patience, wait = True, _PATIENCE, 0.05
                    yield message
            except grpc.RpcError as broken:
                error = self._failure(broken, address)
            finally:
                call.cancel()  # type: ignore[no-untyped-call]
            now = time.monotonic()
            if heard:  # the server was there until now: a stream is silent while nothing changes
                last_heard, may_renew = now, True
            if isinstance(error, Unauthenticated) and may_renew and (renewed := self._renewed(metadata)) != metadata:
                metadata, may_renew = renewed, False
                continue
            if now >= end or not isinstance(error, (Unavailable, DeadlineExceeded)) or now - last_heard >= patience:
                raise error
            _pause(wait * random.uniform(0.5, 1))
            wait = min(2 * wait, _LONGEST_WAIT)

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    def environment(self) -> dict[str, str]:
        """Variables by which the program `chainfleet` reaches the same server."""
        place = {"CHAINFLEET_ADDRESS": ",".join(self.addresses), "CHAINFLEET_TOKEN": self._token}
        others = dict.fromkeys(("CHAINFLEET_TOKEN_FILE", "CHAINFLEET_TOKEN_COMMAND"), "")  # used if the token is ""
        # A context would go before the address.
        return {**place, **others, **self._tls.environment(), "CHAINFLEET_CONTEXT": ""}

    def close(self) -> None:
        """Closes the channels. A later call opens them again."""
        with self._lock:
            channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()

    def _channel(self) -> tuple[str, grpc.Channel]:
        with self._lock:
            address = self.addresses[self._current % len(self.addresses)]
            if address not in self._channels:
                self._channels[address] = self._dial(address)
            return address, self._channels[address]

    def _dial(self, address: str) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(address, options=_OPTIONS)
        with contextlib.suppress(InvalidArgument):  # while a file is missing or empty, as before
            self._credentials = self._tls.credentials() or self._credentials
        return grpc.secure_channel(address, self._credentials, options=_OPTIONS)

    def _renewed(self, metadata: Metadata) -> Metadata:
        """`metadata` with the token that is found now. It is the same as before if none or no other one is found."""
        with self._renewing, contextlib.suppress(ChainfleetError):
            if metadata == self._metadata(metadata[0]):  # otherwise another thread has found one
                self._token = self._find_token() or self._token
        return self._metadata(metadata[0])

    def _metadata(self, request_id: tuple[str, str] | None = None) -> Metadata:
        """The metadata of one call. Its retries send the same request id."""
        request_id = request_id or ("x-request-id", uuid.uuid4().hex)
        return (request_id, ("authorization", f"Bearer {self._token}")) if self._token else (request_id,)

    def _repeat(self, attempt: _Attempt[ResultT], timeout: float, patience: float) -> ResultT:
        """The result within `timeout` seconds. Gives up after an outage of `patience` seconds."""
        end = give_up = _after(timeout)
        metadata, may_renew, wait = self._metadata(), True, 0.05
        outage: Unavailable | None = None
        while True:
            begun = time.monotonic()
            left = end - begun
            address, channel = self._channel()
            try:
                return attempt(channel, timeout=max(left, 0.001), metadata=metadata)
            except grpc.RpcError as error:
                failure = self._failure(error, address)
            if isinstance(failure, DeadlineExceeded) and outage and left < 5:
                raise outage  # the last attempt had no time left
            if isinstance(failure, Unauthenticated) and may_renew and (renewed := self._renewed(metadata)) != metadata:
                metadata, may_renew = renewed, False
                continue
            if not isinstance(failure, Unavailable):
                raise failure from outage
            now, pause = time.monotonic(), wait * random.uniform(0.5, 1)
            if outage is None or now - begun > _CONNECTED:
                give_up = min(end, now + patience)
            outage = failure
            if now + pause >= give_up:
                raise failure
            _pause(pause)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _failure(self, error: Any, address: str) -> ChainfleetError:
        """`error` as an exception of ours; the next call goes to the next address if this one did not answer."""
        code, message = error.code().name, error.details() or ""
        trailers = dict(error.trailing_metadata() or ())
        reason, more = _details(trailers.get("grpc-status-details-bin", b""))
        request_id = more.get("request_id", "")
        from_server = bool(reason or request_id)
        if code == "CANCELLED" and not from_server:
            code, message = "UNAVAILABLE", "the server ended before it answered"
        if code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            self._move_on(address, drop=code == "UNAVAILABLE" and not from_server)
        if code == "UNAVAILABLE" and not from_server:
            places, last = ", ".join(self.addresses), message.rpartition("last error: UNKNOWN: ")[2]
            hint = _remedy(message, last, address, self._credentials is not None)
            return Unavailable(f"no chainfleet server answers at {places} ({last})", reason="NO_SERVER", hint=hint)
        if code == "UNIMPLEMENTED":
            return class_of("FAILED_PRECONDITION", "VERSION_MISMATCH")(
                f"the server at {address} does not know this call",
                reason="VERSION_MISMATCH",
                hint="install the package of the server's release; fleet.info().version says which",
            )
        if code == "DEADLINE_EXCEEDED":
            words = message if from_server else f"the server at {address} did not answer in time"
            hint, reason = "repeat it with a longer timeout", "TIMED_OUT" if reason in ("", code) else reason
            return DeadlineExceeded(words, reason=reason, request_id=request_id, hint=hint)
        return refusal(code, reason, message, **more)

    def _move_on(self, address: str, drop: bool) -> None:
        with self._lock:
            if self.addresses[self._current % len(self.addresses)] == address:
                self._current += 1
            if drop:  # a channel that failed once answers with its last error until it is connected
                self._channels.pop(address, None)


def _reply_of(made: Any, request: Any, **options: Any) -> Any:
    if SCOPE.get() is None:
        return made(request, **options)  # faster than a future
    call = made.future(request, **options)
    with held(call):
        return call.result()


def _messages(call: Any) -> Iterator[Any]:
    """The messages of a stream. The scope is that of each step, which may be another than that of the step before."""
    while True:
        try:
            with held(call):
                message = next(call)
        except StopIteration:
            return
        yield message


def _after(timeout: float) -> float:
    """Returns the time.monotonic() in `timeout` seconds. Raises InvalidArgument if it is no number."""
    try:
        return time.monotonic() + timeout
    except TypeError:
        raise invalid_field("timeout", f"{timeout!r} is not allowed here", "timeout takes seconds, a number") from None


def _pause(seconds: float) -> None:
    """Waits. Raises FutureCancelledError if the scope of this context ends."""
    scope = SCOPE.get()
    if scope is None:
        time.sleep(seconds)
    elif scope.ended.wait(seconds):
        raise grpc.FutureCancelledError


def _remedy(message: str, last: str, address: str, has_tls: bool) -> str:
    """Returns what to do about grpc's error of connecting, by its words. `last`: the words of the last attempt."""
    if "http1.x server" in message or "Failed parsing HTTP/2" in message:
        return f"{address} is a port for HTTP; give connect the port for gRPC, which is 7400 by default"
    words = last.lower().replace("_", " ")
    speaks_no_tls = "wrong version number" in words  # newer releases of grpc then speak of a certificate, too
    if has_tls and not speaks_no_tls and ("certificate" in words or "verification" in words):
        return (
            "the server's certificate is not signed by an authority of ca_file, or names another host; or the server "
            "wants one of yours: cert_file and key_file"
        )
    if any(word in words for word in ("handshake", "reset", "closed")):
        if has_tls:
            return (
                "does the server speak TLS? If not, give connect no ca_file, cert_file or key_file; if it does, it may "
                "want a certificate of yours: cert_file and key_file"
            )
        return "does the server speak TLS? Then give connect the certificates of its authority: ca_file"
    return "start one with chainfleet.local() or `chainfleet up`, or give connect the address of another"


def _path(method: str) -> str:
    return f"/chainfleet.v1.{method}"


def _details(trailer: bytes) -> tuple[str, dict[str, Any]]:
    """The reason of a google.rpc.Status, and the further arguments of ChainfleetError that it has."""
    reason, more = "", dict[str, Any]()
    try:
        for detail in status_pb2.Status.FromString(trailer).details:
            kind = detail.type_url.rpartition(".")[2]
            if kind == "ErrorInfo":
                info = error_details_pb2.ErrorInfo.FromString(detail.value)
                reason = info.reason if info.domain == "chainfleet" else reason
                more["bound"] = info.metadata["bound"]
            elif kind == "BadRequest":
                wrong = error_details_pb2.BadRequest.FromString(detail.value).field_violations
                more["violations"] = [FieldViolation(v.field, v.description) for v in wrong]
            elif kind == "RequestInfo":
                more["request_id"] = error_details_pb2.RequestInfo.FromString(detail.value).request_id
            elif kind == "RetryInfo":
                delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
                more["retry_after"] = delay.ToTimedelta().total_seconds()
    except DecodeError:
        pass
    return reason, more
