from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..target import Target
from .module import IRModule

class PassInfo:
    opt_level: int
    name: str
    required: list[str]
    traceable: bool
    def __init__(self, opt_level: int, name: str, required: Sequence[str] | None = None, traceable: bool = False) -> None: ...

class PassContext:
    opt_level: int
    instruments: list[Any]
    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None: ...
    @staticmethod
    def current() -> PassContext: ...
    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]: ...
    @property
    def target(self) -> Target | None: ...
    def override_instruments(self, instruments: Sequence[Any] | None) -> None: ...
    def __enter__(self) -> PassContext: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None: ...

class Pass:
    @property
    def info(self) -> PassInfo: ...
    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule: ...

class ModulePass(Pass): ...
class FunctionPass(Pass): ...
class PrimFuncPass(Pass): ...
class DataflowBlockPass(Pass): ...

class Sequential(Pass):
    passes: list[Pass]
    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None: ...

def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., Any]: ...
def PrintIR(header: str = "") -> ModulePass: ...
def __getattr__(name: str) -> Any: ...
