"""Visitors and mutators of Relax programs, written in Python.

::

    @relax.expr_functor.visitor
    class Count(PyExprVisitor):
        def __init__(self):
            self.calls = 0

        def visit_call_(self, call):
            self.calls += 1
            super().visit_call_(call)

    @relax.expr_functor.mutator
    class Double(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            return relax.op.multiply(call, relax.const(2.0))

A method ``visit_KIND_`` is called with every node of its kind; what a class does not define goes on to the parts.
"""

from ..ir.expr import Call, Expr, GenericConst, GlobalVar, Tuple, TupleGetItem, Var, is_prim_expr
from ..ir.op import Op
from ._normal_calls import normal_call
from .block_builder import BlockBuilder
from ..ir import _api, prim
from .expr import BindingBlock, DataflowBlock, DataflowVar, DataTypeImm, ExternFunc, Function, If, MatchCast
from .expr import SeqExpr, ShapeExpr, VarBinding

#: Kinds of expressions with the methods that visit them; the first that fits is taken.
_KINDS = (
    (DataflowVar, "visit_dataflow_var_"),
    (Var, "visit_var_"),
    (Call, "visit_call_"),
    (GenericConst, "visit_generic_const_"),
    (Tuple, "visit_tuple_"),
    (TupleGetItem, "visit_tuple_getitem_"),
    (ShapeExpr, "visit_shape_expr_"),
    (prim.StringImm, "visit_string_imm_"),
    (DataTypeImm, "visit_data_type_imm_"),
    (If, "visit_if_"),
    (SeqExpr, "visit_seq_expr_"),
    (Function, "visit_function_"),
    (GlobalVar, "visit_global_var_"),
    (ExternFunc, "visit_extern_func_"),
    (Op, "visit_op_"),
)

#: The same of scalars. What a class has no method for is ``visit_expr_fallback_``'s.
_SCALARS = (
    (prim.Add, "visit_add_"),
    (prim.Sub, "visit_sub_"),
    (prim.Mul, "visit_mul_"),
    (prim.Div, "visit_div_"),
    (prim.Mod, "visit_mod_"),
    (prim.FloorDiv, "visit_floor_div_"),
    (prim.FloorMod, "visit_floor_mod_"),
    (prim.LShift, "visit_lshift_"),
    (prim.RShift, "visit_rshift_"),
    (prim.BitwiseAnd, "visit_bitwise_and_"),
    (prim.BitwiseOr, "visit_bitwise_or_"),
    (prim.BitwiseXor, "visit_bitwise_xor_"),
    (prim.BitwiseNot, "visit_bitwise_not_"),
    (prim.Min, "visit_min_"),
    (prim.Max, "visit_max_"),
    (prim.EQ, "visit_eq_"),
    (prim.NE, "visit_ne_"),
    (prim.LT, "visit_lt_"),
    (prim.LE, "visit_le_"),
    (prim.GT, "visit_gt_"),
    (prim.GE, "visit_ge_"),
    (prim.And, "visit_and_"),
    (prim.Or, "visit_or_"),
    (prim.Not, "visit_not_"),
    (prim.Cast, "visit_cast_"),
    (prim.Select, "visit_select_"),
    (prim.Ramp, "visit_ramp_"),
    (prim.Broadcast, "visit_broadcast_"),
    (prim.IntImm, "visit_int_imm_"),
    (prim.FloatImm, "visit_float_imm_"),
    (prim.BufferLoad, "visit_buffer_load_"),
)


def _method(expr):
    for kind, name in _KINDS:
        if isinstance(expr, kind):
            return name
    for kind, name in _SCALARS:
        if isinstance(expr, kind):
            return name
    if is_prim_expr(expr):
        return "visit_expr_fallback_"
    raise TypeError(f"a Relax expression is expected, got {type(expr).__name__}")


#: The operands of scalars, by class: names of fields.
_OPERANDS = (
    (prim.BinaryOpExpr, ("a", "b")),
    (prim.Not, ("a",)),
    (prim.Cast, ("value",)),
    (prim.Broadcast, ("value",)),
    (prim.Select, ("condition", "true_value", "false_value")),
    (prim.Ramp, ("base", "stride")),
    (prim.PrimCall, ("args",)),
    (prim.BufferLoad, ("indices",)),
)


def _operands(scalar):
    """The operands of a scalar, in order."""
    for kind, names in _OPERANDS:
        if isinstance(scalar, kind):
            fields = [getattr(scalar, name) for name in names]
            return list(fields[0]) if names[0] in ("args", "indices") else fields
    return []


def _remade(scalar, operands):
    """A scalar of other operands."""
    if isinstance(scalar, prim.PrimCall):
        return prim.remade_call(scalar, operands)
    if isinstance(scalar, prim.BufferLoad):
        return prim.BufferLoad(scalar.buffer, operands)
    if isinstance(scalar, prim.BinaryOpExpr):
        return _api.prim.binary(scalar._op, *operands)
    if isinstance(scalar, prim.Cast):
        return prim.Cast(scalar.dtype, *operands)
    if isinstance(scalar, (prim.Ramp, prim.Broadcast)):
        return type(scalar)(*operands, scalar.lanes)
    return type(scalar)(*operands)


def _fall_back(self, expr):
    return self.visit_expr_fallback_(expr)


class ExprFunctor:
    """What visits expressions by their kind. Kinds without a method are refused, those of scalars are one by default:
    ``visit_add_`` and the like call ``visit_expr_fallback_``."""

    def visit_expr(self, expr):
        """Call the method of an expression's kind."""
        return getattr(self, _method(expr))(expr)

    def visit_binding(self, binding):
        """Call the method of a binding's kind."""
        if isinstance(binding, MatchCast):
            return self.visit_match_cast_(binding)
        if isinstance(binding, VarBinding):
            return self.visit_var_binding_(binding)
        raise TypeError(f"a binding is expected, got {type(binding).__name__}")

    def visit_binding_block(self, block):
        """Call the method of a block's kind."""
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block_(block)
        if isinstance(block, BindingBlock):
            return self.visit_binding_block_(block)
        raise TypeError(f"a block is expected, got {type(block).__name__}")

    def visit_var_def(self, var):
        """Call the method of a variable's kind, where it is bound."""
        return self.visit_dataflow_var_def_(var) if isinstance(var, DataflowVar) else self.visit_var_def_(var)


for _, _name in _SCALARS:
    setattr(ExprFunctor, _name, _fall_back)


def _absent(name):
    def visit(self, visited):
        raise NotImplementedError(f"{type(self).__name__} has no method {name}")

    visit.__name__, visit.__doc__ = name, "Refuses what it is called with: a class that visits such nodes has its own method."
    return visit


#: Methods that a class writes itself, or has of :class:`PyExprVisitor` or :class:`PyExprMutator`.
_OWN = {name for _, name in _KINDS} | {"visit_expr_fallback_", "visit_var_binding_", "visit_match_cast_", "visit_binding_block_"}
_OWN |= {"visit_dataflow_block_", "visit_var_def_", "visit_dataflow_var_def_", "visit_shuffle_"}
for _name in sorted(_OWN):
    setattr(ExprFunctor, _name, _absent(_name))


class PyExprVisitor(ExprFunctor):
    """The base of visitors: every method goes on to the parts of what it visits."""

    def _leaf(self, expr):
        """A node without parts."""

    visit_var_ = visit_dataflow_var_ = visit_generic_const_ = visit_extern_func_ = visit_global_var_ = _leaf
    visit_op_ = visit_string_imm_ = visit_data_type_imm_ = _leaf
    visit_var_def_ = visit_dataflow_var_def_ = visit_span = _leaf

    def visit_expr_fallback_(self, op):
        """Visit the operands of a scalar."""
        for operand in _operands(op):
            self.visit_expr(operand)

    def visit_shape_expr_(self, op):
        """Visit the dimensions of a shape."""
        for dim in op.values:
            self.visit_expr(dim)

    def visit_tuple_(self, op):
        """Visit the fields of a tuple."""
        for field in op.fields:
            self.visit_expr(field)

    def visit_tuple_getitem_(self, op):
        """Visit the tuple."""
        self.visit_expr(op.tuple_value)

    def visit_call_(self, op):
        """Visit callee and arguments."""
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_if_(self, op):
        """Visit condition and branches."""
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_seq_expr_(self, op):
        """Visit blocks and result."""
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_function_(self, op):
        """Visit parameters and body."""
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_var_binding_(self, binding):
        """Visit value and variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding):
        """Visit value and variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block):
        """Visit the bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block):
        """Visit the bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)


class PyExprMutator(ExprFunctor):
    """The base of mutators: every method rebuilds what it visits of what its parts became.

    ``self.builder_`` is the builder that bindings go through: ``self.builder_.emit(expr)`` binds a value in front of the
    one that is being visited, and ``self.builder_.get()`` is the module.
    """

    def __init__(self, mod=None):
        self.builder_ = BlockBuilder(mod)

    @property
    def _remap(self):
        return self.__dict__.setdefault("_remapped", {})

    # Leaves.

    def visit_var_(self, op):
        """The variable, or what took its place."""
        return self._remap.get(op, op)

    visit_dataflow_var_ = visit_var_

    def _leaf(self, op):
        """A node without parts stays."""
        return op

    visit_generic_const_ = visit_extern_func_ = visit_global_var_ = visit_op_ = visit_string_imm_ = _leaf
    visit_data_type_imm_ = visit_span = _leaf

    # Nodes with parts.

    def visit_expr_fallback_(self, op):
        """The scalar of what its operands became."""
        operands = _operands(op)
        made = [self.visit_expr(operand) for operand in operands]
        return op if _same(made, operands) else _remade(op, made)

    def visit_shape_expr_(self, op):
        """The shape of what its dimensions became."""
        dims = [self.visit_expr(dim) for dim in op.values]
        return op if _same(dims, op.values) else ShapeExpr(dims)

    def visit_tuple_(self, op):
        """The tuple of what its fields became."""
        fields = [self.visit_expr(field) for field in op.fields]
        return op if _same(fields, op.fields) else Tuple(fields)

    def visit_tuple_getitem_(self, op):
        """The field of what the tuple became."""
        value = self.visit_expr(op.tuple_value)
        if value.same_as(op.tuple_value):
            return op
        return value.fields[op.index] if isinstance(value, Tuple) else TupleGetItem(value, op.index)

    def visit_call_(self, op):
        """The call of what callee and arguments became."""
        callee, args = self.visit_expr(op.op), [self.visit_expr(arg) for arg in op.args]
        if callee.same_as(op.op) and _same(args, op.args):
            return op
        args = [self.builder_.normalize(arg) if isinstance(arg, Call) else arg for arg in args]
        return Call(callee, args, op.attrs, list(op.ty_args) or None, op.span)

    def visit_if_(self, op):
        """The choice of what condition and branches became."""
        cond = self.visit_expr(op.cond)
        branches = [self.visit_with_new_scope(branch) for branch in (op.true_branch, op.false_branch)]
        if cond.same_as(op.cond) and _same(branches, (op.true_branch, op.false_branch)):
            return op
        return If(cond, *branches)

    def visit_seq_expr_(self, op):
        """The sequence of what blocks and result became."""
        return self._sequence(op)

    def visit_function_(self, op):
        """The function of what parameters and body became."""
        params = [self.visit_var_def(param) for param in op.params]
        body = self.visit_with_new_scope(op.body, params)
        if _same(params, op.params) and body.same_as(op.body):
            return op
        # What the signature says stays, as long as it is about the same result.
        ret_ty = op.ret_ty if body.ty == op.body.ty else None
        return Function(params, body, ret_ty, op.is_pure, op.attrs, op.span)

    # Bindings.

    def visit_var_binding_(self, binding):
        """Bind what the value became."""
        value = normal_call(self.builder_, self.builder_.normalize(self.visit_expr(binding.value)))
        var = self.visit_var_def(binding.var)
        if var.same_as(binding.var) and value.same_as(binding.value):
            self.builder_.emit_normalized(binding)
            return
        if var.ty != value.ty:
            var = self._define(binding.var, self.with_type(var, value.ty))
        self.builder_.emit_normalized(VarBinding(var, value))

    def visit_match_cast_(self, binding):
        """Check what the value became."""
        value, var = self.visit_expr(binding.value), self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var):
            self.builder_.emit_normalized(binding)
            return
        if isinstance(value, (Call, TupleGetItem)):
            value = self.builder_.emit(value)
        self.builder_.emit_normalized(MatchCast(var, value, binding.ty))

    def visit_binding_block_(self, block):
        """Emit what the bindings became, in a block."""
        self.builder_._end_dataflow()
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block):
        """Emit what the bindings became, in a dataflow block."""
        self.builder_._begin_dataflow()
        for binding in block.bindings:
            self.visit_binding(binding)
        self.builder_._end_dataflow()

    def visit_var_def_(self, var):
        """The variable, where it is bound."""
        return self._remap.get(var, var)

    visit_dataflow_var_def_ = visit_var_def_

    # What classes use.

    def visit_expr_post_order(self, expr):
        """The expression rebuilt of what its parts became, as if the class had no method of its own for its kind."""
        return getattr(PyExprMutator, _method(expr))(self, expr)

    def visit_with_new_scope(self, expr, params=()):
        """What a body or a branch became, as a sequence of its own."""
        return self._sequence(expr if isinstance(expr, SeqExpr) else SeqExpr([], expr), params)

    def _sequence(self, seq, params=()):
        self.builder_.begin_scope(list(params))
        try:
            for block in seq.blocks:
                self.visit_binding_block(block)
            body = self.visit_expr(seq.body)
        except BaseException:
            self.builder_.end_scope()
            raise
        made = self.builder_._end_scope(body)
        unchanged = made.body.same_as(seq.body) and len(made.blocks) == len(seq.blocks)
        for one, other in zip(made.blocks, seq.blocks):
            unchanged = unchanged and one.dataflow == other.dataflow and _same(one.bindings, other.bindings)
        return seq if unchanged else made

    def set_var_remap(self, old_var, new_var):
        """Use another variable in the place of one."""
        self._remap[old_var] = new_var

    def get_var_remap(self, var):
        """The variable that is used in the place of one."""
        return self._remap.get(var, var)

    def _define(self, old, new):
        if not new.same_as(old):
            self._remap[old] = new
        return new

    def with_type(self, var, ty):
        """A variable like one, of another type."""
        return var if var.ty == ty else type(var)(var.name_hint, ty, var.span)

    def lookup_binding(self, var):
        """The value that a variable is bound to in what was emitted."""
        return self.builder_.lookup_binding(var)


def _same(new, old):
    return len(new) == len(old) and all(a.same_as(b) for a, b in zip(new, old))


def visitor(visitor_cls):
    """Mark a class as a visitor; it derives from :class:`PyExprVisitor`."""
    return _derived(visitor_cls, PyExprVisitor)


def mutator(mutator_cls):
    """Mark a class as a mutator; it derives from :class:`PyExprMutator`."""
    made = _derived(mutator_cls, PyExprMutator)
    own = made.__init__

    def __init__(self, *args, **kwargs):
        own(self, *args, **kwargs)
        # A class that forgets its base's constructor has a builder all the same.
        if "builder_" not in self.__dict__:
            self.builder_ = BlockBuilder()

    if own is not PyExprMutator.__init__:
        made.__init__ = __init__
    return made


def _derived(cls, base):
    if not issubclass(cls, base):
        raise TypeError(f"{cls.__name__} does not derive from {base.__name__}")
    # TVM's decorator makes another class; this is the one that was written, in both.
    cls._cls = cls
    return cls


__all__ = ["Expr", "ExprFunctor", "PyExprMutator", "PyExprVisitor", "mutator", "visitor"]
