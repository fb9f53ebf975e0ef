"""Which tensors lie in textures: the memory scopes of the tensors of a program, as devices of their types say them.

A texture holds images of elements of four values, so that a tensor of five dimensions whose last is four may lie in one
(``NCHW4c``): its other dimensions are folded to layers, rows and columns, each less than the device's limits.

================================  =======  =======  ===========
scope                             layers   rows     columns
================================  =======  =======  ===========
``global.texture-weight``         1        a        b * c * d
``global.texture-nhwc``           a        b        c * d
``global.texture``                a * b    c        d
================================  =======  =======  ===========

of a tensor ``(a, b, c, d, 4)``. The first that fits is taken.
"""

from collections import defaultdict

from ....ir.expr import Call, Tuple, TupleGetItem
from ....ir.module import IRModule
from ....ir.op import Op
from ....ir.transform import module_pass
from ....target import Target
from ....tirx.function import PrimFunc
from ...expr import BindingBlock, Constant, DataflowBlock, Function, SeqExpr, Var, VarBinding
from ...type import TensorType, TupleType
from ._scopes import GLOBAL, scope_of, with_device

#: Kernels of less than this pattern compute each element of a few elements at once: elementwise, broadcast, injective.
_REDUCES = 3


def AnnotateCustomMemoryScope(target=None):
    """A pass that says of each tensor of a program where it lies: in a texture where who makes it can write one and all who use it can
    read one, in plain memory otherwise. Where one reads a texture and another plain memory, the tensor lies in plain memory and is
    copied (``to_vdevice``) for those that read textures.

    Convolutions of packed layouts (``NCHW4c``) and pools read and write textures, weights apart, and so do kernels without a reduction
    (``op_pattern``, as ``AnnotateTIROpPattern`` says it).

    Parameters
    ----------
    target : Target, optional
        The device; the current one where none is given. ``texture_spatial_limit`` and ``texture_depth_limit`` are its limits, 16384
        and 2048 where it does not say them.
    """

    def run(mod, ctx):
        device = Target(target) if target is not None else Target.current(allow_none=False)
        return _Annotate(mod, device).module()

    return module_pass(run, opt_level=0, name="AnnotateCustomMemoryScope")


def FoldVDeviceScopeChange():
    """A pass that makes a kernel write where its result is copied to: where a tensor that a kernel makes is used by copies
    (``to_vdevice``) to one other scope of the same device alone, the kernel's result lies there and the copies go."""

    def run(mod, ctx):
        made = {var: _folded(func) if isinstance(func, Function) else func for var, func in mod.functions_items()}
        return IRModule(made, attrs=mod.attrs, global_infos=mod.global_infos)

    return module_pass(run, opt_level=0, name="FoldVDeviceScopeChange")


def _bindings(func):
    return [binding for block in func.body.blocks for binding in block.bindings]


def _is_call_of_kernel(value):
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "relax.call_tir"


def _is_plain(func):
    """Whether every binding is a call, a tuple, a field of one, or another name: nothing that has bindings of its own."""
    kinds = (Call, Tuple, TupleGetItem, Var, Constant)
    return all(isinstance(binding, VarBinding) and isinstance(binding.value, kinds) for binding in _bindings(func))


def _operands(value):
    """The tensors that a call reads: of a call of a kernel, the kernel's."""
    if _is_call_of_kernel(value):
        return list(value.args[1])
    return list(value.args) if isinstance(value, Call) else []


class _Annotate:
    """A module on its way to devices."""

    def __init__(self, mod, target):
        self.mod, self.target = mod, target
        self.devices = {}
        self.patterns = {}
        for var, func in mod.functions_items():
            if isinstance(func, PrimFunc) and func.attrs is not None and "op_pattern" in func.attrs:
                self.patterns[var.name_hint] = int(func.attrs["op_pattern"])

    def module(self):
        made = {}
        for var, func in self.mod.functions_items():
            made[var] = self.function(func) if isinstance(func, Function) and _is_plain(func) else func
        infos = dict(self.mod.global_infos)
        infos["vdevice"] = [*infos.get("vdevice", []), *self.devices.values()]
        return IRModule(made, attrs=self.mod.attrs, global_infos=infos)

    def typed(self, ty, scope):
        """A type whose tensors lie in a scope."""
        return with_device(ty, self.target, scope, self.devices)

    def can(self, value):
        """Whether a call reads and writes textures."""
        if _is_call_of_kernel(value):
            made = value.ty.fields if isinstance(value.ty, TupleType) else [value.ty]
            # A kernel that changes the form of a tensor reads it in an order of its own.
            keeps_form = all(scope_of(ty, self.target) != GLOBAL for ty in made)
            return keeps_form and self.patterns.get(value.args[0].name_hint, _REDUCES) < _REDUCES
        name = value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else ""
        if name == "relax.nn.conv2d":
            return value.attrs.data_layout == "NCHW4c" and value.attrs.out_layout == "NCHW4c"
        return name in ("relax.nn.max_pool2d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool2d") and value.attrs.layout == "NCHW4c"

    def wanted(self, value, at, ty):
        """The scope in which a call wants an operand."""
        is_weight = at == 1 and isinstance(value.op, Op) and value.op.name == "relax.nn.conv2d"
        return scope_of(ty, self.target) if self.can(value) and not is_weight else GLOBAL

    def scopes(self, func):
        """The scope of each variable that is bound to a tensor."""
        wishes = defaultdict(list)
        for binding in _bindings(func):
            value = binding.value
            if isinstance(value, Call):
                for at, arg in enumerate(_operands(value)):
                    if isinstance(arg, Var):
                        wishes[arg].append(self.wanted(value, at, arg.ty))
            else:
                parts = value.fields if isinstance(value, Tuple) else [getattr(value, "tuple_value", value)]
                for part in parts:
                    wishes[part].append(GLOBAL)
        wishes[func.body.body].append(GLOBAL)
        made = {}
        for binding in _bindings(func):
            var, value = binding.var, binding.value
            fits = isinstance(value, Call) and isinstance(var.ty, TensorType) and self.writes(value)
            wished = wishes[var]
            textures = {wish for wish in wished if wish != GLOBAL}
            made[var] = textures.pop() if fits and len(textures) == 1 and GLOBAL not in wished else GLOBAL
        return made

    def writes(self, value):
        """Whether what a call makes may lie in a texture: a kernel writes any memory, an operator what it can."""
        return _is_call_of_kernel(value) or self.can(value)

    def function(self, func):
        self.scope, self.new = self.scopes(func), {}
        params = []
        for param in func.params:
            self.new[param] = Var(param.name_hint, self.typed(param.ty, GLOBAL), param.span)
            params.append(self.new[param])
        blocks = []
        for block in func.body.blocks:
            bindings = []
            for binding in block.bindings:
                self.bind(binding, bindings)
            blocks.append((DataflowBlock if isinstance(block, DataflowBlock) else BindingBlock)(bindings))
        body = self.mapped(func.body.body)
        return Function(params, SeqExpr(blocks, body), body.ty, func.is_pure, func.attrs, func.span)

    def mapped(self, expr):
        """An operand with variables of the new types."""
        if isinstance(expr, Tuple):
            return Tuple([self.mapped(field) for field in expr.fields])
        return self.new.get(expr, expr) if isinstance(expr, Var) else expr

    def bind(self, binding, bindings):
        var, value = binding.var, binding.value
        ty = self.typed(var.ty, self.scope[var])
        if isinstance(value, Call):
            value = self.call(value, ty, bindings)
        elif isinstance(value, Tuple):
            value = self.mapped(value)
            ty = value.ty
        elif isinstance(value, TupleGetItem):
            value = TupleGetItem(self.mapped(value.tuple_value), value.index)
            ty = value.ty
        else:
            value = self.mapped(value)
            ty = value.ty
        self.new[var] = type(var)(var.name_hint, ty, var.span)
        bindings.append(VarBinding(self.new[var], value))

    def call(self, value, ty, bindings):
        operands = []
        for at, arg in enumerate(_operands(value)):
            operand = self.mapped(arg)
            wish = self.wanted(value, at, arg.ty) if isinstance(arg, Var) and isinstance(arg.ty, TensorType) else GLOBAL
            if wish != GLOBAL and self.scope.get(arg, GLOBAL) == GLOBAL:
                operand = self.copied(operand, wish, bindings)
            operands.append(operand)
        if _is_call_of_kernel(value):
            types = [self.typed(one, ty.vdevice.memory_scope if isinstance(ty, TensorType) else GLOBAL) for one in value.ty_args]
            return Call(value.op, [value.args[0], Tuple(operands), *value.args[2:]], value.attrs, types, value.span)
        return Call(value.op, operands, value.attrs, list(value.ty_args) or None, value.span, ty)

    def copied(self, operand, scope, bindings):
        """The copy of a tensor in another scope."""
        from ...expr import DataflowVar
        from ...op import to_vdevice

        ty = self.typed(operand.ty, scope)
        copy = DataflowVar(f"{operand.name_hint}_texture", ty)
        bindings.append(VarBinding(copy, to_vdevice(operand, ty.vdevice)))
        return copy


def _target_of_copy(value):
    """The device to which a value is a copy; ``None`` for other values."""
    is_copy = isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "relax.to_vdevice"
    return value.attrs.dst_vdevice if is_copy else None


def _folded(func):
    """A function without copies that the kernel before them may make itself."""
    if not _is_plain(func):
        return func
    bound = {binding.var: binding.value for binding in _bindings(func)}
    copies, others = defaultdict(list), {func.body.body}
    for var, value in bound.items():
        if _target_of_copy(value) is not None:
            copies[value.args[0]].append(var)
            continue
        parts = value.fields if isinstance(value, Tuple) else [getattr(value, "tuple_value", value)]
        others.update(_operands(value) if isinstance(value, Call) else parts)
    moved = {}
    for var, made in copies.items():
        devices = {str(copy.ty.vdevice): copy.ty for copy in made}
        kernel = bound.get(var)
        same = var.ty.vdevice is not None and len(devices) == 1
        ty = made[0].ty
        same = same and ty.vdevice.target == var.ty.vdevice.target
        if same and var not in others and _is_call_of_kernel(kernel):
            moved[var] = ty
    return _with_results(func, moved, copies) if moved else func


def _with_results(func, moved, copies):
    """A function whose kernels ``moved`` have results of other types, which take the place of the copies."""
    new = {}

    def mapped(expr):
        if isinstance(expr, Tuple):
            return Tuple([mapped(field) for field in expr.fields])
        return new.get(expr, expr) if isinstance(expr, Var) else expr

    blocks = []
    for block in func.body.blocks:
        bindings = []
        for binding in block.bindings:
            var, value = binding.var, binding.value
            if _target_of_copy(value) is not None and value.args[0] in moved:
                new[var] = new[value.args[0]]
                continue
            if isinstance(value, TupleGetItem):
                value = TupleGetItem(mapped(value.tuple_value), value.index)
            elif isinstance(value, Call):
                args = [mapped(arg) for arg in value.args]
                types = [moved[var]] if var in moved else list(value.ty_args)
                value = Call(value.op, args, value.attrs, types or None, value.span, None if types else var.ty)
            else:
                value = mapped(value)
            if var in moved:
                new[var] = type(var)(var.name_hint, moved[var], var.span)
            bindings.append(VarBinding(new.get(var, var), value))
        blocks.append((DataflowBlock if isinstance(block, DataflowBlock) else BindingBlock)(bindings))
    return Function(func.params, SeqExpr(blocks, mapped(func.body.body)), func.ret_ty, func.is_pure, func.attrs, func.span)


__all__ = ["AnnotateCustomMemoryScope", "FoldVDeviceScopeChange"]
