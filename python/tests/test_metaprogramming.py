"""Programs that use what Python knows around them."""

import importlib.util
import linecache
import re
import sys
import textwrap

import numpy as np
import pytest

import relaxide

#: Programs that are valid with either package; each defines `result`, a module or a function.
PROGRAMS = {
    "captured numbers, shapes and types": """
        n, dtype, shape = 4, "float32", (4, 8)
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor(shape, dtype), y: R.Tensor((n, 8), dtype)):
                with R.dataflow():
                    lv = R.add(x, y)
                    gv = R.reshape(lv, (n * 8,))
                    R.output(gv)
                return gv
        result = Module
        """,
    "captured constants": """
        import numpy as np
        w = relax.const(np.arange(6, dtype="float32").reshape(2, 3))
        scale = 3.0
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4, 2), "float32")):
                lv = R.matmul(x, w)
                gv = R.multiply(lv, R.const(scale, "float32"))
                return gv
        result = Module
        """,
    "helper functions": """
        def block(x, k):
            y = R.add(x, R.const(k, "float32"))
            return R.nn.relu(y)
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4, 2), "float32")):
                with R.dataflow():
                    a = block(x, 1.0)
                    b = block(a, 2.0)
                    R.output(b)
                return b
        result = Module
        """,
    "members of a namespace under other names": """
        loop, buffer, kinds = T.parallel, T.decl_buffer, ["unroll", "serial"]
        kind = kinds[0]
        @T.prim_func(s_tir=True)
        def result(A_data: T.handle("float32")):
            A = buffer((16,), "float32", data=A_data)
            for i in loop(16):
                for j in getattr(T, kind)(4):
                    A[i] = A[i] + 1
                for j in getattr(T, "serial")(4):
                    A[i] = A[i] * 2
        """,
    "values of a function around": """
        def make(k, activation):
            @I.ir_module
            class Module:
                @R.function
                def main(x: R.Tensor((k, 2), "float32")):
                    y = activation(x)
                    z = R.reshape(y, (k * 2,))
                    return z
            return Module
        result = make(5, relax.op.nn.silu)
        """,
    "symbolic variables of Python": """
        n = tirx.Var("n", "int64")
        @R.function
        def main(x: R.Tensor((n, 4), "float32")):
            y = R.reshape(x, (n * 4,))
            return y
        result = main
        """,
    "types of values": """
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            y = R.full(x.ty.shape, R.const(1.0, x.ty.dtype), x.ty.dtype)
            return y
        result = main
        """,
    "macros": """
        @R.macro
        def twice(x):
            y = R.add(x, x)
            return R.nn.relu(y)
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            a = twice(x)
            b = twice(a)
            return b
        result = main
        """,
    "kernels with captured sizes": """
        n, tile = 128, 16
        @T.prim_func(s_tir=True)
        def scale(A: T.Buffer((n, tile), "float32"), B: T.Buffer((n, tile), "float32")):
            for i, j in T.grid(n, tile):
                with T.sblock("scale"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(tile)
        result = scale
        """,
}

HEAD = """
from PACKAGE import relax, tirx
from PACKAGE.script import ir as I
from PACKAGE.script import relax as R
from PACKAGE.script import tirx as T
"""


def run(package, text, folder):
    """What `result` is when the text runs with a package."""
    path = folder / f"program_{package}.py"
    path.write_text(HEAD.replace("PACKAGE", package) + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.result


def as_module(text):
    return relaxide.script.from_source(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_what_they_mean_in_tvm(name, tmp_path):
    pytest.importorskip("tvm")
    ours, theirs = (run(package, PROGRAMS[name], tmp_path) for package in ("relaxide", "tvm"))
    text = theirs.script(show_meta=True)
    expected, found = as_module(text), as_module(ours.script(show_meta=True) if "Module" in text else ours.script())
    relaxide.ir.assert_structural_equal(found, expected)


def test_loops_over_python_values_are_unrolled(tmp_path):
    result = run(
        "relaxide",
        """
        weights = [relax.const(float(i)) for i in range(3)]
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = x
                for i, w in enumerate(weights):
                    y = R.add(y, w)
                    if i == 1:
                        y = R.nn.relu(y)
                for _ in range(2):
                    y = R.exp(y)
                R.output(y)
            return y
        result = main
        """,
        tmp_path,
    )
    names = re.findall(r"R\.([a-z.]+)\(", "\n".join(result.script().splitlines()[3:]))
    assert [n for n in names if n in ("add", "nn.relu", "exp")] == ["add", "add", "nn.relu", "add", "exp", "exp"]


def test_kernels_of_python_become_functions_of_the_module(tmp_path):
    result = run(
        "relaxide",
        """
        @T.prim_func(private=True, s_tir=True)
        def inc(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("inc"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] + T.float32(1)
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = R.call_tir(inc, (x,), R.Tensor((4,), "float32"))
                z = R.call_tir(inc, (y,), R.Tensor((4,), "float32"))
                return z
        result = Module
        """,
        tmp_path,
    )
    assert [var.name_hint for var in result.get_global_vars()] == ["main", "inc"]
    machine = relaxide.relax.VirtualMachine(relaxide.compile(result), relaxide.cpu())
    assert machine["main"](relaxide.runtime.tensor(np.zeros(4, "float32"))).numpy().tolist() == [2.0] * 4


def test_meta_variables_keep_python_values(tmp_path):
    result = run(
        "relaxide",
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            both = I.meta_var({"x": x, "sum": R.add(x, y)})
            z = R.multiply(both["sum"], both["x"])
            return z
        result = main
        """,
        tmp_path,
    )
    assert "R.multiply" in result.script() and result.script().count("R.add") == 1


def test_names_of_hygienic_macros_are_those_of_their_place(tmp_path):
    result = run(
        "relaxide",
        """
        k = 1.0
        @R.macro
        def here(x):
            return R.add(x, R.const(k, "float32"))
        @R.macro(hygienic=False)
        def there(x):
            return R.add(x, R.const(k, "float32"))
        def make():
            k = 2.0
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                a = here(x)
                b = there(a)
                c = R.multiply(b, R.const(k, "float32"))
                return c
            return main
        result = make()
        """,
        tmp_path,
    )
    assert re.findall(r'const\((\d)\.0', result.script()) == ["1", "2", "2"]


def test_source_that_only_the_line_cache_knows_is_enough():
    text = HEAD.replace("PACKAGE", "relaxide") + textwrap.dedent(PROGRAMS["captured numbers, shapes and types"])
    name = "<a notebook's cell>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), scope)
    assert "main" in scope["result"]


def test_source_that_is_nowhere_is_said_to_be():
    text = HEAD.replace("PACKAGE", "relaxide") + textwrap.dedent(PROGRAMS["captured numbers, shapes and types"])
    with pytest.raises(OSError, match="line\\s?cache"):
        exec(compile(text, "<nowhere>", "exec"), {"__name__": "__main__"})


def test_text_takes_values_of_names():
    text = 'from tvm.script import relax as R\n@R.function\ndef main(x: R.Tensor((n,), "float32")):\n    return x\n'
    module = relaxide.script.from_source(text, extra_vars={"n": 7})
    assert "R.Tensor((7,)" in module.script()


@pytest.mark.parametrize(
    "body, line, message",
    [
        ("y = R.add(x, wrong)", 9, "no name `wrong`"),
        ("y = R.add(x, R.const(1.0))\n    z = R.matmul(y, helper(x, 2))\n    return z", 10, "ZeroDivisionError"),
        ("y = R.reshape(x, (sizes[7],))", 9, "IndexError"),
        ("y = R.frobnicate(x)", 9, "frobnicate"),
        ("y = R.matmul(x, x)\n    z = R.add(y, captured)", 9, "matmul"),
    ],
)
def test_errors_point_at_the_line_of_the_users_file(body, line, message, tmp_path):
    text = f"""
sizes, captured = [1, 2], 3
def helper(x, k):
    return x + k // 0
@R.function
def main(x: R.Tensor((3, 4), "float32")):
    {body}
    return y
result = main
"""
    with pytest.raises(SyntaxError) as raised:
        run("relaxide", text, tmp_path)
    shown = str(raised.value)
    lines = (tmp_path / "program_relaxide.py").read_text().splitlines()
    number = int(re.search(r"program_relaxide\.py:(\d+):", shown).group(1))
    assert message in shown and lines[number - 1].strip() in body, shown
    if "Error" in message:
        assert type(raised.value.__cause__).__name__ in message
