"""What the pass that lets operators write over their operands asks of a dataflow block, for tests and for those who look into it.

A value may be overwritten by a call that is the last to use it, unless another value that is used later may lie in the same memory.
Memory is counted: each number stands for memory that one value was given, ``-1`` for memory that the block knows nothing of. A number
of a tuple has the numbers of its fields in a second table.
"""

from ...ir.expr import Call, GlobalVar, Tuple, TupleGetItem
from ...ir.op import Op
from ..expr import Constant, DataflowVar, Function, MatchCast, ShapeExpr, Var
from ..type import TensorType, TupleType

#: Memory of a value from outside of the block.
UNKNOWN = -1
#: Operators whose results may be views of their first operand.
_VIEWS = frozenset(
    "relax." + name
    for name in (
        "expand_dims",
        "flatten",
        "memory.ensure_zero_offset",
        "memory.view",
        "nn.batch_flatten",
        "permute_dims",
        "reshape",
        "squeeze",
    )
)
#: Operators whose kernels can write over an operand.
_WRITERS = frozenset(f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "nn.silu", "nn.relu"))


def ApplyEmptyCppMutator():
    """A pass that goes through each function and changes nothing."""
    from ..expr_functor import PyExprMutator
    from ..transform import function_pass

    class Same(PyExprMutator):
        pass

    return function_pass(lambda func, mod, ctx: Same(mod).visit_expr(func), opt_level=0, name="ApplyEmptyCppMutator")


def _value(binding):
    return binding.value


def dataflow_liveness_analysis(block):
    """Where the values of a dataflow block are needed.

    Returns
    -------
    dict of Var to (int, int)
        The index of the binding that makes a value (-1: it is from outside), and that of the last one that uses it; the number of
        bindings where it may be used behind the block. Taking a field of a tuple is no use of the tuple.
    """
    from ..analysis import all_vars, free_vars

    end = len(block.bindings)
    ranges = {}
    for at, binding in enumerate(block.bindings):
        value = _value(binding)
        if isinstance(value, Function):
            used = free_vars(value)
        else:
            used = [] if isinstance(value, TupleGetItem) else all_vars(value)
        for var in used:
            made = ranges.get(var, (-1, at))[0]
            ranges[var] = (made, at if isinstance(var, DataflowVar) else end)
        ranges[binding.var] = (at, at if isinstance(binding.var, DataflowVar) else end)
    return ranges


class _Aliases:
    """The memory of each value of a block."""

    def __init__(self, block, inputs):
        self.of, self.fields, self._next = {}, {}, 0
        for var in inputs:
            self.of[var] = {self._fresh(var.ty)}
        for binding in block.bindings:
            self.of[binding.var] = self._memory(_value(binding), binding.var.ty)

    def _fresh(self, ty=None):
        """Memory of its own for a value of a type; each field of a tuple has its own, too."""
        number, self._next = self._next, self._next + 1
        if isinstance(ty, TupleType):
            self.fields[number] = [{self._fresh(field)} for field in ty.fields]
        return number

    def _memory(self, value, ty):
        if isinstance(value, Var):
            return set(self.of.get(value, {UNKNOWN}))
        if isinstance(value, Tuple):
            number = self._fresh()
            self.fields[number] = [self._memory(field, field.ty) for field in value.fields]
            return {number}
        if isinstance(value, TupleGetItem):
            return self._field(self._memory(value.tuple_value, None), value.index)
        if isinstance(value, Call):
            return self._result(value, ty)
        return {self._fresh()}

    def _field(self, of, index):
        if UNKNOWN in of:
            return {UNKNOWN}
        held = (self.fields.get(number, ()) for number in of)
        return set().union(*(fields[index] for fields in held if index < len(fields)))

    def _result(self, call, ty):
        if not isinstance(call.op, Op):
            return self._anything(call.args, ty)
        if call.op.name == "relax.call_pure_packed":
            return self._anything(list(call.args)[1:], ty)
        if call.op.name in _VIEWS and call.args:
            return self._memory(call.args[0], None)
        return {self._fresh(ty)}

    def _anything(self, args, ty):
        """A function may give its arguments back, parts of them, or something new; fields of a tuple, too."""
        result = self._fresh(ty)
        may = self._within({result}.union(*(self._memory(arg, arg.ty) for arg in args)))
        for number in self._within({result}):
            for held in self.fields.get(number, ()):
                held |= may
        return set(may)

    def _within(self, numbers):
        """The numbers, and those of what their tuples hold."""
        found, pending = set(), list(numbers)
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending.extend(held for field in self.fields.get(number, ()) for held in field)
        return found


def dataflow_alias_analysis(block, inputs):
    """The memory that the values of a dataflow block may lie in.

    Parameters
    ----------
    block : DataflowBlock
        The block.
    inputs : list of Var
        Values from outside of it that are taken to have memory of their own: the function's parameters.

    Returns
    -------
    (dict of Var to set of int, dict of int to list of set of int)
        The numbers of memory of each value, and for each number that is a tuple's, those of its fields.
    """
    found = _Aliases(block, inputs)
    return found.of, found.fields


class InplaceOpportunity:
    """A binding whose call may write over operands."""

    def __init__(self, binding_idx, arg_idxs):
        self.binding_idx, self.arg_idxs = binding_idx, list(arg_idxs)

    def __repr__(self):
        return f"InplaceOpportunity({self.binding_idx}, {self.arg_idxs})"


def _fit(result, operand, analyzer):
    """Whether an operand's memory is large enough for a result, and whether it is of the same shape."""
    if isinstance(result, TupleType) and isinstance(operand, TupleType):
        if len(result.fields) != len(operand.fields):
            return False, False
        each = [_fit(*pair, analyzer) for pair in zip(result.fields, operand.fields)]
        return all(large for large, _ in each), all(same for _, same in each)
    known = all(isinstance(ty, TensorType) and isinstance(ty.shape, ShapeExpr) for ty in (result, operand))
    if not known or result.dtype != operand.dtype or result.dtype == "":
        return False, False
    mine, theirs = list(result.shape.values), list(operand.shape.values)
    if not analyzer.can_prove(_product(theirs) >= _product(mine)):
        return False, False
    return True, len(mine) == len(theirs) and all(analyzer.can_prove_equal(*pair) for pair in zip(mine, theirs))


def _product(dims):
    from ...tirx import const

    product = const(1, "int64")
    for dim in dims:
        product = product * dim
    return product


class _Overwriting:
    """Which operands of a block's calls nothing needs any more."""

    def __init__(self, block, inputs):
        self.ranges = dataflow_liveness_analysis(block)
        self.aliases = _Aliases(block, inputs)

    def free(self, call, index, at):
        """Whether the operand of an index may be overwritten by the call of a binding."""
        operand = call.args[index]
        if not self._ends(operand, at):
            return False
        memory = self._numbers(operand)
        others = (arg for other, arg in enumerate(call.args) if other != index and not arg.same_as(operand))
        return not any(memory & self._numbers(arg) for arg in others)

    def _numbers(self, operand):
        return self.aliases.of.get(operand, {UNKNOWN}) if isinstance(operand, Var) else {UNKNOWN}

    def _ends(self, operand, at):
        if not isinstance(operand, Var) or self._lives(operand, at):
            return False
        memory = self.aliases._within(self._numbers(operand))
        if UNKNOWN in memory:
            return False
        later = (var for var in self.aliases.of if var != operand and self._lives(var, at) and self._made(var) <= at)
        return not any(memory & self.aliases.of[var] for var in later)

    def _lives(self, var, at):
        return self.ranges.get(var, (-1, -1))[1] > at

    def _made(self, var):
        return self.ranges.get(var, (-1, -1))[0]


def dataflow_inplace_analysis(block, inputs, mod):
    """Calls of a dataflow block that may write over operands.

    Parameters
    ----------
    block : DataflowBlock
        The block.
    inputs : list of Var
        Values from outside of it that are taken to have memory of their own.
    mod : IRModule
        The module around it.

    Returns
    -------
    (list of (int, set of int), list of (int, set of int))
        Indices of bindings, with those of operands whose memory is large enough for the result; and the same with operands of the
        result's shape only.
    """
    from ...sym import Analyzer

    found, analyzer = _Overwriting(block, inputs), Analyzer()
    large, same = [], []
    for at, binding in enumerate(block.bindings):
        call = _value(binding)
        if isinstance(binding, MatchCast) or not (isinstance(call, Call) and isinstance(call.op, Op) and call.op.name in _WRITERS):
            continue
        fits = {index: _fit(binding.var.ty, arg.ty, analyzer) for index, arg in enumerate(call.args)}
        free = [index for index in fits if fits[index][0] and found.free(call, index, at)]
        exact = {index for index in free if fits[index][1]}
        if free:
            large.append((at, set(free)))
        if exact:
            same.append((at, exact))
    return large, same


def dataflow_single_inplace_call(mod, call, inplace_indices):
    """A call that writes over one of its operands, in the place of a call of an operator.

    Parameters
    ----------
    mod : IRModule
        The module around it.
    call : Call
        The call of an element-wise operator.
    inplace_indices : list of int
        The index of the operand that is overwritten; its shape must be the result's.

    Returns
    -------
    (Call, IRModule)
        A call of ``call_tir_inplace``, and the module with its kernel.
    """
    from ...ir import IRModule
    from .. import BlockBuilder, op
    from ..transform import DataflowUseInplaceCalls

    if len(inplace_indices) != 1:
        raise ValueError(f"one operand is overwritten, but indices {list(inplace_indices)} are given")
    (index,) = inplace_indices
    # The pass makes the kernel: it is given the call in a function where the operand is not needed any more.
    builder = BlockBuilder(mod)
    params = [Var(f"operand{at}", arg.ty) for at, arg in enumerate(call.args)]
    name = _unused(mod, "single_inplace_call")
    with builder.function(name, params, private=True):
        with builder.dataflow():
            operands = list(params)
            operands[index] = builder.emit(op.nn.relu(params[index]))
            result = builder.emit_output(Call(call.op, operands, call.attrs, call.ty_args))
        builder.emit_func_output(result)
    alone = IRModule({name: builder.get()[name]})
    written = DataflowUseInplaceCalls()(alone)
    made = _value(written[name].body.blocks[0].bindings[-1])
    if not (isinstance(made, Call) and isinstance(made.op, Op) and made.op.name == "relax.call_tir_inplace"):
        raise ValueError(f"{call.op.name} cannot write over operand {index}: it needs the shape and the element type of the result")
    functions = dict(mod.functions)
    callee = GlobalVar(_unused(mod, made.args[0].name_hint))
    functions[callee] = written[made.args[0].name_hint]
    return Call(made.op, [callee, Tuple(list(call.args)), *made.args[2:]], made.attrs, made.ty_args), IRModule(functions, attrs=mod.attrs)


def _unused(mod, name):
    taken = {var.name_hint for var in mod.functions}
    return next(name if at == 0 else f"{name}{at}" for at in range(len(taken) + 1) if (name if at == 0 else f"{name}{at}") not in taken)


__all__ = ["ApplyEmptyCppMutator", "InplaceOpportunity", "dataflow_alias_analysis", "dataflow_inplace_analysis"]
__all__ += ["dataflow_liveness_analysis", "dataflow_single_inplace_call"]
