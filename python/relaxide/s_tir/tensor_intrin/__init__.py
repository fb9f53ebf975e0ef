"""Instructions of processors that multiply and add small integers, as intrinsics for ``Schedule.tensorize``.

Importing the package makes them known by name: those of :mod:`x86`, :mod:`arm_cpu`, :mod:`hexagon` and the ones that several vendors
have (:mod:`dot_product_common`). Each is a product of a short vector with a few rows, added to what is there. Of :mod:`cuda` there are the names.
"""

from .._tensor_intrin import TensorIntrin
from . import arm_cpu, cuda, dot_product_common, hexagon, x86

__all__ = ["TensorIntrin", "arm_cpu", "cuda", "dot_product_common", "hexagon", "x86"]
