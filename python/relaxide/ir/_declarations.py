"""Lines in front of a part of a program that say what the variables and buffers are that it uses and does not define."""


def declarations(node):
    """The lines, in the order in which the part uses what they are about."""
    from .expr import Var, is_prim_expr
    from .type import Type

    if isinstance(node, Type):
        return list(_of_symbols(_symbols_of_type(node), set()))
    if isinstance(node, Var):
        return list(_of_variable(node, set()))
    from ..tirx import Buffer, BufferRegion, IterVar, PrimFunc
    from ..tirx.stmt import Evaluate, Stmt

    if isinstance(node, PrimFunc):
        return []
    if isinstance(node, IterVar):
        return [_scalar(node.var)]
    if isinstance(node, Buffer):
        return [declared_buffer(node)]
    if isinstance(node, BufferRegion):
        return [declared_buffer(node.buffer)]
    if isinstance(node, Stmt) or is_prim_expr(node):
        return list(_of_kernel(node if isinstance(node, Stmt) else Evaluate(node)))
    return list(_of_relax(node))


def _of_kernel(stmt):
    from ..tirx import analysis

    # What a `T.Let` defines is named before the text that defines it.
    for var in _let(stmt):
        yield _scalar(var)
    buffers = analysis.used_buffers(stmt)
    addresses = {buffer.data for buffer in (*buffers, *_made(stmt))}
    for var in analysis.undefined_vars(stmt):
        if var not in addresses:
            yield _scalar(var)
    for buffer in buffers:
        yield declared_buffer(buffer)


def _let(stmt):
    """The variables that scalars in a statement define."""
    from ..tirx import Let
    from ..tirx._walk import scalars, walk, walk_scalar

    parts = (part for one in walk(stmt) for value in scalars(one) for part in walk_scalar(value))
    return list(dict.fromkeys(part.var for part in parts if isinstance(part, Let)))


def _made(stmt):
    """The buffers that a statement allocates or lays over an address; such an address may be of a buffer of its own."""
    from ..tirx import AllocBuffer, DeclBuffer
    from ..tirx._walk import walk

    made = [part for part in walk(stmt) if isinstance(part, (AllocBuffer, DeclBuffer))]
    return [part.buffer for part in made if not part.buffer.data.same_as(getattr(part, "data", None))]


def declared_buffer(buffer):
    """The line that says what a buffer is."""
    dims = ", ".join(str(dim) for dim in buffer.shape) + ("," if len(buffer.shape) == 1 else "")
    dtype = "" if str(buffer.dtype) == "float32" else f', "{buffer.dtype}"'
    return f"{buffer.name} = T.Buffer(({dims}){dtype})"


def _scalar(var):
    from .type import PointerType

    name = var.name or "v"
    if isinstance(var.ty, PointerType):
        of_what = str(getattr(var.ty.element_type, "dtype", "void"))
        if of_what in ("void", "handle"):
            return f"{name} = T.handle()" if var.ty.storage_scope in ("", "global") else f'{name} = T.handle(storage_scope="{var.ty.storage_scope}")'
        return f"{name} = {var.ty}"
    return f"{name} = T.{var.dtype}()"


def _of_symbols(symbols, known):
    for symbol in symbols:
        if symbol not in known:
            known.add(symbol)
            yield _scalar(symbol)


def _of_variable(var, known):
    from .expr import is_prim_expr

    if is_prim_expr(var):
        yield from _of_symbols([var], known)
        return
    yield from _of_symbols(_symbols_of_type(var.ty), known)
    if var not in known:
        known.add(var)
        yield f"{var.script()}: {var.ty}"


def _symbols_of_type(ty):
    """The symbolic dimensions of a type, in order."""
    found = []
    for dims in _dimensions(ty):
        for symbol in _symbols_of_scalar(dims):
            if symbol not in found:
                found.append(symbol)
    return found


def _dimensions(ty):
    from .. import relax
    from .type import FuncType, TupleType

    if isinstance(ty, TupleType):
        for field in ty.fields:
            yield from _dimensions(field)
    elif isinstance(ty, FuncType):
        for part in (*(getattr(ty, "params", None) or ()), ty.ret):
            yield from _dimensions(part)
    elif isinstance(ty, relax.ShapeType):
        yield from ty.values or ()
    elif isinstance(ty, relax.TensorType) and ty.shape is not None:
        yield from getattr(ty.shape, "values", ())


def _symbols_of_scalar(scalar):
    from ..tirx import analysis
    from ..tirx.stmt import Evaluate

    return analysis.undefined_vars(Evaluate(scalar))


def _of_relax(node):
    from .. import relax
    from .expr import Expr

    if isinstance(node, relax.Binding):
        node = relax.BindingBlock([node])
    if isinstance(node, relax.BindingBlock):
        node = relax.SeqExpr([node], relax.Tuple([]))
    if not isinstance(node, Expr) or isinstance(node, relax.Function):
        return
    known = set()
    for var in relax.analysis.free_vars(node):
        yield from _of_variable(var, known)
    yield from _of_symbols(_symbols_within(node), known)


def _symbols_within(node):
    """Scalars that calls name among their arguments and attributes."""
    from .. import relax
    from .expr import Call, is_prim_expr

    found = []

    def visit(part):
        if not isinstance(part, Call):
            return
        attrs = part.attrs.values() if hasattr(part.attrs, "values") else ()
        nested = [item for value in attrs for item in (value.values() if hasattr(value, "values") else (value,))]
        for item in (*part.args, *nested):
            for scalar in item.fields if isinstance(item, relax.Tuple) else (item,):
                if is_prim_expr(scalar):
                    found.extend(_symbols_of_scalar(scalar))

    relax.analysis.post_order_visit(node, visit)
    return found
