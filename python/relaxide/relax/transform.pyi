from collections.abc import Callable
from typing import Any

# Passes are made when they are asked for: `transform.FuseOps()`.
def __getattr__(name: str) -> Callable[..., Any]: ...
