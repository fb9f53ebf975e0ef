"""Programs as their nodes: every node with its fields, for those who want to see what a program is made of."""

from ...ir import GenericConst, GlobalVar, Op, StringImm, is_prim_expr
from ...ir.type import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType
from ..expr import BindingBlock, Call, DataflowBlock, DataflowVar, DataTypeImm, ExternFunc, Function, If, MatchCast, SeqExpr, ShapeExpr, Tuple
from ..expr import TupleGetItem, Var, VarBinding


def wrap_quotes(text):
    """A text in quotes."""
    return f'"{text}"'


def _attribute(value):
    return wrap_quotes(value) if isinstance(value, str) else str(value)


class ASTPrinter:
    """Writes nodes as ``Name(field=..., field=...)``, nested nodes on lines of their own.

    Parameters
    ----------
    indent_str : str
        What nested lines begin with.
    include_ty_annotations : bool
        Whether expressions have their types, as a field ``ty``.
    include_call_attrs : bool
        Whether calls have their attributes.
    """

    def __init__(self, indent_str="    ", include_ty_annotations=True, include_call_attrs=True):
        self.indent_str, self.include_ty_annotations, self.include_call_attrs = indent_str, include_ty_annotations, include_call_attrs

    def indent(self, text):
        """The lines of a text, moved to the right."""
        return "\n".join(f"{self.indent_str}{line}" for line in text.split("\n")) if text else ""

    def build_list(self, members, open_tok="[", close_tok="]", force_newline=False):
        """Several texts between two marks: in one line where there is one of one line, unless ``force_newline``."""
        members = list(members)
        if not members or len(members) == 1 and not force_newline and "\n" not in members[0]:
            return open_tok + "".join(members) + close_tok
        lines = ",\n".join(map(self.indent, members))
        return f"{open_tok}\n{lines}\n{close_tok}"

    def build_ast_node(self, nodename, force_newline=False, **kwargs):
        """A node of a name and fields."""
        fields = (f"{name}={value}" for name, value in kwargs.items())
        return self.build_list(fields, f"{nodename}(", ")", force_newline)

    def build_expr(self, node, nodename, force_newline=False, **kwargs):
        """A node that is an expression: the type is a field too, where it is known and wanted."""
        if self.include_ty_annotations and not node.ty.is_missing():
            kwargs["ty"] = self.visit_ty_(node.ty)
        return self.build_ast_node(nodename, force_newline, **kwargs)

    def _list(self, values):
        return self.build_list(map(self.visit_expr, values))

    def _attributes(self, attrs):
        return self.build_list((f"{wrap_quotes(name)}: {_attribute(value)}" for name, value in attrs.items()), "{", "}")

    def visit_expr(self, expr):
        """Any node: an expression, a binding, a block."""
        for kind, visit in self._VISITORS:
            if isinstance(expr, kind):
                return visit(self, expr)
        if is_prim_expr(expr):
            return self.visit_prim_expr_field_(expr)
        raise ValueError(f"{type(expr).__name__} is no node of Relax: {expr}")

    def visit_prim_expr_field_(self, prim_expr):
        """A scalar: its text."""
        text = prim_expr.name if isinstance(prim_expr, Var) else str(prim_expr)
        return self.build_ast_node("Expr", value=f"`{text}`")

    def visit_generic_const_(self, op):
        """A constant."""
        shaped = bool(len(getattr(op.value, "shape", ())))
        return self.build_expr(op, "GenericConst", force_newline=shaped, value=str(op.value))

    def visit_tuple_(self, op):
        """A tuple."""
        return self.build_expr(op, "Tuple", fields=self._list(op.fields))

    def visit_tuple_getitem_(self, op):
        """A field of a tuple."""
        return self.build_expr(op, "TupleGetItem", tuple_value=self.visit_expr(op.tuple_value), index=str(op.index))

    def visit_dataflow_var_(self, op):
        """A variable of a dataflow block."""
        return self.build_expr(op, "DataflowVar", name=wrap_quotes(op.name))

    def visit_var_(self, op):
        """A variable."""
        return self.build_expr(op, "Var", name=wrap_quotes(op.name))

    def visit_shape_expr_(self, op):
        """A shape."""
        return self.build_expr(op, "ShapeExpr", values=self.build_list(map(self.visit_prim_expr_field_, op.values)))

    def visit_extern_func_(self, op):
        """A function outside the module."""
        return self.build_ast_node("ExternFunc", global_symbol=wrap_quotes(op.global_symbol))

    def visit_global_var_(self, op):
        """A function of the module."""
        return self.build_expr(op, "GlobalVar", name_hint=wrap_quotes(op.name_hint))

    def visit_op_(self, op):
        """An operator."""
        return self.build_ast_node("Op", name=wrap_quotes(op.name))

    def visit_string_imm_(self, op):
        """A text."""
        return self.build_expr(op, "StringImm", value=wrap_quotes(op.value))

    def visit_data_type_imm_(self, op):
        """An element type."""
        return self.build_expr(op, "DataTypeImm", value=str(op.value))

    def visit_function_(self, op):
        """A function."""
        fields = {"params": self._list(op.params), "body": self.visit_expr(op.body), "ret_ty": self.visit_ty_(op.ret_ty)}
        fields["is_pure"] = str(op.is_pure)
        if op.attrs:
            fields["attrs"] = self._attributes(op.attrs)
        return self.build_expr(op, "Function", **fields)

    def visit_call_(self, op):
        """A call."""
        fields = {"op": self.visit_expr(op.op), "args": self._list(op.args)}
        if len(op.ty_args):
            fields["ty_args"] = self.build_list(map(self.visit_ty_, op.ty_args))
        if op.attrs and self.include_call_attrs:
            fields["attrs"] = self._attributes(op.attrs)
        return self.build_expr(op, "Call", **fields)

    def visit_seq_expr_(self, op):
        """Blocks, and what follows from them."""
        return self.build_expr(op, "SeqExpr", blocks=self._list(op.blocks), body=self.visit_expr(op.body))

    def visit_if_(self, op):
        """A choice."""
        parts = {name: self.visit_expr(getattr(op, name)) for name in ("cond", "true_branch", "false_branch")}
        return self.build_expr(op, "If", **parts)

    def visit_binding_block_(self, block):
        """A block of bindings."""
        return self._block("BindingBlock", block)

    def visit_dataflow_block_(self, block):
        """A block of bindings without effects."""
        return self._block("DataflowBlock", block)

    def _block(self, name, block):
        return self.build_ast_node(name, bindings=self.build_list(map(self.visit_expr, block.bindings), force_newline=True))

    def visit_binding_(self, binding):
        """A binding of either kind."""
        return self.visit_expr(binding)

    def visit_match_cast_(self, match_cast):
        """A binding that checks a type."""
        var, value = self.visit_expr(match_cast.var), self.visit_expr(match_cast.value)
        return self.build_ast_node("MatchCast", var=var, value=value, ty=self.visit_ty_(match_cast.ty))

    def visit_var_binding_(self, var_binding):
        """A binding."""
        return self.build_ast_node("VarBinding", var=self.visit_expr(var_binding.var), value=self.visit_expr(var_binding.value))

    def visit_type_(self, type_node):
        """A type without its dimensions."""
        return self._type(type_node, self.visit_type_, whole=False)

    def visit_ty_(self, ty_node):
        """A type with its dimensions."""
        return self._type(ty_node, self.visit_ty_, whole=True)

    def _type(self, ty, visit, whole):
        if isinstance(ty, (AnyType, StringType)):
            return self.build_ast_node(type(ty).__name__)
        if isinstance(ty, PrimType):
            return self.build_ast_node("PrimType", dtype=str(ty.dtype))
        if isinstance(ty, ShapeType):
            known = whole and ty.values is not None
            values = {"values": self.build_list(map(self.visit_prim_expr_field_, ty.values))} if known else {}
            return self.build_ast_node("ShapeType", ndim=str(ty.ndim), **values)
        if isinstance(ty, TensorType):
            fields = {"dtype": str(ty.dtype)}
            if not whole:
                fields = {"ndim": str(ty.ndim), **fields}
            elif ty.shape is not None:
                fields["shape"] = self.visit_expr(ty.shape)
            else:
                fields["ndim"] = str(ty.ndim)
            return self.build_ast_node("TensorType", **fields)
        if isinstance(ty, TupleType):
            return self.build_ast_node("TupleType", fields=self.build_list(map(visit, ty.fields)))
        if isinstance(ty, FuncType):
            if not whole and ty.params is None and isinstance(ty.ret, AnyType):
                return self.build_ast_node("PackedFuncType")
            params = {} if ty.params is None else {"params": self.build_list(map(visit, ty.params))}
            return self.build_ast_node("FuncType", **params, ret=visit(ty.ret), purity=str(bool(ty.purity)))
        raise ValueError(f"{type(ty).__name__} is no type of Relax: {ty}")

    #: What visits a node: the first whose class it has.
    _VISITORS = (
        (DataflowBlock, visit_dataflow_block_),
        (BindingBlock, visit_binding_block_),
        (MatchCast, visit_match_cast_),
        (VarBinding, visit_var_binding_),
        (DataflowVar, visit_dataflow_var_),
        (Var, visit_var_),
        (GenericConst, visit_generic_const_),
        (Tuple, visit_tuple_),
        (TupleGetItem, visit_tuple_getitem_),
        (ShapeExpr, visit_shape_expr_),
        (ExternFunc, visit_extern_func_),
        (GlobalVar, visit_global_var_),
        (Op, visit_op_),
        (StringImm, visit_string_imm_),
        (DataTypeImm, visit_data_type_imm_),
        (Function, visit_function_),
        (SeqExpr, visit_seq_expr_),
        (If, visit_if_),
        (Call, visit_call_),
    )


def dump_ast(exp, indent_str="    ", include_ty_annotations=True, include_call_attrs=True):
    """A node, and all that it is made of, as text; options are those of :class:`ASTPrinter`."""
    return ASTPrinter(indent_str, include_ty_annotations, include_call_attrs).visit_expr(exp)


__all__ = ["ASTPrinter", "dump_ast", "wrap_quotes"]
