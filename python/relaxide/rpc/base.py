"""What both ends of the protocol share: numbers, keys, JSON on a socket."""

import errno
import json
import random
import socket
import struct
import time

RPC_MAGIC = 0xFF271
RPC_TRACKER_MAGIC = 0x2F271
RPC_CODE_SUCCESS = RPC_MAGIC + 0
RPC_CODE_DUPLICATE = RPC_MAGIC + 1
RPC_CODE_MISMATCH = RPC_MAGIC + 2
#: What a device of a session adds to its kind, once more for each session before it.
RPC_SESS_MASK = 128
#: The longest message of a tracker.
_MAX_MESSAGE = 1 << 20


class TrackerCode:
    """What a tracker is asked."""

    FAIL = -1
    SUCCESS = 0
    PING = 1
    STOP = 2
    PUT = 3
    REQUEST = 4
    UPDATE_INFO = 5
    SUMMARY = 6
    GET_PENDING_MATCHKEYS = 7


def get_addr_family(addr):
    """The family of the first address that a host has."""
    return socket.getaddrinfo(addr[0], addr[1], 0, 0, socket.IPPROTO_TCP)[0][0]


def recvall(sock, nbytes):
    """That many bytes."""
    parts = []
    while nbytes > 0:
        part = sock.recv(min(nbytes, 1 << 16))
        if not part:
            raise OSError("connection reset")
        nbytes -= len(part)
        parts.append(part)
    return b"".join(parts)


def sendjson(sock, data):
    """Send a value as JSON behind its length."""
    text = json.dumps(data).encode()
    sock.sendall(struct.pack("<i", len(text)) + text)


def recvjson(sock):
    """Receive a value as JSON behind its length."""
    (size,) = struct.unpack("<i", recvall(sock, 4))
    if not 0 < size <= _MAX_MESSAGE:
        raise OSError(f"a message of {size} bytes; it may have {_MAX_MESSAGE}")
    return json.loads(recvall(sock, size).decode())


def random_key(prefix, delimiter=":", cmap=None):
    """A random key with a prefix, which is not in ``cmap``."""
    while True:
        key = prefix + delimiter + str(random.SystemRandom().random())
        if not cmap or key not in cmap:
            return key


def split_random_key(key, delimiter=":"):
    """The prefix of such a key, and its random part."""
    prefix, _, rest = key.rpartition(delimiter)
    return prefix, rest


def connect_with_retry(addr, timeout=60, retry_period=5):
    """A connection to an address, tried again for a while if it is refused."""
    begin = time.time()
    while True:
        try:
            sock = socket.socket(get_addr_family(addr), socket.SOCK_STREAM)
            sock.connect(addr)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            if error.args[0] not in (errno.ECONNREFUSED,):
                raise
            if time.time() - begin > timeout:
                raise RuntimeError(f"Failed to connect to server {addr!s}") from error
            time.sleep(retry_period)
