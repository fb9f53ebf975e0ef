"""Modules that TVM 0.27 wrote as graphs: kernels of blocks, as databases of tuning have them.

A graph is a list of nodes, each with its type and its fields, which are numbers of other nodes. Kernels are made anew of them; what no
kernel of a database has (Relax functions, tile programs) is an error that names it.
"""

from ...ir import IRModule, Range, prim
from ...tirx import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    PrimFunc,
    SeqStmt,
    Var,
    While,
    decl_buffer,
)
from ..stmt import MatchBufferRegion, SBlock, SBlockRealize


def module_of(graph):
    """The module of a graph."""
    try:
        made = _Reader(graph["nodes"]).at(graph["root_index"])
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError(f"the graph of a module is broken: {type(error).__name__}: {error}") from None
    if isinstance(made, PrimFunc):
        return IRModule({"main": made})
    if not isinstance(made, IRModule):
        raise ValueError(f"the graph is a {type(made).__name__}, not a module")
    return made


_BINARY = {f"prim.{name}": getattr(prim, name) for name in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or".split()}


class _Reader:
    def __init__(self, nodes):
        self._nodes, self._made = nodes, {}

    def at(self, index):
        """What a node stands for; each is made once."""
        if index not in self._made:
            node = self._nodes[index]
            rule = _RULES.get(node["type"])
            if node["type"] in _BINARY:
                made = self._binary(node)
            elif rule is None:
                raise ValueError(f"modules with {node['type']} are not read")
            else:
                made = rule(self, node.get("data"))
            self._made[index] = made
        return self._made[index]

    def _binary(self, node):
        data = node["data"]
        return _BINARY[node["type"]](self.at(data["a"]), self.at(data["b"]))

    def _list(self, data):
        return [self.at(index) for index in data]

    def _map(self, data):
        return {self.at(key): self.at(value) for key, value in zip(data[::2], data[1::2])}

    def _dtype(self, data):
        ty = self._nodes[data["ty"]]
        return self._data(ty["data"]["dtype"]) if "dtype" in ty["data"] else "handle"

    def _data(self, value):
        """A plain value, which may be a node of its own."""
        if isinstance(value, int):
            node = self._nodes[value]
            return node["data"] if node["type"] in ("dtype", "ffi.String", "DataType") else str(self.at(value))
        return value

    def _text(self, value):
        return value if isinstance(value, str) else self._nodes[value]["data"]

    def _number(self, value):
        """A field that is a number itself, or a node."""
        return value

    def _var(self, data):
        ty = self._nodes[data["ty"]]
        name = self._text(data["name"])
        if ty["type"] == "tirx.BufferType":
            return self._buffer(name, ty["data"])
        if ty["type"] == "ir.PrimType":
            return Var(name, self._data(ty["data"]["dtype"]))
        return Var(name, "handle")

    def _buffer(self, name, ty):
        return decl_buffer(
            self.at(ty["shape"]),
            self._type_name(ty["dtype"]),
            name,
            strides=self.at(ty["strides"]) or None,
            elem_offset=self._offset(ty.get("elem_offset")),
            scope=self._text(ty["storage_scope"]) or "global",
            data_alignment=ty["data_alignment"],
            # A factor of one says nothing, but a variable would stand for the offset.
            offset_factor=ty["offset_factor"] if ty["offset_factor"] > 1 else 0,
        )

    def _type_name(self, value):
        if isinstance(value, str):
            return value
        node = self._nodes[value]
        return self._data(node["data"]["dtype"]) if node["type"] == "ir.PrimType" else node["data"]

    def _offset(self, index):
        value = None if index is None else self.at(index)
        return None if getattr(value, "value", 0) == 0 and not isinstance(value, Var) else value

    def _axis(self, data):
        return IterVar(self.at(data["dom"]), self.at(data["var"]), data["iter_type"])

    def _region(self, data):
        return BufferRegion(self.at(data["source"]), self.at(data["region"]))

    def _load(self, data):
        return BufferLoad(self.at(data["source"]), self.at(data["indices"]))

    def _call(self, data):
        from ...tirx import call_intrin

        op = self.at(data["op"])
        return call_intrin(self._dtype(data), op, *self.at(data["args"]))

    def _loop(self, data):
        kind = ForKind(data["kind"])
        binding = self.at(data["thread_binding"]) if data.get("thread_binding") else None
        tag = self._text(self._nodes[data["thread_binding"]]["data"]["thread_tag"]) if binding is not None else None
        step = self.at(data["step"]) if data.get("step") else None
        parts = (self.at(data[key]) for key in ("loop_var", "min", "extent"))
        return For(*parts, kind, self.at(data["body"]), tag, self.at(data["annotations"]), step)

    def _block(self, data):
        return SBlock(
            self.at(data["iter_vars"]),
            self.at(data["reads"]),
            self.at(data["writes"]),
            self._text(data["name_hint"]),
            self.at(data["body"]),
            self.at(data["init"]) if data.get("init") else None,
            self.at(data["alloc_buffers"]),
            self.at(data["match_buffers"]),
            self.at(data["annotations"]),
        )

    def _function(self, data):
        from ...ir import DictAttrs

        attrs = self.at(data["attrs"]) if data.get("attrs") else {}
        params, buffers = [], {}
        for param in self.at(data["params"]):
            if hasattr(param, "shape"):
                handle = Var(f"{param.name}_handle", "handle")
                buffers[handle] = param
                params.append(handle)
            else:
                params.append(param)
        return PrimFunc(params, self.at(data["body"]), buffer_map=buffers, attrs=DictAttrs(attrs))

    def _module(self, data):
        functions = self.at(data["functions"])
        return IRModule({getattr(var, "name_hint", var): func for var, func in functions.items()})


def _same(reader, data):
    return data


_RULES = {
    "None": lambda reader, data: None,
    "int": _same,
    "bool": _same,
    "float": _same,
    "ffi.String": _same,
    "dtype": _same,
    "DataType": _same,
    "ffi.Array": _Reader._list,
    "ffi.Map": _Reader._map,
    "ffi.Dict": _Reader._map,
    "ir.DictAttrs": lambda reader, data: reader.at(data["__dict__"]),
    "ir.GlobalVar": lambda reader, data: reader._text(data["name_hint"]),
    "ir.Op": lambda reader, data: data if isinstance(data, str) else reader._text(data["name"]),
    "ir.IntImm": lambda reader, data: prim.IntImm(reader._dtype(data), reader.at(data["value"])),
    "ir.FloatImm": lambda reader, data: prim.FloatImm(reader._dtype(data), float(data["value"])),
    "ir.StringImm": lambda reader, data: prim.StringImm(reader._text(data["value"])),
    "ir.Var": _Reader._var,
    "ir.SizeVar": _Reader._var,
    "ir.Range": lambda reader, data: Range.from_min_extent(reader.at(data["min"]), reader.at(data["extent"])),
    "ir.Call": _Reader._call,
    "prim.Not": lambda reader, data: prim.Not(reader.at(data["a"])),
    "prim.Cast": lambda reader, data: prim.Cast(reader._dtype(data), reader.at(data["value"])),
    "prim.Select": lambda reader, data: prim.Select(*(reader.at(data[key]) for key in ("condition", "true_value", "false_value"))),
    "prim.Let": lambda reader, data: prim.Let(*(reader.at(data[key]) for key in ("var", "value", "body"))),
    "ir.TensorLoad": _Reader._load,
    "ir.TensorRegion": _Reader._region,
    "tirx.IterVar": _Reader._axis,
    "tirx.For": _Reader._loop,
    "tirx.While": lambda reader, data: While(reader.at(data["condition"]), reader.at(data["body"])),
    "tirx.SeqStmt": lambda reader, data: SeqStmt(reader.at(data["seq"])),
    "tirx.BufferStore": lambda reader, data: BufferStore(*(reader.at(data[key]) for key in ("buffer", "value", "indices"))),
    "tirx.Evaluate": lambda reader, data: Evaluate(reader.at(data["value"])),
    "tirx.Bind": lambda reader, data: Bind(reader.at(data["var"]), reader.at(data["value"])),
    "tirx.AllocBuffer": lambda reader, data: AllocBuffer(reader.at(data["buffer"])),
    "tirx.AttrStmt": lambda reader, data: AttrStmt(None, reader._text(data["attr_key"]), reader.at(data["value"]), reader.at(data["body"])),
    "tirx.AssertStmt": lambda reader, data: AssertStmt(reader.at(data["kind"]), reader.at(data["condition"]), reader.at(data["message_parts"])),
    "tirx.IfThenElse": lambda reader, data: IfThenElse(
        reader.at(data["condition"]), reader.at(data["then_case"]), reader.at(data["else_case"]) if data.get("else_case") else None
    ),
    "s_tir.SBlock": _Reader._block,
    "s_tir.SBlockRealize": lambda reader, data: SBlockRealize(*(reader.at(data[key]) for key in ("iter_values", "predicate", "block"))),
    "s_tir.MatchBufferRegion": lambda reader, data: MatchBufferRegion(reader.at(data["buffer"]), reader.at(data["source"])),
    "tirx.PrimFunc": _Reader._function,
    "ir.IRModule": _Reader._module,
}

__all__ = ["module_of"]
