"""Kerberos through the system's own library (MIT's libgssapi_krb5), without a compiler.

Runs on: executor and worker. Only what a client's login needs of RFC 2744. Calls may talk to the
KDC, so they are made on threads of their own; they do not hold the interpreter lock.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from typing import Any

from sparkmirror.errors import AuthenticationError, MissingPart

LIBRARIES = ("libgssapi_krb5.so.2", "libgssapi_krb5.dylib")
KERBEROS = bytes.fromhex("2a864886f712010202")
HOST_BASED_SERVICE = bytes.fromhex("2a864886f71201020104")
PRINCIPAL_NAME = bytes.fromhex("2a864886f71201020201")
CONTINUE_NEEDED = 1
# The two upper bytes of a major status are errors, the lower two only details.
ERROR_MASK = 0xFFFF0000
GSS_CODE, MECHANISM_CODE = 1, 2
INITIATE = 1
INDEFINITE = 0xFFFFFFFF
MUTUAL, SEQUENCE, INTEGRITY = 2, 8, 32


class _Bytes(ctypes.Structure):
    """gss_buffer_desc."""

    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    """gss_OID_desc."""

    _fields_ = (("length", c_uint32), ("elements", c_void_p))


class _OidSet(ctypes.Structure):
    """gss_OID_set_desc."""

    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _Pair(ctypes.Structure):
    """gss_key_value_element_desc."""

    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Store(ctypes.Structure):
    """gss_key_value_set_desc."""

    _fields_ = (("count", c_uint32), ("elements", POINTER(_Pair)))


@cache
def library() -> Any:
    """The library itself. Raises MissingPart."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise MissingPart(
        "sasl.mechanism=GSSAPI needs the Kerberos library of this system, which is not installed; "
        "install libgssapi-krb5-2 (Debian, Ubuntu) or krb5-libs (Red Hat) on every machine"
    )


def _oid(data: bytes) -> _Oid:
    buffer = ctypes.create_string_buffer(data, len(data))
    found = _Oid(len(data), ctypes.addressof(buffer))
    found.kept = buffer
    return found


_OIDS = {data: _oid(data) for data in (KERBEROS, HOST_BASED_SERVICE, PRINCIPAL_NAME)}
_memory_caches = itertools.count(1)


def memory_cache() -> str:
    """A name for a ticket cache of this process only."""
    return f"MEMORY:sparkmirror-{next(_memory_caches)}"


class GssName:
    """A principal: `kafka@host` of type HOST_BASED_SERVICE, or `user@REALM`."""

    def __init__(self, text: str, kind: bytes) -> None:
        self.handle = c_void_p()
        given = _given(text.encode())
        _call("gss_import_name", byref(given), byref(_OIDS[kind]), byref(self.handle))

    def __del__(self) -> None:
        _release("gss_release_name", self.handle)


class Credentials:
    """A ticket, from the places of `store`: `ccache` and `client_keytab`; empty is the default."""

    def __init__(self, name: GssName | None, store: Mapping[str, str]) -> None:
        self.handle = c_void_p()
        pairs = [_Pair(key.encode(), value.encode()) for key, value in store.items()]
        array = (_Pair * len(pairs))(*pairs)
        kerberos = _OidSet(1, ctypes.pointer(_OIDS[KERBEROS]))
        _call(
            "gss_acquire_cred_from",
            name.handle if name else None,
            c_uint32(INDEFINITE),
            byref(kerberos),
            c_int(INITIATE),
            byref(_Store(len(pairs), array)) if pairs else None,
            byref(self.handle),
            None,
            None,
        )

    def __del__(self) -> None:
        _release("gss_release_cred", self.handle)


class GssContext:
    """The exchange with one service; used by one thread at a time."""

    def __init__(self, service: GssName, credentials: Credentials) -> None:
        self._handle = c_void_p()
        self._service = service
        self._credentials = credentials
        self.is_complete = False

    def step(self, token: bytes) -> bytes:
        """Our next token, which may be empty."""
        out = _Bytes()
        major = _call(
            "gss_init_sec_context",
            self._credentials.handle,
            byref(self._handle),
            self._service.handle,
            byref(_OIDS[KERBEROS]),
            c_uint32(MUTUAL | SEQUENCE | INTEGRITY),
            c_uint32(0),
            None,
            byref(_given(token)) if token else None,
            None,
            byref(out),
            None,
            None,
        )
        self.is_complete = not major & CONTINUE_NEEDED
        return _taken(out)

    def unwrap(self, message: bytes) -> bytes:
        """The content of a message of the service."""
        out = _Bytes()
        _call("gss_unwrap", self._handle, byref(_given(message)), byref(out), None, None)
        return _taken(out)

    def wrap(self, message: bytes) -> bytes:
        """The message with a signature, not encrypted."""
        out = _Bytes()
        given = _given(message)
        _call("gss_wrap", self._handle, c_int(0), c_uint32(0), byref(given), None, byref(out))
        return _taken(out)

    def __del__(self) -> None:
        if self._handle:
            library().gss_delete_sec_context(byref(c_uint32()), byref(self._handle), None)


def _given(data: bytes) -> _Bytes:
    buffer = ctypes.create_string_buffer(data, len(data))
    found = _Bytes(len(data), ctypes.addressof(buffer))
    found.kept = buffer
    return found


def _taken(buffer: _Bytes) -> bytes:
    data = ctypes.string_at(buffer.value, buffer.length) if buffer.length else b""
    _release("gss_release_buffer", buffer)
    return data


def _release(function: str, handle: Any) -> None:
    if handle:
        getattr(library(), function)(byref(c_uint32()), byref(handle))


def _call(function: str, *args: Any) -> int:
    """Major status, which is no error. Raises AuthenticationError."""
    minor = c_uint32()
    call = getattr(library(), function)
    call.restype = c_uint32
    major = int(call(byref(minor), *args))
    if major & ERROR_MASK:
        raise AuthenticationError(f"Kerberos: {_describe(major, minor.value)}")
    return major


def _describe(major: int, minor: int) -> str:
    """The library's text; that of the mechanism is more precise, if there is one."""
    detail = _words(minor, MECHANISM_CODE) if minor else ""
    return detail or _words(major, GSS_CODE)


def _words(code: int, kind: int) -> str:
    minor, more, out = c_uint32(), c_uint32(), _Bytes()
    texts: list[str] = []
    while not texts or more.value:
        library().gss_display_status(
            byref(minor),
            c_uint32(code),
            c_int(kind),
            byref(_OIDS[KERBEROS]),
            byref(more),
            byref(out),
        )
        texts.append(_taken(out).decode(errors="replace"))
    return "; ".join(filter(None, texts))
