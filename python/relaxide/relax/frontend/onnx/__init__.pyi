from collections.abc import Mapping, Sequence
from typing import Any

from ....ir.module import IRModule

def from_onnx(
    model: Any,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    dtype_dict: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
    *,
    dims: Mapping[str, int | tuple[int, int | None]] | None = None,
) -> IRModule: ...
def __getattr__(name: str) -> Any: ...
