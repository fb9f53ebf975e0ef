from collections.abc import Mapping
from typing import Any, Literal

from .ir.transform import Pass
from .relax.executable import VMExecutable
from .runtime import Tensor
from .target import Target

def compile(
    mod: Any,
    target: str | Mapping[str, Any] | Target | None = None,
    *,
    relax_pipeline: str | Pass | None = "default",
    tir_pipeline: str | Pass | None = "default",
    exec_mode: Literal["bytecode", "compiled"] = "bytecode",
    params: Mapping[str, list[Tensor]] | None = None,
) -> VMExecutable: ...
def build(mod: Any, target: str | Mapping[str, Any] | Target | None = None, pipeline: str | Pass | None = "default") -> VMExecutable: ...
