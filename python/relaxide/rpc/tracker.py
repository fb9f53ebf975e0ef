"""The tracker: servers offer themselves, clients ask for one by key."""

from .. import _core
from .base import RPC_TRACKER_MAGIC

#: The longest message that it takes, in bytes.
MAX_TRACKER_MSG_BYTES = 1 << 20


class Tracker:
    """A tracker in this process, in threads beside the interpreter. ``timeout`` has no effect."""

    def __init__(
        self, host="127.0.0.1", port=9190, port_end=9199, silent=False, reuse_addr=True, timeout=None, state=None
    ):
        self._tracker = _core.RpcTracker(
            host=host, port=port, port_end=max(port_end, port + 1), reuse=reuse_addr, silent=silent, state=state
        )
        self.host, self.port, self.stop_key = host, self._tracker.port, self._tracker.stop_key

    def metrics(self):
        """How it stands, in OpenMetrics form. Relaxide's own."""
        return self._tracker.metrics()

    def terminate(self):
        """End it."""
        self._tracker.terminate()

    def __del__(self):
        if hasattr(self, "_tracker"):
            self._tracker.terminate()
