# Made by `python -m relaxide.relax.op._stub` of the compiler's registry of operators.
from collections.abc import Sequence
from typing import Any

from ...ir.expr import Call, Expr, ExprWithOp as PrimExpr
from ...ir.type import Type
from ._calls import assert_op as assert_op
from ._calls import call_builtin_with_ctx as call_builtin_with_ctx
from ._calls import call_dps_packed as call_dps_packed
from ._calls import call_inplace_packed as call_inplace_packed
from ._calls import call_packed as call_packed
from ._calls import call_pure_packed as call_pure_packed
from ._calls import call_tir as call_tir
from ._calls import call_tir_inplace as call_tir_inplace
from ._calls import hint_on_device as hint_on_device
from ._calls import invoke_closure as invoke_closure
from ._calls import invoke_pure_closure as invoke_pure_closure
from ._calls import linear as linear
from ._calls import make_closure as make_closure
from ._calls import masked_fill as masked_fill
from ._calls import to_vdevice as to_vdevice
from ._gradients import register_gradient as register_gradient

def abs(x: Expr) -> Call:
    """Absolute value."""
def acos(x: Expr) -> Call:
    """Arc cosine."""
def acosh(x: Expr) -> Call:
    """Inverse hyperbolic cosine."""
def add(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 + x2."""
def arange(start: Expr | int | float, end: Expr | int | float | None = None, step: Expr | int | float = 1, dtype: str | None = None) -> Call:
    """start, start + step … up to end."""
def argmax(x: Expr, axis: int | None = None, keepdims: bool = False) -> Call:
    """Index of the largest value, the first of equal ones, as int64."""
def argmin(x: Expr, axis: int | None = None, keepdims: bool = False) -> Call:
    """Index of the smallest value, the first of equal ones, as int64."""
def argsort(data: Expr, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Call:
    """Indices that sort along a dimension."""
def asin(x: Expr) -> Call:
    """Arc sine."""
def asinh(x: Expr) -> Call:
    """Inverse hyperbolic sine."""
def astype(x: Expr, dtype: str) -> Call:
    """Each element converted. Floats become integers by truncation, and bools by comparing with zero."""
def atan(x: Expr) -> Call:
    """Arc tangent."""
def atan2(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Angle of the point (x2, x1)."""
def atanh(x: Expr) -> Call:
    """Inverse hyperbolic tangent."""
def bitwise_and(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Bit by bit and."""
def bitwise_not(x: Expr) -> Call:
    """Every bit flipped."""
def bitwise_or(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Bit by bit or."""
def bitwise_xor(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Bit by bit exclusive or."""
def broadcast_to(x: Expr, shape: Expr | Sequence[int | PrimExpr]) -> Call:
    """x repeated to the given dimensions."""
def bucketize(input_tensor: Expr, boundaries: Expr, out_int32: bool = False, right: bool = False) -> Call:
    """For each element how many bounds lie below it (with `right`: not above it): the number of its bucket."""
def call_py_func(func_name: Expr, args: Expr) -> Call:
    """Calls a function of the front end, by name."""
def call_tir_with_grad(func: Expr, args: Expr, tir_vars: Expr | Sequence[int | PrimExpr] | None = None, *, te_grad_name: str, te_grad_kwargs: Any | None = None) -> Call:
    """Calls a kernel whose gradient another one computes."""
def ceil(x: Expr) -> Call:
    """Rounded up."""
def clip(x: Expr, min: Expr | int | float, max: Expr | int | float) -> Call:
    """Each element brought between two bounds. A bound that the dtype cannot hold does not bind."""
def collapse_sum_like(data: Expr, collapse_target: Expr) -> Call:
    """The sum over all dimensions that broadcasting the smaller shape to the tensor's would repeat."""
def collapse_sum_to(data: Expr, shape: Expr | Sequence[int | PrimExpr]) -> Call:
    """The sum over all dimensions that broadcasting the smaller shape to the tensor's would repeat."""
def concat(tensors: Expr | Sequence[Expr], axis: int = 0) -> Call:
    """Tensors joined along one dimension."""
def cos(x: Expr) -> Call:
    """Cosine."""
def cosh(x: Expr) -> Call:
    """Hyperbolic cosine."""
def cumprod(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> Call:
    """Running product."""
def cumsum(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> Call:
    """Running sum."""
def dequantize(data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: str = "float32") -> Call:
    """(x - zero_point) * scale; in half precision what is beyond its range becomes its bound."""
def divide(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 / x2; integers are rounded towards zero."""
def dynamic_strided_slice(x: Expr, begin: Expr, end: Expr, strides: Expr) -> Call:
    """A slice along every dimension whose bounds are known when the program runs only."""
def einsum(operands: Expr | Sequence[Expr], subscripts: str) -> Call:
    """Einstein's notation: letters name dimensions of the operands; those that the result lacks are summed over. Without an arrow the result has the letters that occur once, in alphabetical order. `...` stands for any further dimensions, which are broadcast."""
def equal(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 == x2."""
def erf(x: Expr) -> Call:
    """Gauss error function."""
def ewise_fma(x1: Expr, x2: Expr, x3: Expr) -> Call:
    """x1 * x2 + x3."""
def exp(x: Expr) -> Call:
    """e to the power of x."""
def expand_dims(x: Expr, axis: int | Sequence[int]) -> Call:
    """Dimensions of size one are inserted."""
def eye(n: Expr | int | float, m: Expr | int | float | None = None, k: Expr | int | float = 0, dtype: str | None = None) -> Call:
    """Ones on a diagonal, zeros elsewhere."""
def eye_like(x: Expr, k: Expr | int | float = 0, dtype: str | None = None) -> Call:
    """Ones on a diagonal, zeros elsewhere, in the shape of x."""
def flatten(x: Expr) -> Call:
    """The same elements, in order, in one dimension."""
def flip(data: Expr, axis: int) -> Call:
    """Reversed along one dimension."""
def floor(x: Expr) -> Call:
    """Rounded down."""
def floor_divide(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 / x2, rounded down."""
def floor_mod(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Remainder of the division that rounds down."""
def full(shape: Expr | Sequence[int | PrimExpr], fill_value: Expr | int | float | bool, dtype: str | None = None) -> Call:
    """One value everywhere."""
def full_like(x: Expr, fill_value: Expr | int | float | bool, dtype: str | None = None) -> Call:
    """One value in the shape of x."""
def gather_elements(data: Expr, indices: Expr, axis: int = 0) -> Call:
    """Element i, j … is x at i, indices[i, j …] … along one dimension."""
def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> Call:
    """Slices of x at the points whose coordinates lie in the last dimension of the indices."""
def greater(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 > x2."""
def greater_equal(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 >= x2."""
def hamming_window(window_size: Expr | int | float, periodic: Expr | int | float, alpha: Expr | int | float, beta: Expr | int | float, dtype: str) -> Call:
    """alpha - beta * cos(2 pi i / (n - 1))."""
def index_put(data: Expr, indices: Expr, values: Expr, accumulate: bool = False) -> Call:
    """A copy of data with values at the indices; of values for one place the last one counts."""
def index_tensor(data: Expr, indices: Expr | Sequence[Expr]) -> Call:
    """data[i, j, …] with tensors of indices, as NumPy indexes: their common shape takes the place of the indexed dimensions."""
def isfinite(x: Expr) -> Call:
    """Whether neither infinite nor NaN."""
def isinf(x: Expr) -> Call:
    """Whether infinite."""
def isnan(x: Expr) -> Call:
    """Whether NaN."""
def layout_transform(x: Expr, index_map: Any, pad_value: Any | None = None) -> Call:
    """Each element at the place that a map of indices gives it; the result is as large as the largest of them."""
def left_shift(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 shifted left by x2 bits."""
def less(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 < x2."""
def less_equal(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 <= x2."""
def log(x: Expr) -> Call:
    """Natural logarithm."""
def log_add_exp(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """log(exp(x1) + exp(x2)), without overflow."""
def logical_and(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Whether both are not zero."""
def logical_not(x: Expr) -> Call:
    """Whether zero."""
def logical_or(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Whether one is not zero."""
def logical_xor(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Whether just one is not zero."""
def matmul(x1: Expr, x2: Expr, out_dtype: str | None = None) -> Call:
    """Matrix product of the last two dimensions; those in front are broadcast. A vector on the left is a row, on the right a column, and its dimension is dropped from the result."""
def max(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Largest value."""
def maximum(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """The larger."""
def mean(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Average."""
def median(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """The element in the middle, the lower of two. Along a dimension: a tuple of it and of its index, as int64."""
def meshgrid(tensors: Expr | Sequence[Expr], indexing: str = "ij") -> Call:
    """The coordinates of a grid: for each vector a tensor of the grid's shape in which it runs along a dimension of its own."""
def min(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Smallest value."""
def minimum(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """The smaller."""
def mod(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """Remainder of the division that rounds towards zero."""
def multinomial_from_uniform(prob: Expr, uniform_sample: Expr, sample_indices: Expr, dtype: str = "int64") -> Call:
    """For each draw the first index at which the running sum of its distribution exceeds its number."""
def multiply(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 * x2."""
def negative(x: Expr) -> Call:
    """Sign changed, also that of zero."""
def nonzero(x: Expr) -> Call:
    """The indices of elements that are not zero: a column for each, a row for each dimension. A 0-d tensor counts as one of one dimension."""
def not_equal(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 != x2."""
def null_value() -> Call:
    """No value at all."""
def one_hot(indices: Expr, on_value: Expr | int | float, off_value: Expr | int | float, depth: int, axis: int = -1) -> Call:
    """A new dimension in which one value is on, at the index."""
def ones(shape: Expr | Sequence[int | PrimExpr], dtype: str | None = None) -> Call:
    """Ones."""
def ones_like(x: Expr, dtype: str | None = None) -> Call:
    """Ones in the shape of x."""
def outer(x1: Expr, x2: Expr) -> Call:
    """Products of every element of one vector with every element of another."""
def permute_dims(x: Expr, axes: int | Sequence[int] | None = None) -> Call:
    """Dimensions in another order."""
def power(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 to the power of x2."""
def print_(*values: Expr, format: str = "") -> Call:
    """Prints values when run."""
def prod(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Product."""
def quantize(data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: str = "int8") -> Call:
    """clip(round(x / scale) + zero_point), to the range of the result's dtype."""
def repeat(data: Expr, repeats: int, axis: int | None = None) -> Call:
    """Each element repeated along one dimension."""
def reshape(x: Expr, shape: Expr | Sequence[int | PrimExpr]) -> Call:
    """The same elements, in order, under other dimensions. One dimension may be -1: it follows from the others."""
def reverse_sequence(data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """Each sequence with its first elements, as many as its length says, in the opposite order."""
def right_shift(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 shifted right by x2 bits, keeping the sign."""
def round(x: Expr) -> Call:
    """Rounded to the nearest integer, ties to even."""
def rsqrt(x: Expr) -> Call:
    """One over the square root."""
def scatter_elements(data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update") -> Call:
    """Update i, j … goes to i, indices[i, j …] … along one dimension."""
def scatter_nd(data: Expr, indices: Expr, updates: Expr, reduction: str = "update") -> Call:
    """Slices of updates go to the points whose coordinates lie in the last dimension of the indices."""
def shape_of(expr: Expr) -> Call:
    """The shape of a tensor as a value."""
def shape_to_tensor(expr: Expr | Sequence[int | PrimExpr]) -> Call:
    """The dimensions of a shape as an int64 tensor."""
def sigmoid(x: Expr) -> Call:
    """1 / (1 + exp(-x))."""
def sign(x: Expr) -> Call:
    """-1, 0 or 1."""
def sin(x: Expr) -> Call:
    """Sine."""
def sinh(x: Expr) -> Call:
    """Hyperbolic sine."""
def size(expr: Expr) -> Call:
    """How many elements a tensor has, as a 0-d int64 tensor."""
def slice_scatter(input_tensor: Expr, src: Expr, start: Expr | int | float, end: Expr | int | float, step: Expr | int | float, axis: int = 0) -> Call:
    """A copy of a tensor in which a slice is replaced."""
def sort(x: Expr, axis: int = -1, descending: bool = False) -> Call:
    """Sorted along a dimension; equal elements keep their order, NaN counts as the largest."""
def split(x: Expr, indices_or_sections: Any, axis: int = 0) -> Call:
    """A tuple of slices along one dimension. Parts are equal but for a shorter last one."""
def sqrt(x: Expr) -> Call:
    """Square root."""
def square(x: Expr) -> Call:
    """x times x."""
def squeeze(x: Expr, axis: int | Sequence[int] | None = None) -> Call:
    """Dimensions of size one are dropped; a dimension of another size stays."""
def stack(tensors: Expr | Sequence[Expr], axis: int = 0) -> Call:
    """Tensors joined along a new dimension."""
def std(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Square root of the variance."""
def strided_slice(x: Expr, axes: Expr | Sequence[int | PrimExpr], begin: Expr | Sequence[int | PrimExpr], end: Expr | Sequence[int | PrimExpr], strides: Expr | Sequence[int | PrimExpr] | None = None, assume_inbound: bool = False) -> Call:
    """A regular part of a tensor, as Python slices it."""
def subtract(x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 - x2."""
def sum(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Sum."""
def take(x: Expr, indices: Expr, axis: int | None = None, mode: str = "fast") -> Call:
    """Slices along a dimension, by index; the dimension is replaced by those of the indices."""
def tan(x: Expr) -> Call:
    """Tangent."""
def tanh(x: Expr) -> Call:
    """Hyperbolic tangent."""
def tensor_to_shape(expr: Expr) -> Call:
    """The shape whose dimensions a tensor holds."""
def tile(data: Expr, repeats: int | Sequence[int]) -> Call:
    """The whole tensor repeated along dimensions."""
def topk(data: Expr, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32") -> Call:
    """The largest few along a dimension, in order, and where they are."""
def tril(x: Expr, k: Expr | int | float = 0) -> Call:
    """x below a diagonal, zero above."""
def triu(x: Expr, k: Expr | int | float = 0) -> Call:
    """x above a diagonal, zero below."""
def trunc(x: Expr) -> Call:
    """Rounded towards zero."""
def unique(x: Expr, sorted: Expr | int | float = True, return_index: Expr | int | float = False, return_inverse: Expr | int | float = False, return_counts: Expr | int | float = False, axis: Expr | int | float | None = None) -> Call:
    """Each element, or slice, once. With one of the further results a tuple of them, the elements first."""
def variance(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """Average of squared distances from the average."""
def where(condition: Expr, x1: Expr | int | float | bool, x2: Expr | int | float | bool) -> Call:
    """x1 where a condition holds, else x2; all three are broadcast."""
def wrap_param(data: Expr, dtype: str = "float32") -> Call:
    """A parameter that is kept in another dtype than the program computes with."""
def zeros(shape: Expr | Sequence[int | PrimExpr], dtype: str | None = None) -> Call:
    """Zeros."""
def zeros_like(x: Expr, dtype: str | None = None) -> Call:
    """Zeros in the shape of x."""
class builtin:
    @staticmethod
    def alloc_tensor(shape: Expr | Sequence[int | PrimExpr], dtype: str, runtime_device_index: Expr | int | float, storage_scope: Expr) -> Call:
        """A tensor with fresh memory."""
    @staticmethod
    def stop_lift_params(x: Expr) -> Call:
        """x; parameters are not lifted past it."""
class ccl:
    @staticmethod
    def allgather(x: Expr, num_workers: int, in_group: bool = True) -> Call:
        """The tensors of all workers, one behind the other along the first dimension."""
    @staticmethod
    def allreduce(x: Expr, op_type: str = "sum", in_group: bool = True) -> Call:
        """The tensors of all workers, combined element by element."""
    @staticmethod
    def broadcast_from_worker0(x: Expr) -> Call:
        """The tensor of the first worker."""
    @staticmethod
    def scatter_from_worker0(x: Expr, num_workers: int, axis: int = 0) -> Call:
        """The worker's part of the first worker's tensor, which is divided along a dimension."""
class dist:
    @staticmethod
    def annotate_sharding(x: Expr, *args: Expr, device_mesh: Any | None = None, placement: Any | None = None) -> Call:
        """Not supported: Relaxide runs a program in one process."""
    @staticmethod
    def call_tir_local_view(x: Expr, *args: Expr) -> Call:
        """Not supported: Relaxide runs a program in one process."""
    @staticmethod
    def redistribute(x: Expr, *args: Expr, device_mesh: Any | None = None, placement: Any | None = None) -> Call:
        """Not supported: Relaxide runs a program in one process."""
    @staticmethod
    def redistribute_replica_to_shard(x: Expr, *args: Expr, num_workers: Any | None = None, axis: int = 0) -> Call:
        """Not supported: Relaxide runs a program in one process."""
class grad:
    @staticmethod
    def avg_pool2d_backward(output_grad: Expr, data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None) -> Call:
        """The gradient of avg_pool2d: it goes to all elements of each window alike."""
    @staticmethod
    def end_checkpoint(input: Expr) -> Call:
        """Its argument; what lies behind it is kept again."""
    @staticmethod
    def max_pool2d_backward(output_grad: Expr, data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None) -> Call:
        """The gradient of max_pool2d: it goes to the largest element of each window, the first of equal ones."""
    @staticmethod
    def nll_loss_backward(output_grad: Expr, predictions: Expr, targets: Expr, weights: Expr | None = None, reduction: str = "mean", ignore_index: int = -100) -> Call:
        """The gradient of nll_loss for its predictions."""
    @staticmethod
    def no_grad(input: Expr) -> Call:
        """Its argument; no gradient flows through it."""
    @staticmethod
    def start_checkpoint(input: Expr) -> Call:
        """Its argument; what lies behind it is computed again for the gradient, not kept."""
    @staticmethod
    def take_backward(output_grad: Expr, x: Expr, indices: Expr, axis: int | None = None, mode: str = "") -> Call:
        """The gradient of take for what was indexed: that of each element added up where it came from."""
class image:
    @staticmethod
    def affine_grid(data: Expr, size: Expr | Sequence[int | PrimExpr], align_corners: bool = True) -> Call:
        """For each element of the grid the place that an affine map sends it to. ONNX: AffineGrid; ATen: affine_grid_generator."""
    @staticmethod
    def grid_sample(data: Expr, grid: Expr, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = False) -> Call:
        """The image's elements at the places of a grid. ONNX: GridSample; ATen: grid_sampler."""
    @staticmethod
    def resize2d(data: Expr, size: Expr | Sequence[int | PrimExpr], roi: Any = (0.0, 0.0, 0.0, 0.0), layout: str = "NCHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round", cubic_alpha: float = -0.75, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
        """An image at another height and width. ONNX: Resize; ATen: upsample_nearest2d, upsample_bilinear2d and their like."""
    @staticmethod
    def resize3d(data: Expr, size: Expr | Sequence[int | PrimExpr], roi: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), layout: str = "NCDHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.75, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
        """A volume at another depth, height and width. ONNX: Resize; ATen: upsample_trilinear3d and its like."""
class inspect:
    @staticmethod
    def tensor_byte_offset(tensor: Expr) -> Call:
        """Where its elements begin in its memory, in bytes."""
    @staticmethod
    def tensor_dtype_bits(tensor: Expr) -> Call:
        """The width of its elements in bits."""
    @staticmethod
    def tensor_dtype_code(tensor: Expr) -> Call:
        """The kind of its elements, as DLPack numbers them."""
    @staticmethod
    def tensor_dtype_lanes(tensor: Expr) -> Call:
        """How many lanes its elements have."""
    @staticmethod
    def tensor_elem_offset(tensor: Expr) -> Call:
        """Where its elements begin in its memory, in elements."""
    @staticmethod
    def tensor_ndim(tensor: Expr) -> Call:
        """How many dimensions it has."""
    @staticmethod
    def tensor_shape_i(tensor: Expr, axis: Expr | int | float) -> Call:
        """One of its dimensions."""
    @staticmethod
    def tensor_stride_i(tensor: Expr, axis: Expr | int | float) -> Call:
        """The distance of neighbours along a dimension, in elements."""
class memory:
    @staticmethod
    def alloc_storage(size: Expr | Sequence[int | PrimExpr], runtime_device_index: Expr | int | float, storage_scope: Expr, dtype: str) -> Call:
        """Memory that planned tensors share."""
    @staticmethod
    def alloc_tensor(storage: Expr, offset: Expr | int | float, shape: Expr | Sequence[int | PrimExpr], dtype: str, runtime_device_index: Expr | int | float = 0) -> Call:
        """A tensor inside a storage."""
    @staticmethod
    def ensure_zero_offset(data: Expr) -> Call:
        """x, copied if its data do not start its memory."""
    @staticmethod
    def kill_storage(storage: Expr) -> Call:
        """The storage is not used from here on."""
    @staticmethod
    def kill_tensor(tensor: Expr) -> Call:
        """The tensor is not used from here on."""
    @staticmethod
    def view(data: Expr, shape: Expr | Sequence[int | PrimExpr] | None = None, dtype: str | None = None, relative_byte_offset: Expr | None = None) -> Call:
        """The same memory as another tensor: nothing is copied, and the view must not reach beyond the tensor."""
class nn:
    @staticmethod
    def adaptive_avg_pool1d(data: Expr, output_size: int | Sequence[int] | None = None, layout: str = "NCW", out_layout: str | None = None) -> Call:
        """Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n)."""
    @staticmethod
    def adaptive_avg_pool2d(data: Expr, output_size: int | Sequence[int] | None = None, layout: str = "NCHW", out_layout: str | None = None) -> Call:
        """Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n)."""
    @staticmethod
    def adaptive_avg_pool3d(data: Expr, output_size: int | Sequence[int] | None = None, layout: str = "NCDHW", out_layout: str | None = None) -> Call:
        """Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n)."""
    @staticmethod
    def attention(query: Expr, key: Expr, value: Expr, bias: Expr | None = None, scale: float | None = None, causal_mask: str | None = None, window_size: int | None = None) -> Call:
        """softmax(query * key^T * scale) * value for each head."""
    @staticmethod
    def attention_bias(query: Expr, key: Expr, value: Expr, bias: Expr | None = None, scale: float | None = None, causal_mask: str | None = None, window_size: int | None = None) -> Call:
        """softmax(query * key^T * scale + bias) * value for each head."""
    @staticmethod
    def attention_var_len(queries: Expr, keys: Expr, values: Expr, seqstart_q: Expr, max_seqlen_q: Expr, seqstart_k: Expr | None = None, max_seqlen_k: Expr | None = None, scale: float | None = None, causal_mask: str | None = None, window_size: int | None = None) -> Call:
        """Attention within each of several sequences of different lengths."""
    @staticmethod
    def avg_pool1d(data: Expr, pool_size: int | Sequence[int] = (1,), strides: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1,), ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCW", out_layout: str | None = None) -> Call:
        """The mean of the elements under a window that slides over an image. ONNX: AveragePool."""
    @staticmethod
    def avg_pool2d(data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None) -> Call:
        """The mean of the elements under a window that slides over an image. ONNX: AveragePool."""
    @staticmethod
    def avg_pool3d(data: Expr, pool_size: int | Sequence[int] = (1, 1, 1), strides: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCDHW", out_layout: str | None = None) -> Call:
        """The mean of the elements under a window that slides over an image. ONNX: AveragePool."""
    @staticmethod
    def batch_flatten(data: Expr) -> Call:
        """All dimensions but the first made one."""
    @staticmethod
    def batch_norm(data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: int, epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1, training: bool = True) -> Call:
        """A tuple: (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel, and the running average and variance. In training the statistics are the batch's and the running ones move towards them."""
    @staticmethod
    def conv1d(data: Expr, weight: Expr, strides: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1,), groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Sums of products of a window that slides over a sequence. ONNX: Conv; ATen: convolution."""
    @staticmethod
    def conv1d_transpose(data: Expr, weight: Expr, strides: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0, 0), output_padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "IOW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Each element of an image spreads over a window of the result, weighted; the gradient of a convolution. ONNX: ConvTranspose; ATen: convolution with transposed=True."""
    @staticmethod
    def conv2d(data: Expr, weight: Expr, strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Sums of products of a window that slides over an image. ONNX: Conv; ATen: convolution."""
    @staticmethod
    def conv2d_transpose(data: Expr, weight: Expr, strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), output_padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1, 1), groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Each element of an image spreads over a window of the result, weighted; the gradient of a convolution. ONNX: ConvTranspose; ATen: convolution with transposed=True."""
    @staticmethod
    def conv3d(data: Expr, weight: Expr, strides: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Sums of products of a window that slides over a volume. ONNX: Conv; ATen: convolution."""
    @staticmethod
    def conv3d_transpose(data: Expr, weight: Expr, strides: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0, 0, 0, 0), output_padding: int | Sequence[int] = (0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: str | None = None, out_dtype: str | None = None) -> Call:
        """Each element of an image spreads over a window of the result, weighted; the gradient of a convolution. ONNX: ConvTranspose; ATen: convolution with transposed=True."""
    @staticmethod
    def cross_entropy_with_logits(predictions: Expr, labels: Expr) -> Call:
        """-sum(predictions * labels), divided by the batch where there is one."""
    @staticmethod
    def dropout(data: Expr, rate: float = 0.5) -> Call:
        """A tuple of x and of the mask; in inference nothing is dropped."""
    @staticmethod
    def gelu(data: Expr) -> Call:
        """x * (1 + erf(x / sqrt 2)) / 2."""
    @staticmethod
    def gelu_tanh(data: Expr) -> Call:
        """gelu with tanh in the place of erf."""
    @staticmethod
    def group_norm(data: Expr, gamma: Expr, beta: Expr, num_groups: int, channel_axis: int, axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Call:
        """Normalized over groups of channels and further dimensions; gamma and beta are per channel."""
    @staticmethod
    def instance_norm(data: Expr, gamma: Expr, beta: Expr, channel_axis: int, axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Call:
        """Normalized over some dimensions for each channel of each example; gamma and beta are per channel."""
    @staticmethod
    def layer_norm(data: Expr, gamma: Expr, beta: Expr, axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Call:
        """Normalized over some dimensions; gamma and beta have those dimensions."""
    @staticmethod
    def leakyrelu(data: Expr, alpha: float = 0.01) -> Call:
        """x above zero, alpha * x below."""
    @staticmethod
    def log_softmax(data: Expr, axis: int = -1) -> Call:
        """Logarithm of softmax, computed without overflow."""
    @staticmethod
    def max_pool1d(data: Expr, pool_size: int | Sequence[int] = (1,), strides: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1,), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW", out_layout: str | None = None) -> Call:
        """The largest element under a window that slides over an image. ONNX: MaxPool."""
    @staticmethod
    def max_pool2d(data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None) -> Call:
        """The largest element under a window that slides over an image. ONNX: MaxPool."""
    @staticmethod
    def max_pool3d(data: Expr, pool_size: int | Sequence[int] = (1, 1, 1), strides: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW", out_layout: str | None = None) -> Call:
        """The largest element under a window that slides over an image. ONNX: MaxPool."""
    @staticmethod
    def nll_loss(predictions: Expr, targets: Expr, weights: Expr | None = None, reduction: str = "mean", ignore_index: int = -100) -> Call:
        """-weights[target] * predictions[target], averaged or summed. ATen: nll_loss."""
    @staticmethod
    def pad(data: Expr, pad_width: int | Sequence[int], pad_mode: str = "constant", pad_value: float = 0.0) -> Call:
        """The input with a border."""
    @staticmethod
    def pixel_shuffle(data: Expr, upscale_factor: int) -> Call:
        """Channels become pixels: (N, C * r * r, H, W) to (N, C, H * r, W * r)."""
    @staticmethod
    def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Call:
        """x above zero, alpha * x below, alpha being learned."""
    @staticmethod
    def relu(data: Expr) -> Call:
        """max(x, 0)."""
    @staticmethod
    def rms_norm(data: Expr, weight: Expr, axes: int | Sequence[int] = (-1,), epsilon: float = 1e-5) -> Call:
        """x / sqrt(mean(x * x) + epsilon) * weight."""
    @staticmethod
    def selu(data: Expr) -> Call:
        """scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0)), scale and alpha as in the paper on self-normalizing networks."""
    @staticmethod
    def silu(data: Expr) -> Call:
        """x * sigmoid(x)."""
    @staticmethod
    def softmax(data: Expr, axis: int = -1) -> Call:
        """exp(x) over its sum along a dimension, computed without overflow."""
    @staticmethod
    def softplus(data: Expr, beta: float = 1.0, threshold: float = 20.0) -> Call:
        """log(1 + exp(beta * x)) / beta."""
class vision:
    @staticmethod
    def all_class_non_max_suppression(boxes: Expr, scores: Expr, max_output_boxes_per_class: Expr, iou_threshold: Expr, score_threshold: Expr, output_format: str = "onnx") -> Call:
        """Suppression for each class on its own. onnx: a tuple of rows (image, class, box) and their number; tensorflow: a tuple of rows (class, box), their scores, and their number for each image. ONNX: NonMaxSuppression."""
    @staticmethod
    def get_valid_counts(data: Expr, score_threshold: float = 0.0, id_index: int = 0, score_index: int = 1) -> Call:
        """A tuple: how many boxes count, these in front of rows of -1, and the index of each."""
    @staticmethod
    def multibox_transform_loc(cls_pred: Expr, loc_pred: Expr, anchor: Expr, clip: bool = False, threshold: float = 0.0, variances: Any | None = None, keep_background: bool = True, apply_softmax: bool = True) -> Call:
        """A tuple: boxes (top, left, bottom, right) decoded from anchors and offsets, and scores."""
    @staticmethod
    def non_max_suppression(data: Expr, valid_count: Expr, indices: Expr, max_output_size: int = -1, iou_threshold: float = 0.5, force_suppress: bool = False, top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True, invalid_to_bottom: bool = False, soft_nms_sigma: float = 0.0, score_threshold: float = 0.0) -> Call:
        """Boxes without those that overlap a better one; what is dropped is -1."""
    @staticmethod
    def roi_align(data: Expr, rois: Expr, pooled_size: int | Sequence[int], spatial_scale: float, sample_ratio: int = -1, aligned: bool = False, layout: str = "NCHW", mode: str = "avg") -> Call:
        """Each region divided into bins; a bin's value is the mean, or the largest, of the image at places in it, mixed from the four elements around. ONNX: RoiAlign."""
    @staticmethod
    def roi_pool(data: Expr, rois: Expr, pooled_size: int | Sequence[int], spatial_scale: float, layout: str = "NCHW") -> Call:
        """Each region divided into bins of whole elements; a bin's value is the largest of them, zero for an empty one. ONNX: MaxRoiPool."""
class vm:
    @staticmethod
    def alloc_storage(size: Expr | Sequence[int | PrimExpr], runtime_device_index: Expr | int | float, dtype: str, storage_scope: Expr) -> Call:
        """Memory, as the VM allocates it."""
    @staticmethod
    def alloc_tensor(storage: Expr, offset: Expr | int | float, shape: Expr | Sequence[int | PrimExpr], dtype: str, runtime_device_index: Expr | int | float = 0) -> Call:
        """A tensor inside a storage, as the VM makes it."""
    @staticmethod
    def call_tir_dyn(func: Expr, args: Expr) -> Call:
        """Calls a kernel; the last argument is a shape that is opened into scalars."""
    @staticmethod
    def kill_object(obj: Expr) -> Call:
        """The register is cleared."""
