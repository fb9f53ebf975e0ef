"""The client's end."""

import os
import selectors
import socket
import struct
import time

from .. import _core
from .. import error as _errors  # noqa: F401  (registers the kinds of remote errors)
from ..ffi import get_global_func
from ..runtime import device as _device
from . import base


#: Seconds for which a tracker may be silent before it is asked whether it is there, and then again until it counts as hanging.
PATIENCE = 10.0


#: Seconds that a call which is cancelled has to end, before its session ends with it.
GRACE = 5.0


class _TrackerHangs(TimeoutError):
    """Another try would hang too."""


class RPCSession:
    """A session with a server. Made by :func:`connect` and what is like it."""

    def __init__(self, sess, again=None):
        self._sess = sess
        #: Makes a session in the same way.
        self._again = again
        self._tbl_index = get_global_func("rpc.SessTableIndex")(sess)
        self._remote_funcs = {}

    def _function(self, name):
        if name not in self._remote_funcs:
            self._remote_funcs[name] = self.get_function(f"tvm.rpc.server.{name}")
        return self._remote_funcs[name]

    def system_lib(self):
        """The module of what is linked into the server."""
        return self.get_function("ffi.SystemLib")()

    def get_function(self, name):
        """A global function of the server; an AttributeError if it has none of the name."""
        return self._sess.get_function(name)

    def device(self, dev_type, dev_id=0):
        """A device of the server."""
        there = _device(dev_type, dev_id)
        kind = there.dlpack_device_type() + (self._tbl_index + 1) * base.RPC_SESS_MASK
        return _device(kind, there.index)

    def upload(self, data, target=None):
        """Put a file, or the bytes of a bytearray, into the session's folder."""
        if isinstance(data, (bytearray, bytes)):
            if not target:
                raise ValueError("target must present when file is a bytearray")
            blob = data
        else:
            with open(data, "rb") as file:
                blob = file.read()
            target = target or os.path.basename(data)
        self._function("upload")(target, bytes(blob))

    def download(self, path):
        """The bytes of a file of the session's folder."""
        return bytearray(self._function("download")(path))

    def remove(self, path):
        """Remove a file of the session's folder."""
        self._function("remove")(path)

    def listdir(self, path):
        """The files in the session's folder, each with a comma behind it."""
        return self._function("listdir")(path)

    def load_module(self, path):
        """Load a file of the session's folder; the module stays there, its functions are called from here."""
        return get_global_func("rpc.LoadRemoteModule")(self._sess, path)

    def download_linked_module(self, path):
        """Link a file of the session's folder there, and get the library."""
        return bytearray(self._function("download_linked_module")(path))

    def close(self):
        """End the session now, from any thread. Calls that run in it fail, and the server ends what they compute. Relaxide's own."""
        self._sess.get_function("CloseRPCConnection")()

    def reconnect(self, timeout=30.0):
        """A new session with the same server, made in the way in which this one was; this one is closed.

        What this one had on the far side is gone with it: nothing is done again unasked, and files, tensors and functions are to be sent
        and asked for anew. A server that is not there yet is tried again until ``timeout`` seconds are over. Relaxide's own.
        """
        if self._again is None:
            raise ValueError("this session was made in a way that cannot be gone again: ask the tracker, or connect anew")
        try:
            self.close()
        except (OSError, RuntimeError):
            # It was lost, and is as good as closed.
            pass
        end = time.monotonic() + timeout
        pause = 0.05
        while True:
            try:
                return self._again()
            except PermissionError:
                # Who is not let in will not be let in later either.
                raise
            except (OSError, RuntimeError) as error:
                if time.monotonic() + pause > end:
                    raise TimeoutError(f"the server did not come back within {timeout:g} seconds: {error}") from error
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def set_timeout(self, seconds):
        """Say how many seconds a reply may take; None: as long as it takes. A call without one in time fails with a TimeoutError, and the
        session is over. Where nothing is said it is the time of the session, if that has one, and 40 seconds without a sign of life from
        servers of Relaxide's own protocol, which give one every ten. Relaxide's own."""
        get_global_func("rpc.SetTimeout")(self._sess, seconds)

    def copy_ahead(self, source, target):
        """Send a tensor of this process to one of the server's, of as many bytes, without waiting: what is asked next is asked behind it,
        and the session computes on meanwhile. The function that is returned says whether it has arrived, and raises the error that became
        of it. Relaxide's own."""
        return get_global_func("rpc.CopyAhead")(self._sess, source, target)

    def settle(self):
        """Wait for all that was sent ahead. Relaxide's own."""
        get_global_func("rpc.SettleCopies")(self._sess)

    def cancel(self, grace=GRACE):
        """Cancel the calls that run in the session and those that wait for their turn, from any thread. They fail with a
        :class:`~relaxide.error.CancelledError`, and the session goes on. A virtual machine stops between two instructions, and a kernel that
        computes ends first; a call that does not end within ``grace`` seconds takes the session with it. TVM's protocol cannot cancel a
        call: there it is a NotImplementedError, and :meth:`close` ends the session with its calls. Relaxide's own."""
        get_global_func("rpc.CancelCalls")(self._sess, float(grace))

    def cpu(self, dev_id=0):
        """A CPU of the server."""
        return self.device("cpu", dev_id)

    def cuda(self, dev_id=0):
        """A CUDA device of the server."""
        return self.device("cuda", dev_id)

    def cl(self, dev_id=0):
        """An OpenCL device of the server."""
        return self.device("opencl", dev_id)

    #: Relaxide's own spelling.
    opencl = cl

    def vulkan(self, dev_id=0):
        """A Vulkan device of the server."""
        return self.device("vulkan", dev_id)

    def metal(self, dev_id=0):
        """A Metal device of the server."""
        return self.device("metal", dev_id)

    def rocm(self, dev_id=0):
        """A ROCm device of the server."""
        return self.device("rocm", dev_id)

    def ext_dev(self, dev_id=0):
        """An extension device of the server."""
        return self.device("ext_dev", dev_id)

    def hexagon(self, dev_id=0):
        """A Hexagon device of the server."""
        return self.device("hexagon", dev_id)

    def webgpu(self, dev_id=0):
        """A WebGPU device of the server."""
        return self.device("webgpu", dev_id)


class RemoteCall:
    """A call that runs while this process does something else; :func:`start_call` begins it. Relaxide's own."""

    def __init__(self, function, args):
        self._call = get_global_func("rpc.StartCall")(function, *args)

    def done(self):
        """Whether it is over, however it ended."""
        return bool(self._call("wait", 0.0))

    def result(self, timeout=None):
        """What it returned, or raise what it failed with. A TimeoutError if it is not over in time; it goes on then."""
        if not self._call("wait", None if timeout is None else float(timeout)):
            raise TimeoutError(f"the call is not over after {timeout:g} seconds")
        return self._call("value")

    def cancel(self, grace=GRACE):
        """Cancel this call alone, as :meth:`RPCSession.cancel` cancels all. Its result is a CancelledError then, unless it was over."""
        self._call("cancel", float(grace))


def start_call(function, *args):
    """Call a function of a session without waiting. Gives a :class:`RemoteCall`, which can be waited for and cancelled. Relaxide's own."""
    return RemoteCall(function, args)


class LocalSession(RPCSession):
    """A session whose server is a thread of this process."""

    def __init__(self):
        super().__init__(get_global_func("rpc.LocalSession")())


class PopenSession(RPCSession):
    """A session with a child process: an executable, given by its path or as bytes, that serves through two pipes."""

    def __init__(self, binary):
        if not isinstance(binary, (bytes, bytearray)):
            binary = os.path.abspath(binary)
        else:
            binary = bytes(binary)
        super().__init__(get_global_func("rpc.PopenSession")(binary))


class TrackerSession:
    """A connection to a tracker."""

    def __init__(self, addr):
        self._addr = addr
        self._sock = None
        self._connect()

    def __del__(self):
        self.close()

    def _connect(self):
        self._sock = base.connect_with_retry(self._addr)
        self._sock.settimeout(PATIENCE)
        self._sock.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        try:
            (magic,) = struct.unpack("<i", base.recvall(self._sock, 4))
        except TimeoutError as error:
            raise _TrackerHangs(f"the tracker {self._addr!s} hangs: it does not greet") from error
        if magic != base.RPC_TRACKER_MAGIC:
            raise RuntimeError(f"{self._addr!s} is not RPC Tracker")

    def close(self):
        """End the connection."""
        if self._sock:
            self._sock.close()
            self._sock = None

    def _free(self):
        """The answer to a request, whenever a server is free. Whether the tracker is still there is asked now and then."""
        asked = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            while True:
                if selector.select(PATIENCE):
                    value = base.recvjson(self._sock)
                    if not isinstance(value, int):
                        return value
                    asked = False
                elif asked:
                    raise _TrackerHangs(f"the tracker {self._addr!s} hangs: it does not say that it is there")
                else:
                    base.sendjson(self._sock, [base.TrackerCode.PING])
                    asked = True

    def summary(self):
        """The queues and servers of the tracker."""
        base.sendjson(self._sock, [base.TrackerCode.SUMMARY])
        value = base.recvjson(self._sock)
        if value[0] != base.TrackerCode.SUCCESS:
            raise RuntimeError(f"Invalid return value {value!s}")
        return value[1]

    def text_summary(self):
        """The same as a table."""
        data = self.summary()
        servers = data["server_info"]
        lines = ["Server List", "-" * 30, "server-address           key", "-" * 30]
        for server in sorted(servers, key=lambda info: info["key"]):
            host, port = server["addr"]
            lines.append(f"{f'{host}:{port}':<24} {server['key']}")
        lines += ["-" * 30, "", "Queue Status"]
        names = sorted(data["queue_info"])
        width = max([len("key"), *map(len, names)])
        rule = "-" * (width + 26)
        lines += [rule, f"{'key':<{width}}   total  free  pending", rule]
        for name in names:
            counts = data["queue_info"][name]
            # A key may have colons itself.
            total = sum(info["key"].partition(":")[2] == name for info in servers)
            lines.append(f"{name:<{width}}   {total:<5}  {counts['free']:<4}  {counts['pending']}")
        return "\n".join([*lines, rule]) + "\n"

    def request(self, key, priority=1, session_timeout=0, max_retry=5, session_constructor_args=None):
        """A session with a server of a key, as soon as one is free."""
        last = None
        for _ in range(max_retry):
            try:
                if self._sock is None:
                    self._connect()
                base.sendjson(self._sock, [base.TrackerCode.REQUEST, key, "", priority])
                value = self._free()
                if value[0] != base.TrackerCode.SUCCESS:
                    raise RuntimeError(f"Invalid return value {value!s}")
                url, port, match_key = value[1][:3]
                return connect(url, port, match_key, session_timeout, session_constructor_args)
            except _TrackerHangs:
                self.close()
                raise
            except socket.error as error:
                self.close()
                last = error
            except TypeError:
                raise
            except RuntimeError as error:
                last = error
        raise RuntimeError(f"Cannot request {key} after {max_retry} retry, last_error:{last!s}")

    def request_and_run(self, key, func, priority=1, session_timeout=0, max_retry=2):
        """Run ``func(session)``, again with another server if the session is lost."""
        last = None
        for _ in range(max_retry):
            begin = time.time()
            try:
                session = self.request(key, priority=priority, session_timeout=session_timeout)
                begin = time.time()
                return func(session)
            except RuntimeError as error:
                if session_timeout and time.time() - begin > session_timeout - 2:
                    raise RuntimeError(f"Session timeout when running {func.__name__}") from error
                last = error
        raise RuntimeError(f"Failed to run on {key} after {max_retry} retry, last_error:{last!s}")


def connect(url, port, key="", session_timeout=0, session_constructor_args=None, enable_logging=False):
    """A session with a server of TVM's protocol.

    ``session_constructor_args`` names a function of the server that makes the session, with its arguments, for example
    ``["rpc.Connect", host, port, key, False]`` for a server behind that server. ``enable_logging`` has no effect.
    """
    if session_timeout:
        key += f" -timeout={session_timeout}"
    args = session_constructor_args if session_constructor_args else []
    if not isinstance(args, (list, tuple)):
        raise TypeError("Expect the session constructor to be a list or tuple")

    def again():
        return RPCSession(get_global_func("rpc.Connect")(url, port, key, enable_logging, *args), again)

    return again()


def connect_secure(url, port, key="", session_timeout=0, *, identity=None, server=None, token=None):
    """A session with a server of Relaxide's own protocol: TLS 1.3, both ends known to each other.

    Parameters
    ----------
    identity : str, optional
        The file of this client's key, which ``relaxide rpc keygen --out`` makes.
    server : str, optional
        The fingerprint of the server's key, which the server prints.
    token : str, optional
        The file of a token that both ends know.
    """

    def again():
        module = _core.rpc_connect_secure(
            url, port, key, session_timeout=session_timeout or None, identity=identity, server=server, token=token
        )
        return RPCSession(module, again)

    return again()


def connect_command(*words):
    """A session with the far end of a command, which serves through its standard input and output and secures it, for example
    ``connect_command("ssh", "board", "relaxide-rpc", "pipe", "--own")``. Relaxide's own."""

    def again():
        return RPCSession(get_global_func("rpc.ConnectCommand")(*words), again)

    return again()


def connect_tracker(url, port):
    """A connection to a tracker."""
    return TrackerSession((url, port))
