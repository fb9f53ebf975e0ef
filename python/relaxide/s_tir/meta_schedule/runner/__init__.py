"""Runners: they measure the libraries that builders made."""

from .config import EvaluatorConfig, RPCConfig
from .local_runner import LocalRunner, LocalRunnerFuture
from .rpc_runner import RPCRunner
from .runner import PyRunner, PyRunnerFuture, Runner, RunnerFuture, RunnerInput, RunnerResult, create

__all__ = ["EvaluatorConfig", "LocalRunner", "LocalRunnerFuture", "PyRunner", "PyRunnerFuture", "RPCConfig", "RPCRunner", "Runner"]
__all__ += ["RunnerFuture", "RunnerInput", "RunnerResult", "create"]
