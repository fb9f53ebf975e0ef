"""A tracker and a server of this machine, for runs that go through remote calls."""

from ....rpc.server import Server
from ....rpc.tracker import Tracker


class LocalRPC:
    """A tracker with one server, from here to the end of the ``with`` block::

        with LocalRPC() as rpc:
            config = RPCConfig(rpc.tracker_host, rpc.tracker_port, rpc.tracker_key)

    Parameters
    ----------
    tracker_key : str
        What the server is asked for by.
    silent : bool
        Print nothing.
    no_fork : bool
        Serve in this process.
    """

    #: Where the tracker listens, and what it knows the server as.
    tracker_host: str
    tracker_port: int
    tracker_key: str

    def __init__(self, tracker_key="key", silent=False, no_fork=False):
        self.tracker = Tracker(silent=silent, port=9190, port_end=12345)
        address = ("127.0.0.1", self.tracker.port)
        options = {"tracker_addr": address, "key": tracker_key, "silent": silent, "no_fork": no_fork}
        self.server = Server("127.0.0.1", port=9190, port_end=12345, **options)
        self.tracker_host, self.tracker_port, self.tracker_key = *address, tracker_key

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.tracker.terminate()
