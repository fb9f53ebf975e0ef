"""Models on other machines: connect to a server, upload, load, run and time there.

The names are those of ``tvm.rpc`` 0.27. Its protocol has no security: whoever reaches a server of it runs code there. Where that
matters use :func:`connect_secure` and ``relaxide rpc serve --keys``; see ``docs/rpc.md``.
"""

from .client import LocalSession, PopenSession, RemoteCall, RPCSession, TrackerSession
from .client import connect, connect_command, connect_secure, connect_tracker, start_call
from .minrpc import with_minrpc
from .server import Server

__all__ = [
    "LocalSession",
    "PopenSession",
    "RPCSession",
    "RemoteCall",
    "Server",
    "TrackerSession",
    "connect",
    "connect_command",
    "connect_secure",
    "connect_tracker",
    "start_call",
    "with_minrpc",
]
