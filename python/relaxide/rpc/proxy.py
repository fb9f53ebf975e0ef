"""The proxy: leads clients to servers that they cannot reach."""

from .. import _core
from .server import Server


class Proxy:
    """A proxy in this process, in threads beside the interpreter. With ``web_clients`` clients come by WebSocket too, and not only servers;
    ``web_origins`` are origins of pages that may connect besides those that the proxy gives (``index_page``)."""

    def __init__(
        self,
        host,
        port=9091,
        port_end=9199,
        web_port=0,
        timeout_client=600,
        timeout_server=600,
        tracker_addr=None,
        index_page=None,
        resource_files=None,
        *,
        web_clients=False,
        web_origins=(),
    ):
        self._proxy = _core.RpcProxy(
            host=host,
            port=port,
            port_end=max(port_end, port + 1),
            web_port=web_port,
            web_clients=web_clients,
            web_origins=list(web_origins),
            index_page=index_page,
            resource_files=list(resource_files or ()),
            tracker=tuple(tracker_addr) if tracker_addr else None,
            timeout_client=timeout_client,
            timeout_server=timeout_server,
        )
        self.host, self.port = host, self._proxy.port

    def terminate(self):
        """End it."""
        self._proxy.terminate()

    def __del__(self):
        if hasattr(self, "_proxy"):
            self._proxy.terminate()


def websocket_proxy_server(url, key=""):
    """Serve behind a proxy through a WebSocket, until the process ends."""
    import time

    server = Server(url, is_proxy=True, key=key)
    while server._process.poll() is None:
        time.sleep(0.2)
