"""The same Python runs on both packages and says the same of what it makes.

Every function below takes a package and returns text and plain values; what it returns for TVM is what it must return for
Relaxide.
"""

import importlib

import pytest

pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")


class Package:
    """A package and those of its parts that the functions use."""

    def __init__(self, name):
        self.tvm = importlib.import_module(name)
        for part in ("relax", "tirx", "te", "ir", "s_tir"):
            setattr(self, part, importlib.import_module(f"{name}.{part}"))
        self.dpl = importlib.import_module(f"{name}.relax.dpl")
        self.functor = importlib.import_module(f"{name}.relax.expr_functor")


CASES = []


def case(function):
    """One function that both packages run."""
    CASES.append(function)
    return function


def kind(value):
    """The name of a value's class."""
    return type(value).__name__


def small_function(p):
    """A function that uses a dimension and scalars as values."""
    n = p.tirx.Var("n", "int64")
    x = p.relax.Var("x", p.relax.TensorType([n], "float32"))
    builder = p.relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(p.relax.op.full([n], p.relax.const(1.0, "float32"), "float32"))
        callee = p.relax.ExternFunc("test.function")
        args = [y, n, n + 1, p.relax.prim_value(3), p.relax.prim_value(2.5)]
        z = builder.emit(p.relax.op.call_pure_packed(callee, *args, ty_args=[p.relax.TensorType(ndim=1)]))
        builder.emit(n)
        builder.emit(n * 2)
        builder.emit_func_output(z)
    return builder.get()["main"]


@case
def a_scalar_value_is_the_scalar(p):
    func = small_function(p)
    bindings = func.body.blocks[0].bindings
    call = bindings[1].value
    n = func.params[0].ty.shape.values[0]
    yield [kind(arg) for arg in call.args]
    yield [str(arg.ty) for arg in call.args[2:]]
    yield call.args[2].same_as(n), call.args[3].a.same_as(n), call.args[4].value, call.args[5].value
    yield [(kind(b.value), str(b.var.ty)) for b in bindings[2:]]
    p.relax.analysis.well_formed(func)
    yield [v.name for v in p.relax.analysis.free_vars(func)]


@case
def prim_values_have_types(p):
    n = p.tirx.Var("n", "int64")
    yield p.relax.prim_value(n).same_as(n)
    for value in (3, 2.5, True, n + 1):
        scalar = p.relax.prim_value(value)
        yield kind(scalar), str(scalar.ty)


@case
def operators_have_classes(p):
    t = p.tirx
    n, f = t.Var("n", "int64"), t.Var("f", "float32")
    made = [n + 1, n - 1, n * 2, n // 2, n % 2, n > 1, n >= 1, n < 1, n <= 1, n & 1, n | 1, n ^ 1, n << 1, n >> 1, ~n, f / f]
    made += [t.min(n, 1), t.max(n, 1), t.all(n > 1, n < 3), t.any(n > 1, n < 3), t.truncdiv(n, 2), t.truncmod(n, 2)]
    yield [kind(e) for e in made]
    yield [str(e) for e in made[:9]]
    yield [(e.a.same_as(n), int(e.b)) for e in made[:14]]


@case
def operators_are_made_by_their_classes(p):
    t = p.tirx
    n, m = t.Var("n", "int64"), t.Var("m", "int64")
    for name in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE BitwiseAnd BitwiseOr LShift".split():
        made = getattr(t, name)(n, m)
        yield kind(made), isinstance(made, getattr(t, name)), isinstance(made, t.Not), made.a.same_as(n), made.b.same_as(m)
    yield str(t.Add(t.IntImm("int64", 1), t.IntImm("int64", 2)))
    condition = n < m
    for made in (t.And(condition, condition), t.Or(condition, condition), t.Not(condition)):
        yield kind(made), made.a.same_as(condition)
    made = t.Select(condition, n, m)
    yield kind(made), made.condition.same_as(condition), made.true_value.same_as(n), made.false_value.same_as(m)
    made = t.Let(n, m, n + 1)
    yield kind(made), made.var.same_as(n), made.value.same_as(m), kind(made.body)
    ramp, all_lanes = t.Ramp(n, t.IntImm("int64", 1), 4), t.Broadcast(n, 4)
    yield kind(ramp), ramp.base.same_as(n), int(ramp.lanes), kind(all_lanes), all_lanes.value.same_as(n)
    cast = t.Cast("float32", n)
    yield kind(cast), cast.value.same_as(n)


@case
def functions_of_scalars_are_the_same(p):
    t = p.tirx
    f, g, n = t.Var("f", "float32"), t.Var("g", "float32"), t.Var("n", "int32")
    for name in "exp exp2 log log2 log1p sqrt rsqrt tanh sigmoid erf sin cos floor ceil trunc round".split():
        made = getattr(t, name)(f)
        yield str(made), str(made.ty)
    for name in "popcount clz bitwise_not".split():
        yield str(getattr(t, name)(n))
    for name in "fmod atan2 hypot copysign nextafter power".split():
        yield str(getattr(t, name)(f, g))
    yield str(t.if_then_else(n > 0, n, 0)), str(t.max_value("int32")), str(t.min_value("int8")), str(t.isnan(f))
    total = t.comm_reducer(lambda x, y: x + y, lambda dtype: t.const(0, dtype), name="total")
    yield str(total(n, n)), str(t.floordiv(n, 4)), str(t.ceildiv(n, 4)), str(t.abs(n).ty), str(t.likely(n > 0))


@case
def operands_of_two_types_are_refused(p):
    n, m = p.tirx.Var("n", "int64"), p.tirx.Var("m", "int32")
    try:
        p.tirx.Add(n, m)
    except TypeError:
        yield "TypeError"


@case
def functors_have_a_method_for_each_operator(p):
    class Collect(p.functor.ExprFunctor):
        def visit_add_(self, op):
            return ["add", *self.visit_expr(op.a), *self.visit_expr(op.b)]

        def visit_mul_(self, op):
            return ["mul", *self.visit_expr(op.a), *self.visit_expr(op.b)]

        def visit_var_(self, op):
            return [op.name]

        def visit_int_imm_(self, op):
            return [int(op)]

        def visit_expr_fallback_(self, op):
            return [kind(op)]

    n = p.tirx.Var("n", "int64")
    yield Collect().visit_expr(n * 2 + 1)
    yield Collect().visit_expr(p.tirx.Max(n * 2, n + 1))


@case
def mutators_replace_variables_in_scalars(p):
    func = small_function(p)
    n, m = func.params[0].ty.shape.values[0], p.tirx.Var("m", "int64")

    @p.functor.mutator
    class Rename(p.functor.PyExprMutator):
        def visit_var_(self, op):
            return m if op.same_as(n) else op

    rename = Rename()
    yield str(rename.visit_expr(p.relax.ShapeExpr([n, n + 1])))


@case
def text_has_one_class(p):
    text = p.ir.StringImm("abc")
    yield kind(text), text.value, kind(text.ty)
    callee = p.relax.ExternFunc("f")
    call = p.relax.op.call_pure_packed(callee, text, ty_args=[p.relax.TensorType(ndim=1)])
    yield kind(call.args[1]), call.args[1].value
    yield kind(p.tirx.call_packed("foo", 1).args[0])


def add_one(p):
    """A kernel written node by node."""
    t = p.tirx
    a, b = t.decl_buffer((16, 4), "float32", name="A"), t.decl_buffer((16, 4), "float32", name="B")
    i, j = t.Var("i", "int32"), t.Var("j", "int32")
    store = t.BufferStore(b, t.BufferLoad(a, [i, j]) + t.FloatImm("float32", 1.0), [i, j])
    choice = t.IfThenElse(i < j, store, t.Evaluate(0))
    loop = t.For(i, 0, 16, t.ForKind.SERIAL, t.For(j, 0, 4, t.ForKind.VECTORIZED, choice))
    return t.PrimFunc([a, b], loop).with_attr("global_symbol", "main")


@case
def kernels_are_made_of_statements(p):
    func = add_one(p)
    outer = func.body
    inner = outer.body
    yield kind(outer), outer.loop_var.name, int(outer.min), int(outer.extent), int(outer.kind)
    yield int(inner.kind), inner.thread_binding is None, dict(inner.annotations)
    choice = inner.body
    yield kind(choice), kind(choice.condition), kind(choice.then_case), kind(choice.else_case)
    store = choice.then_case
    yield store.buffer.name, [index.name for index in store.indices], kind(store.value)
    yield [int(dim) for dim in store.buffer.shape], str(store.buffer.dtype), store.buffer.scope()
    yield func.script().split("@")[-1].strip()


@case
def kernels_of_nodes_are_those_of_text(p):
    source = """
# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16, 4), "float32")):
        for i in range(16):
            for j in T.vectorized(4):
                if i < j:
                    B[i, j] = A[i, j] + T.float32(1.0)
                else:
                    T.evaluate(0)
"""
    module = importlib.import_module(f"{p.tvm.__name__}.script").from_source(source)
    text, made = module["main"].without_attr("global_symbol"), add_one(p).without_attr("global_symbol")
    p.ir.assert_structural_equal(text, made)
    yield sorted(made.attrs or {}) == sorted(text.attrs or {})


@case
def statements_have_fields(p):
    t = p.tirx
    i = t.Var("i", "int32")
    a = t.decl_buffer((8,), "int32", name="A")
    pair = t.SeqStmt([t.Evaluate(i), t.Evaluate(i + 1)])
    yield len(pair), kind(pair[0]), kind(pair[1].value), [kind(s) for s in t.stmt_list(pair)]
    yield kind(t.stmt_seq(i)), kind(t.stmt_seq(i, t.Evaluate(i)))
    bind = t.Bind(i, t.IntImm("int32", 3))
    yield kind(bind), bind.var.same_as(i), int(bind.value)
    loop = t.While(i < 3, pair)
    yield kind(loop), kind(loop.condition), len(loop.body)
    alloc = t.AllocBuffer(a)
    yield kind(alloc), alloc.buffer.name
    attr = t.AttrStmt(t.IntImm("int32", 0), "pragma_unroll", t.IntImm("int32", 1), pair)
    yield kind(attr), attr.attr_key, int(attr.value), len(attr.body)
    store = a.vstore([0], t.IntImm("int32", 7))
    yield kind(store), int(store.value), [int(index) for index in store.indices]
    wide = a.vload([0], "int32x4")
    yield [kind(index) for index in wide.indices], int(wide.indices[0].lanes)


@case
def blocks_are_made_of_axes(p):
    t, s = p.tirx, p.s_tir
    a = t.decl_buffer((8,), "float32", name="A")
    vi, i = t.Var("vi", "int32"), t.Var("i", "int32")
    axis = t.IterVar(p.ir.Range(0, 8), vi, t.IterVar.DataPar)
    yield int(axis.dom.min), int(axis.dom.extent), axis.iter_type, axis.var.same_as(vi)
    region = t.BufferRegion(a, [p.ir.Range.from_min_extent(vi, 1)])
    yield [int(r.extent) for r in region.region]
    block = s.SBlock([axis], [], [region], "B", t.BufferStore(a, t.FloatImm("float32", 0.0), [vi]))
    realize = s.SBlockRealize([i], True, block)
    yield block.name_hint, len(block.iter_vars), len(block.writes), len(block.reads), block.init is None
    yield realize.iter_values[0].same_as(i), int(realize.predicate), realize.block.same_as(block)
    func = t.PrimFunc([a], t.For(i, 0, 8, t.ForKind.SERIAL, realize)).with_attr("global_symbol", "main")
    yield len(func.params), kind(func.body.body)


@case
def kernels_are_specialized(p):
    t = p.tirx
    n = t.Var("n", "int32")
    a = t.decl_buffer((n,), "float32", name="A")
    i = t.Var("i", "int32")
    func = t.PrimFunc([a, n], t.For(i, 0, n, t.ForKind.SERIAL, t.BufferStore(a, t.FloatImm("float32", 0.0), [i])))
    made = func.specialize({n: t.IntImm("int32", 16)})
    yield len(made.params), int(made.body.extent), [int(dim) for dim in made.body.body.buffer.shape]


@case
def a_store_that_does_not_fit_is_refused(p):
    t = p.tirx
    a, i = t.decl_buffer((8,), "float32", name="A"), t.Var("i", "int32")
    for value, indices in ((t.IntImm("int32", 1), [i]), (t.FloatImm("float32", 1.0), [i, i])):
        try:
            t.BufferStore(a, value, indices)
            yield "made"
        except Exception:
            yield "refused"


@case
def patterns_have_classes_and_fields(p):
    d = p.dpl
    any_of, add = d.wildcard(), d.is_op("relax.add")
    patterns = [any_of, add, add(any_of, any_of), d.is_var("x"), d.is_dfv("y"), d.is_gv("g"), d.is_const()]
    patterns += [d.is_tuple([any_of]), d.is_tuple([any_of], True), d.is_tuple_get_item(any_of, 1), any_of | d.is_const()]
    patterns += [any_of & d.is_const(), d.reject(any_of), any_of.has_dtype("float32"), any_of.has_shape([3, 4])]
    patterns += [add(any_of, any_of).has_attr({"axis": 1}), d.is_shape([1, 2]), d.ExternFuncPattern("f")]
    patterns += [d.FunctionPattern([any_of], any_of), d.is_call_tir("f"), d.TypePattern(any_of, p.relax.TensorType([3]))]
    yield [kind(pattern) for pattern in patterns]
    yield [isinstance(pattern, d.DFPattern) for pattern in patterns]
    call = patterns[2]
    yield call.op.expr.name, len(call.args), call.args[0].same_as(any_of), isinstance(call.op, d.ExprPattern)
    yield [pattern.name for pattern in patterns[3:5]], isinstance(patterns[4], d.VarPattern)
    yield patterns[7].fields[0].same_as(any_of), len(patterns[8].fields), patterns[17].global_symbol
    yield patterns[9].tuple.same_as(any_of), patterns[9].index
    for pattern in patterns[10:12]:
        yield pattern.left.same_as(any_of), kind(pattern.right)
    yield patterns[13].pattern.same_as(any_of), str(patterns[13].dtype), [int(dim) for dim in patterns[14].shape]
    yield patterns[15].pattern.op.expr.name, patterns[18].params[0].same_as(any_of), patterns[18].body.same_as(any_of)


@case
def patterns_are_made_by_their_classes(p):
    d = p.dpl
    x = p.relax.Var("x", p.relax.TensorType([3], "float32"))
    call = p.relax.op.add(x, x)
    any_of = d.WildcardPattern()
    pattern = d.CallPattern(d.ExprPattern(p.ir.Op.get("relax.add")), [any_of, any_of])
    yield pattern.match(call), pattern.match(p.relax.op.multiply(x, x))
    yield d.OrPattern(d.ConstantPattern(), d.VarPattern("x")).match(x), d.NotPattern(d.VarPattern("x")).match(x)
    yield d.AndPattern(d.VarPattern("x"), d.DataTypePattern(any_of, "float32")).match(x)
    yield d.TuplePattern([any_of]).match(p.relax.Tuple([x])), d.ShapePattern(any_of, [3]).match(x)
    yield d.UnorderedTuplePattern([d.ConstantPattern(), d.VarPattern("x")]).match(
        p.relax.Tuple([x, p.relax.const(1.0, "float32")])
    )


def two_values(p):
    """A function of a dataflow block with two values."""
    x = p.relax.Var("x", p.relax.TensorType([3], "float32"))
    builder = p.relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(p.relax.op.add(x, x), name_hint="a")
            b = builder.emit_output(p.relax.op.multiply(a, x), name_hint="b")
        builder.emit_func_output(b)
    return builder.get()


@case
def blocks_are_rewritten_by_bindings(p):
    module = two_values(p)
    func = module["main"]
    block = func.body.blocks[0]
    a, b = (binding.var for binding in block.bindings)
    names = lambda block: [binding.var.name for binding in block.bindings]  # noqa: E731
    typed = p.relax.BlockBuilder().normalize
    rewrite = p.relax.DataflowBlockRewrite(block, func)
    rewrite.add(typed(p.relax.op.exp(a)), name="c", is_dfvar=True)
    rewrite.add(typed(p.relax.op.exp(b)))
    yield names(rewrite.mutated_dfb())[:3], [kind(x.var) for x in rewrite.mutated_dfb().bindings]
    c = rewrite.mutated_dfb().bindings[2].var
    rewrite.replace_all_uses(a, c)
    yield [x.value.args[0].name for x in rewrite.mutated_dfb().bindings[1:3]]
    for var in (c, p.relax.Var("stranger", p.relax.TensorType([3]))):
        try:
            rewrite.remove_unused(var)
            yield "removed"
        except Exception:
            yield "refused"
    rewrite.remove_unused(p.relax.Var("stranger", p.relax.TensorType([3])), allow_undef=True)
    yield names(rewrite.mutated_root_fn().body.blocks[0])[:3]

    rewrite = p.relax.DataflowBlockRewrite(block, func)
    rewrite.add(typed(p.relax.op.exp(a)), name="unused", is_dfvar=True)
    rewrite.add_binding(p.relax.VarBinding(p.relax.Var("d", p.relax.TensorType([3], "float32")), typed(p.relax.op.exp(a))))
    yield names(rewrite.mutated_dfb())
    edited = p.relax.DataflowBlockRewrite(rewrite.mutated_dfb(), rewrite.mutated_root_fn())
    edited.remove_all_unused()
    yield "unused" in names(edited.mutated_dfb()), names(edited.mutated_root_fn().body.blocks[0])[:1]
    changed = rewrite.mutate_irmodule(module)
    yield changed["main"].same_as(rewrite.mutated_root_fn()), module["main"].same_as(func)


@case
def rules_are_applied_to_functions_and_modules(p):
    relax, d = p.relax, p.dpl
    module = two_values(p)
    x = d.wildcard()
    rule = d.PatternMatchingRewriter.from_pattern(
        d.is_op("relax.add")(x, x), lambda _, parts: relax.op.multiply(parts[x], relax.const(2.0, "float32"))
    )
    other = d.PatternMatchingRewriter.from_pattern(d.is_op("relax.exp")(x), lambda _, parts: relax.op.abs(parts[x]))
    names = lambda func: [b.value.op.name for b in func.body.blocks[0].bindings]  # noqa: E731
    yield names(rule(module["main"])), names((other | rule)(module)["main"]), names(other(module["main"]))

    def fails(expr, parts):
        raise KeyError("of the rule")

    try:
        d.PatternMatchingRewriter.from_pattern(d.is_op("relax.add")(x, x), fails)(module)
    except KeyError as error:
        yield str(error).strip("'\"")


@case
def kernels_of_reducers_are_the_same(p):
    te, t = p.te, p.tirx
    n, m = t.IntImm("int64", 8), t.IntImm("int64", 4)
    x = te.placeholder((n, m), "float32", name="X")
    k = te.reduce_axis((t.IntImm("int64", 0), m), "k")
    larger = lambda a, b: (t.Select(a[1] >= b[1], a[0], b[0]), t.Select(a[1] >= b[1], a[1], b[1]))  # noqa: E731
    nothing = lambda index, value: (t.const(-1, index), t.min_value(value))  # noqa: E731
    place = te.compute((n, m), lambda i, j: j, name="place")
    argmax = te.comm_reducer(larger, nothing, name="argmax")
    index, value = te.compute((n,), lambda i: argmax((place[i, k], x[i, k]), axis=k), name="best")
    for kernel in (te.create_prim_func([x, index, value]),):
        text = kernel.with_attr("global_symbol", "main").script()
        lines = [line for line in text.splitlines() if "func_attr" not in line and not line.startswith(("#", "@"))]
        # Axes stand on one line where each is the axis of its loop; TVM asks for the very same extent.
        yield "\n".join(line for line in lines if "T.reads" not in line and "T.axis" not in line).strip()


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_both_packages_say_the_same(function):
    theirs, ours = list(function(Package("tvm"))), list(function(Package("relaxide")))
    assert ours == theirs and theirs
