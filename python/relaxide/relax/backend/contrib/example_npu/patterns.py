"""What the processor takes, operator by operator, and together with an activation where it has both in one unit."""

from ....dpl import is_op, wildcard
from ...pattern_registry import register_patterns


class NPUConfig:
    """How the processor is built."""

    #: Memory on the chip, and beside its units, in KB.
    SRAM_SIZE_KB, CMX_SIZE_KB = 256, 512
    #: The tiles that it computes by, and how long its vectors are.
    TILE_HEIGHT, TILE_WIDTH, VECTOR_SIZE = 32, 32, 16
    #: The element types that it has, and those among them of quantized networks.
    SUPPORTED_DTYPES = ["int8", "int16", "float16", "float32"]  # noqa: RUF012
    QUANTIZED_DTYPES = ["int8", "int16"]  # noqa: RUF012
    #: The lengths of its units for matrices and for vectors.
    MATRIX_ENGINE_SIZE, VECTOR_ENGINE_WIDTH = 16, 64
    #: How it can be run.
    POWER_MODES = ["high_performance", "balanced", "low_power"]  # noqa: RUF012


def _has_its_elements(context):
    """Whether what goes in, where its element type is known, is of a type that the processor has."""
    given = [expr for name, expr in context.annotated_expr.items() if name.startswith("input")]
    dtypes = [str(getattr(expr.ty, "dtype", None) or "") for expr in given]
    return all(dtype in ("", *NPUConfig.SUPPORTED_DTYPES) for dtype in dtypes)


def _is_grouped(context):
    return _has_its_elements(context) and context.annotated_expr["root"].attrs["groups"] > 1


def _one(name, operator, arguments=1, check=_has_its_elements):
    """The pattern of one operator."""
    given = [wildcard() for _ in range(arguments)]
    root = is_op(f"relax.{operator}")(*given)
    parts = {"input": given[0], **{f"argument{at}": part for at, part in enumerate(given[1:], 1)}, "root": root}
    return f"example_npu.{name}", root, parts, check


def _with_relu(name, operator):
    """The pattern of a product and the activation behind it."""
    data, weight = wildcard(), wildcard()
    product = is_op(f"relax.{operator}")(data, weight)
    root = is_op("relax.nn.relu")(product)
    return f"example_npu.{name}", root, {"input": data, "weight": weight, name.split("_")[0]: product, "root": root}, _has_its_elements


def quantization_patterns():
    """Into and out of whole numbers."""
    return [_one("quantize", "quantize", 3), _one("dequantize", "dequantize", 3)]


def elementwise_patterns():
    """Sums and products of elements."""
    return [_one(name, name, 2) for name in ("add", "multiply", "subtract", "divide")]


def activation_patterns():
    """Activations."""
    return [_one(operator.rpartition(".")[2], operator) for operator in ("nn.relu", "sigmoid", "tanh", "nn.gelu")]


def softmax_patterns():
    """The softmax."""
    return [_one("softmax", "nn.softmax")]


def batch_norm_patterns():
    """Normalization by statistics of the batch."""
    return [_one("batch_norm", "nn.batch_norm", 5)]


def pooling_patterns():
    """The largest and the mean of windows."""
    return [_one("max_pool2d", "nn.max_pool2d"), _one("avg_pool2d", "nn.avg_pool2d")]


def matmul_patterns():
    """Products of matrices, which TVM knows by two names."""
    return [_one("dense", "matmul", 2), _one("matmul", "matmul", 2)]


def conv1d_patterns():
    """Convolutions of sequences."""
    return [_one("conv1d", "nn.conv1d", 2)]


def conv2d_patterns():
    """Convolutions of images."""
    return [_one("conv2d", "nn.conv2d", 2)]


def depthwise_conv2d_patterns():
    """Convolutions of images in groups of channels."""
    return [_one("depthwise_conv2d", "nn.conv2d", 2, _is_grouped)]


def matmul_relu_fused_pattern():
    """A product and the activation behind it."""
    return _with_relu("matmul_relu_fused", "matmul")


def conv2d_relu_fused_pattern():
    """A convolution and the activation behind it."""
    return _with_relu("conv2d_relu_fused", "nn.conv2d")


# What is tried first comes last: groups before what has none, two operators before one.
register_patterns(
    [
        *quantization_patterns(),
        *elementwise_patterns(),
        *activation_patterns(),
        *softmax_patterns(),
        *batch_norm_patterns(),
        *pooling_patterns(),
        *matmul_patterns(),
        *conv1d_patterns(),
        *conv2d_patterns(),
        *depthwise_conv2d_patterns(),
        matmul_relu_fused_pattern(),
        conv2d_relu_fused_pattern(),
    ]
)
