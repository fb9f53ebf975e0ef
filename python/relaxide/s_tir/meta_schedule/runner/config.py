"""How kernels are measured, and where."""

import os
from typing import NamedTuple, Optional, Union


class EvaluatorConfig(NamedTuple):
    """How often a kernel is run: ``repeat`` times ``number`` runs, of which each takes ``min_repeat_ms`` milliseconds or more."""

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    @staticmethod
    def _normalized(config):
        return EvaluatorConfig() if config is None else EvaluatorConfig(*config)


class RPCConfig(NamedTuple):
    """Where machines are: a tracker's address, and the name of the devices. What is not given comes from the environment:
    ``TVM_TRACKER_HOST``, ``TVM_TRACKER_PORT``, ``TVM_TRACKER_KEY``."""

    tracker_host: Optional[str] = None
    tracker_port: Union[None, int, str] = None
    tracker_key: Optional[str] = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    @staticmethod
    def _normalized(config):
        config = RPCConfig() if config is None else config
        names = (("tracker_host", "TVM_TRACKER_HOST"), ("tracker_port", "TVM_TRACKER_PORT"), ("tracker_key", "TVM_TRACKER_KEY"))
        values = {field: getattr(config, field) or os.environ.get(variable) for field, variable in names}
        for field, variable in names:
            if values[field] is None:
                raise ValueError(f"RPCConfig.{field} is not provided. Please provide it explicitly, or set environment variable {variable}")
        return RPCConfig(values["tracker_host"], int(values["tracker_port"]), values["tracker_key"], *config[3:])

    def connect_tracker(self):
        """The tracker. A RuntimeError where it does not answer."""
        from .... import rpc

        config = RPCConfig._normalized(self)
        try:
            return rpc.connect_tracker(config.tracker_host, config.tracker_port)
        except Exception as error:
            raise RuntimeError(f"no tracker answers at {config.tracker_host}:{config.tracker_port}: {error}") from error

    def connect_server(self):
        """A session with one of the devices."""
        config = RPCConfig._normalized(self)
        tracker = config.connect_tracker()
        return tracker.request(config.tracker_key, priority=config.session_priority, session_timeout=config.session_timeout_sec)

    def count_num_servers(self, allow_missing=True):
        """How many devices of that name the tracker knows; none is a RuntimeError unless it is allowed."""
        config = RPCConfig._normalized(self)
        servers = config.connect_tracker().summary()["server_info"]
        count = sum(f"server:{config.tracker_key}" == server["key"] for server in servers)
        if not count and not allow_missing:
            raise RuntimeError(f"the tracker knows no device {config.tracker_key!r}")
        return count


__all__ = ["EvaluatorConfig", "RPCConfig"]
