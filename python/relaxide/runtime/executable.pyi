from collections.abc import Callable
from typing import Any

from . import Function, Module

class Executable:
    mod: Module
    def __init__(self, mod: Module) -> None: ...
    def __getitem__(self, name: str) -> Function: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def jit(
        self, *, fcompile: Callable[..., Any] | None = None, addons: list[str] | None = None, force_recompile: bool = False, **kwargs: Any
    ) -> Module: ...
    def export_library(
        self,
        file_name: str,
        *,
        fcompile: Callable[..., Any] | None = None,
        addons: list[str] | None = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> Any: ...

def __getattr__(name: str) -> Any: ...
