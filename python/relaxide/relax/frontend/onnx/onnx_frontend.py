"""Operators of ONNX one by one: a class for each, whose converter writes the operator's calls into a block builder.

The importer reads whole models; a converter gives it a model of one node, and writes what it makes of it where the builder stands::

    relu = Relu.get_converter(opset=13)(bb, [x], {}, [{}, {}])
"""

import numpy as np

from .... import relax
from ....ir.prim import IntImm
from . import from_onnx

#: Operators that have a class here. `Optional_` is the operator `Optional`.
_NAMES = """
Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BiasGelu BitShift BitwiseAnd
BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress Concat ConcatFromSequence Constant ConstantOfShape Conv ConvTranspose Cos
Cosh CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Einsum Elu EmbedLayerNormalization Equal Erf Exp Expand EyeLike
FastGelu Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual
GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu Less
LessOrEqual LocalResponseNormalization Log LogSoftmax LpPool MatMul MatMulInteger MatMulInteger16 Max MaxPool MaxRoiPool MaxUnpool Mean
MeanVarianceNormalization Min Mish Mod Mul Neg NonMaxSuppression NonZero Not OneHot OptionalGetElement OptionalHasElement Optional_ Or PRelu
Pad Pow QuantizeLinear RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RoiAlign Round Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct
SequenceEmpty SequenceErase SequenceInsert SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size SkipLayerNormalization Slice Softmax
Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unique
Unsqueeze Upsample Where Xor
""".split()

#: Operators of ONNX Runtime's own domain.
_OF_MICROSOFT = {"BiasGelu", "EmbedLayerNormalization", "FastGelu", "MatMulInteger16", "SkipLayerNormalization"}


class OnnxOpConverter:
    """The base of operators."""

    _op = None

    @classmethod
    def get_converter(cls, opset):
        """A function ``(bb, inputs, attr, params)`` that writes the operator as of a version of ONNX, and gives its result.

        ``inputs`` are expressions, ``None`` for those left out; ``attr`` are attributes by name; ``params`` may have constants by the
        name of the variable: two dictionaries, of which the second has values.
        """
        if cls._op is None:
            raise NotImplementedError(f"{cls.__name__} is the base of operators: use one of them")

        def convert(bb, inputs, attr, params=({}, {})):
            return _convert(cls._op, opset, bb, list(inputs), dict(attr or {}), params)

        return convert


class BinaryBase(OnnxOpConverter):
    """The base of operators of two tensors: ``numpy_op`` and ``relax_op`` compute the same."""

    numpy_op = None
    relax_op = None

    @classmethod
    def base_impl(cls, bb, inputs, attr, params):
        """The call of ``relax_op``; of two constants, the constant that ``numpy_op`` gives."""
        if cls.numpy_op is None or cls.relax_op is None:
            raise ValueError("an operator of two inputs says its numpy_op and its relax_op")
        if all(isinstance(one, relax.Constant) for one in inputs):
            values = cls.numpy_op(*(one.data.numpy() for one in inputs))
            return relax.const(np.asarray(values))
        return bb.normalize(cls.relax_op(*inputs))


class BitwiseBase(BinaryBase):
    """The base of operators on bits of two tensors."""


class MultiInputBase(OnnxOpConverter):
    """The base of operators that combine any number of tensors: two by ``binary_op``, constants by ``numpy_op``."""

    numpy_op = None
    relax_op = None
    binary_op = None


class Pool(OnnxOpConverter):
    """The base of pooling: ``name`` is the operator of Relax."""

    name = ""

    @classmethod
    def get_pad_pair(cls, input1d, kernel1d, stride1d, mode):
        """The padding in front and behind that makes ``ceil(input / stride)`` windows: ``mode`` says where an odd element goes."""
        over = input1d % stride1d
        total = max(kernel1d - (over or stride1d), 0)
        less, more = total // 2, total - total // 2
        return [more, less] if "LOWER" in mode else [less, more]


def _of_two():
    ops = relax.op
    return {
        "Add": (np.add, ops.add),
        "Sub": (np.subtract, ops.subtract),
        "Mul": (np.multiply, ops.multiply),
        "Div": (np.divide, ops.divide),
        "Pow": (np.power, ops.power),
        "Mod": (np.mod, ops.mod),
        "And": (np.logical_and, ops.logical_and),
        "Or": (np.logical_or, ops.logical_or),
        "Xor": (np.logical_xor, ops.logical_xor),
        "Less": (np.less, ops.less),
        "LessOrEqual": (np.less_equal, ops.less_equal),
        "Greater": (np.greater, ops.greater),
        "GreaterOrEqual": (np.greater_equal, ops.greater_equal),
        "BitwiseAnd": (np.bitwise_and, ops.bitwise_and),
        "BitwiseOr": (np.bitwise_or, ops.bitwise_or),
        "BitwiseXor": (np.bitwise_xor, ops.bitwise_xor),
        "BitShift": (np.left_shift, ops.left_shift),
    }


def _of_many():
    ops = relax.op
    return {
        "Min": (np.min, ops.min, ops.minimum),
        "Max": (np.max, ops.max, ops.maximum),
        "Sum": (np.sum, ops.sum, ops.add),
        "Mean": (np.mean, ops.mean, ops.add),
    }


def _classes():
    two, many = _of_two(), _of_many()
    for name in _NAMES:
        operator = name.rstrip("_")
        body = {"__module__": __name__, "__doc__": f"The operator {operator}.", "_op": operator}
        base = OnnxOpConverter
        if name in two:
            base = BitwiseBase if name.startswith("Bit") else BinaryBase
            body |= {"numpy_op": staticmethod(two[name][0]), "relax_op": staticmethod(two[name][1])}
        elif name in many:
            base = MultiInputBase
            body |= dict(zip(("numpy_op", "relax_op", "binary_op"), map(staticmethod, many[name])))
        elif name in ("MaxPool", "AveragePool", "LpPool"):
            base = Pool
            body["name"] = {"MaxPool": "max_pool", "AveragePool": "avg_pool", "LpPool": "lp_pool"}[name]
        yield name, type(name, (base,), body)


class AllClassNMS(OnnxOpConverter):
    """Suppression of boxes that overlap, class by class: the operator NonMaxSuppression."""

    _op = "NonMaxSuppression"


globals().update(_classes())


def _convert(op, opset, bb, inputs, attr, params):
    """One node as calls in a builder."""
    import onnx
    from onnx import helper

    domain = "com.microsoft" if op in _OF_MICROSOFT else ""
    known = params[1] if isinstance(params, (list, tuple)) and len(params) > 1 else {}
    infos, weights, given, names, dims = [], [], [], [], {}
    for index, value in enumerate(inputs):
        if value is None:
            names.append("")
            continue
        names.append(f"x{index}")
        constant = known.get(getattr(value, "name_hint", None), value)
        if isinstance(constant, relax.Constant):
            weights.append(onnx.numpy_helper.from_array(constant.data.numpy(), names[-1]))
            continue
        given.append(value)
        infos.append(_info(helper, names[-1], value, dims))
    outputs = [f"y{index}" for index in range(_outputs_of(op, opset, attr, inputs))]
    node = helper.make_node(op, names, outputs, domain=domain, **attr)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "node", infos, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    return _written(bb, from_onnx(model)["main"], given, dims)


def _outputs_of(op, opset, attr, inputs):
    if op == "Split":
        sizes = attr.get("split")
        return attr.get("num_outputs") or len(sizes or ()) or (inputs[1].ty.shape[0].value if len(inputs) > 1 and inputs[1] is not None else 2)
    return {"TopK": 2, "DynamicQuantizeLinear": 3, "Unique": 4}.get(op, 1)


def _info(helper, name, value, dims):
    from onnx import TensorProto
    from onnx.helper import np_dtype_to_tensor_dtype

    ty = value.ty
    if getattr(ty, "shape", None) is None:
        raise ValueError(f"the shape of {value} must be known to convert an operator on it")
    shape = []
    for dim in _dims(ty):
        if isinstance(dim, (int, IntImm)):
            shape.append(int(dim))
        else:
            text = f"d{len(dims)}" if str(dim) not in dims else dims[str(dim)][0]
            dims.setdefault(str(dim), (text, dim))
            shape.append(text)
    kind = TensorProto.BFLOAT16 if str(ty.dtype) == "bfloat16" else np_dtype_to_tensor_dtype(np.dtype(str(ty.dtype)))
    return helper.make_tensor_value_info(name, kind, shape)


def _dims(ty):
    shape = getattr(ty, "shape", None)
    return [] if shape is None else list(getattr(shape, "values", shape))


def _written(bb, func, given, dims):
    """The body of a function, written where a builder stands, over other values."""
    values = dict(zip(func.params, given))
    if any(not isinstance(dim, (int, IntImm)) for param in func.params for dim in _dims(param.ty)):
        # Its lengths are variables of its own: what they are, a call says.
        name = bb.add_func(func.without_attr("global_symbol"), "node")
        return bb.emit(relax.Call(name, given))
    func = func.bind_params(values)
    if not isinstance(func.body, relax.SeqExpr):
        return bb.normalize(func.body)
    results = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            value = _replaced(binding.value, results)
            results[binding.var] = bb.emit(value) if isinstance(binding, relax.VarBinding) else bb.match_cast(value, binding.ty)
    return _replaced(func.body.body, results)


def _replaced(expr, results):
    from ....relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Replace(PyExprMutator):
        """Puts values in the place of variables."""

        def visit_var_(self, op):
            return results.get(op, op)

        visit_dataflow_var_ = visit_var_

    return Replace().visit_expr(expr) if results else expr


def get_type(elem_type):
    """The name of the element type that ONNX has under a number or a name."""
    if isinstance(elem_type, str):
        return elem_type
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    if elem_type == TensorProto.BFLOAT16:
        return "bfloat16"
    return str(tensor_dtype_to_np_dtype(elem_type))


def get_numpy(tensor_proto):
    """The array of a tensor of ONNX."""
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor_proto)


def get_constant(var, params):
    """The constant that is known under the name of a variable, else the variable."""
    if isinstance(var, relax.Constant):
        return var
    found = params[1].get(getattr(var, "name_hint", None)) if len(params) > 1 else None
    if found is None:
        return var
    return found if isinstance(found, relax.Constant) else relax.const(found)


def get_value(token, value_dict):
    """A number, or the length of that name, which is new where it is not in the dictionary."""
    from ....tirx import SizeVar

    token = str(token).strip()
    if token.lstrip("-").isdigit():
        return int(token)
    if token not in value_dict:
        value_dict[token] = SizeVar(token, "int64")
    return value_dict[token]


def parse_shape_name(name, value_dict):
    """A length that is written as an expression of names: ``"batch + 1"``; operators are ``+ - * / //``, from left to right."""
    import re

    parts = [part for part in re.split(r"\s*(//|[-+*/])\s*", str(name).strip()) if part]
    value = get_value(parts[0], value_dict)
    if len(parts) % 2 == 0:
        raise ValueError(f"{name!r} is no expression of lengths")
    for operator, operand in zip(parts[1::2], parts[2::2]):
        other = get_value(operand, value_dict)
        value = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}.get(operator, lambda a, b: a // b)(value, other)
    return value


def get_info(info_proto, value_dict):
    """``(name, shape, element type, names of lengths, lengths)`` of an input or output of a graph."""
    shape, names = [], []
    for dim in info_proto.type.tensor_type.shape.dim:
        names.append(dim.dim_param)
        shape.append(parse_shape_name(dim.dim_param, value_dict) if dim.dim_param else dim.dim_value)
    elem = info_proto.type.tensor_type.elem_type
    return info_proto.name, shape, get_type(elem) if elem else "float32", names, value_dict


def get_prim_expr_list(inputs):
    """The numbers of a constant, or the dimensions of a shape."""
    if isinstance(inputs, relax.Constant):
        return [int(value) for value in inputs.data.numpy().reshape(-1)]
    if isinstance(inputs, relax.ShapeExpr):
        return [value.value if isinstance(value, IntImm) else value for value in inputs.values]
    raise ValueError(f"expected a constant or a shape, got {type(inputs).__name__}")


def get_prim_value_list(values):
    """Numbers and expressions as a list of values of scalars."""
    return [value if not isinstance(value, (int, float)) else relax.PrimValue(value) for value in values]


def compute_broadcast_shape(shape_a, shape_b):
    """The shape that two shapes are broadcast to; a ValueError where they do not fit."""
    a, b = list(shape_a), list(shape_b)
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    made = []
    for one, other in zip(a, b):
        if not isinstance(one, int) or not isinstance(other, int):
            made.append(other if one == 1 else one)
        elif one != other and 1 not in (one, other):
            raise ValueError(f"shapes {tuple(shape_a)} and {tuple(shape_b)} cannot be broadcast together")
        else:
            made.append(max(one, other))
    return tuple(made)


class onnx_input(list):
    """Inputs of a node: an index behind the last is ``None``, as an input that is left out."""

    def __getitem__(self, item):
        if isinstance(item, slice):
            indices = range(*item.indices(max(len(self), item.stop or 0)))
            return [self[index] for index in indices]
        if not isinstance(item, int):
            raise NotImplementedError(f"inputs are found by numbers and slices, got {type(item).__name__}")
        return list.__getitem__(self, item) if item < len(self) else None


class ONNXGraphImporter:
    """Imports models with the options of :func:`~relaxide.relax.frontend.onnx.from_onnx`."""

    current = None

    def __init__(self, shape_dict, dtype_dict, keep_params_in_input=False, sanitize=True):
        self._shapes, self._dtypes = shape_dict, dtype_dict
        self._keep_params_in_input, self._sanitize = keep_params_in_input, sanitize

    def from_onnx(self, graph, opset):
        """The module of a model."""
        return from_onnx(graph, self._shapes, self._dtypes, opset, self._keep_params_in_input, self._sanitize)
