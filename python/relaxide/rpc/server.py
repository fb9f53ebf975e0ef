"""The server's end."""

import os
import pickle
import subprocess
import sys
import tempfile

from .. import _core


class Server:
    """A server of TVM's protocol, which has no security: whoever reaches its port runs code on this machine.

    Each client gets a process of its own. The address is this machine's alone where nothing else is said; TVM's default is every
    address. ``no_fork`` and ``timeout`` have no effect: sessions are never forked, and accepting never ends.
    """

    def __init__(
        self,
        host="127.0.0.1",
        port=9091,
        port_end=9199,
        is_proxy=False,
        tracker_addr=None,
        key="",
        load_library=None,
        custom_addr=None,
        silent=False,
        no_fork=False,
        server_init_callback=None,
        reuse_addr=True,
        timeout=None,
        sessions=None,
    ):
        self.host, self.port, self._server, self._process, self._callback = host, port, None, None, None
        if tracker_addr and not key:
            raise ValueError("a server that a tracker knows needs a key")
        libraries = [os.path.abspath(path) for path in (load_library or "").split(":") if path]
        command = [sys.executable, "-m", "relaxide.rpc"]
        if server_init_callback is not None:
            command += ["--init", self._kept(server_init_callback)]
        if is_proxy:
            words = ["serve", "--through-proxy", host if host.startswith("ws://") else f"{host}:{port}", "--key", key]
            words += ["--load-library", ":".join(libraries)] if libraries else []
            self._process = subprocess.Popen(command + words, stdout=subprocess.DEVNULL)
            return
        self._server = _core.RpcServer(
            [*command, "session"],
            host=host,
            port=port,
            port_end=max(port_end, port + 1),
            key=key,
            tracker=tuple(tracker_addr) if tracker_addr else None,
            custom_addr=custom_addr,
            libraries=libraries,
            reuse=reuse_addr,
            sessions=sessions or (1 if tracker_addr else 256),
            silent=silent,
        )
        self.port = self._server.port

    def _kept(self, callback):
        """A file from which each session's process has the callback."""
        try:
            import cloudpickle as pickler
        except ImportError:
            pickler = pickle
        handle, self._callback = tempfile.mkstemp(prefix="relaxide-rpc-")
        with os.fdopen(handle, "wb") as file:
            file.write(pickler.dumps(callback))
        return self._callback

    def terminate(self):
        """End the server and its sessions."""
        if self._server is not None:
            self._server.terminate()
            self._server = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._callback is not None:
            os.unlink(self._callback)
            self._callback = None

    def __del__(self):
        try:
            self.terminate()
        except (AttributeError, ImportError, OSError, TypeError):
            pass
