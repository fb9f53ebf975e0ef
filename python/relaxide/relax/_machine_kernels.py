"""A program that is lowered for the machine, as kernels over lists of values.

Each Relax function ``f`` is a kernel ``__vmtir__f(ctx_ptr, r, c, f)``: what the machine's instructions would do, as calls
that read the registers ``r``, the constants ``c`` and the functions ``f`` and write registers. The parameters are the first
registers, and the result is the one behind them.

The text shows what ``exec_mode="compiled"`` runs; machine code is made of the program itself.
"""

from ..ir.expr import Call, Constant, GlobalVar, Tuple, TupleGetItem, Var, is_prim_expr
from ..ir.module import IRModule
from ..ir.op import Op
from ..ir.prim import StringImm
from ..script import parse
from ..tirx.function import PrimFunc
from .expr import DataTypeImm, ExternFunc, Function, If, ShapeExpr


def as_kernels(mod):
    """The module with a kernel in the place of each Relax function."""
    functions = {var: func for var, func in mod.functions_items()}
    numbers = {}
    for var, func in functions.items():
        if isinstance(func, Function):
            numbers[var.name_hint] = len(numbers)
    kernels = {var: func for var, func in functions.items() if isinstance(func, PrimFunc)}
    for var, func in functions.items():
        if isinstance(func, Function):
            name = f"__vmtir__{var.name_hint}"
            kernels[GlobalVar(name)] = _Text(mod, numbers).kernel(name, func)
    return IRModule(kernels)


#: The operators that are left in a lowered program, by the functions of the machine that they are.
_BUILTINS = {
    "null_value": "vm.builtin.null_value",
    "vm.alloc_storage": "vm.builtin.alloc_storage",
    "vm.alloc_tensor": "vm.builtin.alloc_tensor",
    "vm.call_tir_dyn": "vm.builtin.call_tir_dyn",
}


class _Text:
    """Writes the kernel of one function."""

    def __init__(self, mod, numbers):
        self.mod, self.numbers = mod, numbers
        self.lines, self.depth = [], 1
        #: What stands for a variable.
        self.values = {}
        #: The functions outside the module that have names.
        self.externals = {}
        self.constants, self.registers = [], 0

    def kernel(self, name, func):
        for param in func.params:
            self.values[param] = f"T.anylist_getitem(r, {self.register()})"
        result = self.register()
        self.copy(result, self.sequence(func.body))
        head = [
            "@T.prim_func(s_tir=True)",
            f"def {name}(ctx_ptr: T.handle, r: T.handle, c: T.handle, f: T.handle):",
            f'    T.func_attr({{"global_symbol": {name!r}}})',
        ]
        return parse("\n".join([*head, *self.lines]))

    def register(self):
        self.registers += 1
        return self.registers - 1

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def call(self, register, callee, args, how="packed"):
        """A call; its result goes to a register, if there is one."""
        given = ", ".join([repr(callee), *args])
        if register is None:
            self.line(f"T.call_{how}({given})")
        else:
            self.line(f"T.anylist_setitem_call_{how}(r, {register}, {given})")

    def copy(self, register, value):
        self.call(register, "vm.builtin.copy", [value])

    def sequence(self, seq):
        """Writes the bindings of a sequence, and gives its result."""
        for block in seq.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self.bound(binding.value)
                if isinstance(binding.value, ExternFunc):
                    self.externals[binding.var] = binding.value.global_symbol
        return self.operand(seq.body)

    def bound(self, value):
        if isinstance(value, If):
            return self.choice(value)
        if isinstance(value, TupleGetItem):
            return self.called("vm.builtin.tuple_getitem", [self.operand(value.tuple_value), f"T.int64({value.index})"])
        if isinstance(value, Call):
            return self.any_call(value)
        return self.operand(value)

    def called(self, callee, args, how="packed", void=False):
        register = None if void else self.register()
        self.call(register, callee, args, how)
        return f"T.anylist_getitem(r, {register})"

    def any_call(self, call):
        op, void = call.op, _is_void(call.ty)
        if isinstance(op, Op):
            return self.builtin(op.name.removeprefix("relax."), call, void)
        args, symbol = [self.operand(arg) for arg in call.args], self.externals.get(op)
        if isinstance(op, ExternFunc):
            symbol = op.global_symbol
        if symbol is not None:
            return self.called(symbol, args, void=void)
        if isinstance(op, GlobalVar) and isinstance(self.mod[op], PrimFunc):
            return self.called(self.mod[op].attrs.get("global_symbol", op.name_hint), args, "cpacked", void)
        return self.called("vm.builtin.invoke_closure", ["ctx_ptr", self.operand(op), *args], void=void)

    def builtin(self, name, call, void):
        """A call of an operator that the machine knows."""
        if name == "call_builtin_with_ctx":
            given = [self.operand(arg) for arg in call.args[1].fields]
            return self.called(call.args[0].global_symbol, ["ctx_ptr", *given], void=void)
        args = [self.operand(arg) for arg in call.args]
        if name == "vm.kill_object":
            self.line(f"T.anylist_resetitem({args[0].removeprefix('T.anylist_getitem(')}")
            return args[0]
        if name not in _BUILTINS:
            raise ValueError(f"relax.{name} is no instruction of the machine: lower the program first")
        if name == "vm.alloc_storage":
            args.insert(0, "ctx_ptr")
        return self.called(_BUILTINS[name], args, void=void)

    def choice(self, choice):
        condition = self.operand(choice.cond)
        register = self.register()
        asked = f'T.call_intrin("bool", "tirx.call_packed", "vm.builtin.read_if_cond", {condition})'
        for keyword, branch in ((f"if {asked}:", choice.true_branch), ("else:", choice.false_branch)):
            self.line(keyword)
            self.depth += 1
            self.copy(register, self.sequence(branch))
            self.depth -= 1
        return f"T.anylist_getitem(r, {register})"

    def operand(self, value):
        if isinstance(value, Var):
            return self.values[value]
        if isinstance(value, (GlobalVar, ExternFunc)):
            name = value.name_hint if isinstance(value, GlobalVar) else value.global_symbol
            return f"T.anylist_getitem(f, {self.numbers.setdefault(name, len(self.numbers))})"
        if isinstance(value, Tuple):
            return self.called("vm.builtin.make_tuple", [self.operand(field) for field in value.fields])
        if isinstance(value, StringImm):
            return repr(str(value.value))
        if isinstance(value, (Constant, DataTypeImm, ShapeExpr)):
            return self.constant(value)
        if is_prim_expr(value):
            return value.script(verbose_expr=False).strip().splitlines()[-1]
        if isinstance(value, (Call, TupleGetItem, If)):
            return self.bound(value)
        raise ValueError(f"a value of type {type(value).__name__} is nothing that the machine reads: lower the program first")

    def constant(self, value):
        at = next((i for i, known in enumerate(self.constants) if known.same_as(value)), len(self.constants))
        if at == len(self.constants):
            self.constants.append(value)
        return f"T.anylist_getitem(c, {at})"


def _is_void(ty):
    return getattr(ty, "fields", None) is not None and len(ty.fields) == 0
