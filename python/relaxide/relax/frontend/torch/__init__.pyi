from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....ir.module import IRModule
from ....ir.transform import Pass

def from_exported_program(
    exported_program: Any,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    run_ep_decomposition: bool = True,
) -> IRModule: ...
def from_fx(
    model: Any,
    input_info: Sequence[tuple[Sequence[int], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, Callable[..., Any]] | None = None,
    default_image_layout: str = "NCHW",
) -> IRModule: ...
def relax_dynamo(
    pipeline: Pass | None = None, custom_convert_map: Mapping[str, Callable[..., Any]] | None = None
) -> Callable[..., Any]: ...
def dynamo_capture_subgraphs(model: Any, *params: Any, **kwargs: Any) -> IRModule: ...
def __getattr__(name: str) -> Any: ...
