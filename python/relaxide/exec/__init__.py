"""Programs to start with ``python -m relaxide.exec.NAME``: servers of remote calls, trackers, proxies."""
