"""Passes that take functions, kernels, types or arrays, called from Python beside TVM's: the results are structurally equal.

Both begin with one text. The same functions are given to both; what they make nodes of is the one or the other library.
"""

import numpy as np
import pytest
import tvm_ffi
from against_tvm import REREAD, TIDY, T, parse, tvm, unequal
from test_lowering_against_tvm import COMPOSITES, FUSION, GRAPHS, X, composites, function, module, through

import relaxide

BACKEND = "lib"


def program(text):
    """The text as TVM prints it, and its module."""
    theirs = parse(text) if isinstance(text, str) else text
    return theirs.script(show_meta=True), theirs


def externals(library, mod):
    """The external functions that a module calls or has, with their attributes, which text does not show."""
    found = []

    def visit(node):
        if isinstance(node, library.relax.ExternFunc):
            found.append((str(node.global_symbol), sorted((str(k), str(v)) for k, v in (node.attrs or {}).items())))

    for _, func in mod.functions_items():
        visit(func)
        if isinstance(func, library.relax.Function):
            library.relax.analysis.post_order_visit(func, visit)
    return sorted({(symbol, tuple(attrs)) for symbol, attrs in found})


def compare(text, make, modulo=TIDY):
    """What is different between both results of the pass that ``make`` makes for a library; ``None`` where nothing is."""
    text, theirs = program(text)
    outcomes = []
    for library, given in ((relaxide, relaxide.script.from_source(text)), (tvm, theirs)):
        try:
            outcomes.append((make(library)(given), None))
        except Exception as error:
            outcomes.append((None, f"{type(error).__name__}: {str(error)[-400:]}"))
    (ours, refusal), (theirs, their_refusal) = outcomes
    if refusal or their_refusal:
        return None if refusal and their_refusal else f"ours: {refusal}, TVM's: {their_refusal}"
    if externals(relaxide, ours) != externals(tvm, theirs):
        return f"external functions: {externals(relaxide, ours)}, TVM's: {externals(tvm, theirs)}"
    return unequal(ours.script(show_meta=True), theirs, modulo)


def check(cases, make, modulo=TIDY):
    assert len(cases) >= 10
    found = {name: compare(text, lambda library, name=name: make(library, name), modulo) for name, text in cases.items()}
    assert not any(found.values()), "\n".join(f"--- {name}\n{why}" for name, why in found.items() if why)


# BindParams

TWO = 'x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")'
BOUND = {
    "a product": (TWO, ["y = R.matmul(x, w)"], {"w": (8, 8)}),
    "everything": (TWO, ["y = R.matmul(x, w)"], {"x": (4, 8), "w": (8, 8)}),
    "nothing": (TWO, ["y = R.matmul(x, w)"], {}),
    "used twice": (TWO, ["a = R.matmul(x, w)", "y = R.matmul(a, w)"], {"w": (8, 8)}),
    "not used": (TWO, ["y = R.exp(x)"], {"w": (8, 8)}),
    "rows of any number": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 2), "float32")', ["y = R.matmul(x, w)"], {"w": (8, 2)}),
    "a bias": (X + ', b: R.Tensor((8,), "float32")', ["a = R.add(x, b)", "y = R.nn.relu(a)"], {"b": (8,)}),
    "a scalar": (X + ', s: R.Tensor((), "float32")', ["y = R.multiply(x, s)"], {"s": ()}),
    "in a tuple": (TWO, ["a = (x, w)", "b = a[1]", "y = R.matmul(x, b)"], {"w": (8, 8)}),
    "integers": ('x: R.Tensor((4, 8), "float32"), i: R.Tensor((2,), "int64")', ["y = R.take(x, i, axis=0)"], {"i": (2,)}),
    "another name": (TWO, ["y = R.matmul(x, w)"], {"v": (8, 8)}),
    "another rank": (TWO, ["y = R.matmul(x, w)"], {"w": (8,)}),
}


def values(name):
    dtype = "int64" if name == "integers" else "float32"
    return {key: np.arange(int(np.prod(shape))).reshape(shape).astype(dtype) for key, shape in BOUND[name][2].items()}


#: TVM takes a value of any shape, and types what uses it anew; ours refuses it.
UNCHECKED = ["another rank"]


def test_bind_params():
    cases = {name: module(function(signature, body, "y")) for name, (signature, body, _) in BOUND.items() if name not in UNCHECKED}
    check(cases, lambda library, name: library.relax.transform.BindParams("main", values(name)), [])


def test_a_value_that_does_not_fit_is_refused_here():
    signature, body, _ = BOUND["another rank"]
    mod = relaxide.script.from_source(program(module(function(signature, body, "y")))[0])
    with pytest.raises(ValueError, match="does not fit"):
        relaxide.relax.transform.BindParams("main", values("another rank"))(mod)


# UpdateParamType

RETYPED = {
    "more rows": (X, ["y = R.exp(x)"], {"x": ((6, 8), "float32")}),
    "another dtype": (X, ["a = R.exp(x)", "y = R.negative(a)"], {"x": ((4, 8), "float16")}),
    "nothing": (X, ["y = R.exp(x)"], {}),
    "a product": (TWO, ["y = R.matmul(x, w)"], {"w": ((8, 3), "float32")}),
    "both factors": (TWO, ["y = R.matmul(x, w)"], {"x": ((2, 5), "float32"), "w": ((5, 3), "float32")}),
    "a sum": (X, ["y = R.sum(x, axis=[1])"], {"x": ((9, 3), "float32")}),
    "two of one": (X, ["a = R.add(x, x)", "y = R.concat((a, x), axis=0)"], {"x": ((3, 2), "float32")}),
    "transposed": (X, ["a = R.permute_dims(x)", "y = R.exp(a)"], {"x": ((2, 3, 4), "float32")}),
    "fields": (X, ["s = R.split(x, 2, axis=1)", "a = s[0]", "b = s[1]", "y = R.add(a, b)"], {"x": ((4, 10), "float32")}),
    "from a rank": ('x: R.Tensor(dtype="float32", ndim=2)', ["a = R.exp(x)", "y = R.negative(a)"], {"x": ((4, 8), "float32")}),
    "what does not fit": (TWO, ["y = R.matmul(x, w)"], {"w": ((7, 3), "float32")}),
}


def new_types(library, name):
    types = {key: library.relax.TensorType(*given) for key, given in RETYPED[name][2].items()}
    return lambda var: types.get(str(var))


def test_update_param_type():
    cases = {name: module(function(signature, body, "y")) for name, (signature, body, _) in RETYPED.items()}
    check(cases, lambda library, name: library.relax.transform.UpdateParamType(new_types(library, name)))


# RunCodegen

def test_run_codegen():
    for register in (tvm_ffi.register_global_func, relaxide.ffi.register_global_func):
        for backend in ("lib", "other"):
            register(f"relax.ext.{backend}", lambda functions, options, constants: [], override=True)
    cases = {name: T.MergeCompositeFunctions()(composites(name)) for name in COMPOSITES}

    def make(library, name):
        def run(mod):
            return library.relax.transform.RunCodegen()(mod).without_attr("external_mods")

        return run

    check(cases, make)


# TopologicalSort

@pytest.mark.parametrize("order", ["depth-first", "breadth-first"])
@pytest.mark.parametrize("direction", ["from-inputs", "from-outputs"])
def test_topological_sort(order, direction):
    check(GRAPHS, lambda library, name: library.relax.transform.TopologicalSort(order, direction), [])


# SplitCallTIRByPattern

def kernels(library, text):
    """The kernels of a legalized program that are one loop nest over dimensions that are numbers."""
    mod = relaxide.script.from_source(text)
    found = [name for name in sorted(var.name_hint for var in mod.get_global_vars()) if is_pattern(mod[name])]
    given = library.script.from_source(text)
    return [given[name] for name in found]


def is_pattern(func):
    if not isinstance(func, relaxide.tirx.PrimFunc) or any(param not in func.buffer_map for param in func.params):
        return False
    numbers = all(isinstance(dim, relaxide.tirx.IntImm) for buffer in func.buffer_map.values() for dim in buffer.shape)
    return numbers and isinstance(func.body.block.body, relaxide.tirx.For)


def generator(library, count):
    """A code generator that takes ``count`` of the stages that match, or all of them."""

    def generate(matches):
        taken = list(matches)[:count]
        written, args = [], []
        for match in taken:
            *inputs, output = match.matched_buffers
            for buffer in inputs:
                if not any(buffer.same_as(known) for known in [*written, *args]):
                    args.append(buffer)
            written.append(output)
        number = len(taken) if library is relaxide else tvm.tirx.IntImm("int32", len(taken))
        return ["// {global_symbol}", number, args]

    return generate


#: A program whose third stage uses the results of the first and of the second, cut behind the second.
TORN = ("residual", True, 2)


@pytest.mark.parametrize("count", [1, 2, None])
@pytest.mark.parametrize("fused", [True, False])
def test_split_call_tir_by_pattern(fused, count):
    legal = {name: through(text, ["LegalizeOps"]).script(show_meta=True) for name, text in GRAPHS.items()}
    cases = {name: through(text, [*FUSION, "DeadCodeElimination"][: None if fused else 1]) for name, text in GRAPHS.items()}

    def make(library, name):
        return library.relax.transform.SplitCallTIRByPattern(kernels(library, legal[name]), generator(library, count))

    cases = {name: given for name, given in cases.items() if (name, fused, count) != TORN}
    check(cases, make, [REREAD, "DeadCodeElimination"])


def test_a_kernel_is_not_torn():
    """Where the rest reads what the library keeps to itself, TVM makes a kernel of a buffer that nothing holds."""
    text, theirs = program(through(GRAPHS[TORN[0]], [*FUSION, "DeadCodeElimination"]))
    legal = through(GRAPHS[TORN[0]], ["LegalizeOps"]).script(show_meta=True)

    def split(library, given):
        return library.relax.transform.SplitCallTIRByPattern(kernels(library, legal), generator(library, TORN[2]))(given)

    ours = relaxide.script.from_source(text)
    assert split(relaxide, ours).script() == ours.script()
    rest = split(tvm, theirs)["unfused_epilogue"]
    assert len(rest.params) == 2 and len(rest.body.block.reads) == 0 and "sblock_alloc_buffer" not in rest.script()


def test_kernels_come_apart():
    """What is compared above is not nothing: most of the fused programs change."""
    changed = 0
    for text in GRAPHS.values():
        legal = through(text, ["LegalizeOps"]).script(show_meta=True)
        fused = relaxide.script.from_source(through(text, FUSION).script(show_meta=True))
        made = relaxide.relax.transform.SplitCallTIRByPattern(kernels(relaxide, legal), generator(relaxide, 1))(fused)
        changed += "call_dps_packed" in made.script()
    assert changed >= 10
