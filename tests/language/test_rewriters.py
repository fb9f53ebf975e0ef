"""Rewriting rules that are classes: the same class is the same rule in both packages."""

import pytest

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")
import relaxide  # noqa: E402

SOURCE = '''
from {package}.script import ir as I
from {package}.script import relax as R
from {package}.script import tirx as T


@R.rewriter
class Sum:
    @R.function
    def pattern(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        z = R.add(x, y)
        return z

    @R.function
    def replacement(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        z = R.call_pure_packed("my_add", x, y, ty_args=R.Tensor([16], "float32"))
        return z


@R.rewriter
class Both:
    @R.function
    def pattern(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        a = R.exp(x)
        b = R.sin(y)
        return (a, b)

    @R.function
    def replacement(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        both = R.call_pure_packed("both", x, y, ty_args=R.Tuple([R.Tensor([16], "float32"), R.Tensor([16], "float32")]))
        return (both[0], both[1])


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.sin(y)
            d = R.add(b, c)
            R.output(d)
        return d
'''


def programs(tmp_path, package):
    path = tmp_path / f"of_{package}.py"
    path.write_text(SOURCE.format(package=package))
    names = {}
    exec(compile(SOURCE.format(package=package), str(path), "exec"), names)
    return names


def calls(module):
    """What a module's function calls, each with the names of what it is given.

    TVM binds what a rule takes and gives under names of its own, with checks of types, so that a name here is that of the value.
    """
    values = {param.name: param.name for param in module["main"].params}
    found = []
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relaxide.ir.Call):
                args = [values.get(getattr(arg, "name", None), getattr(arg, "global_symbol", "")) for arg in value.args]
                values[binding.var.name] = f"{value.op.name}({', '.join(args)})"
                found.append(values[binding.var.name])
            elif isinstance(value, relaxide.ir.TupleGetItem):
                fields = values[value.tuple_value.name]
                named = isinstance(fields, list)
                values[binding.var.name] = fields[value.index] if named else f"{fields}[{value.index}]"
            elif isinstance(value, relaxide.ir.Var):
                values[binding.var.name] = values[value.name]
            elif isinstance(value, relaxide.ir.Tuple):
                values[binding.var.name] = [values[field.name] for field in value.fields]
    return sorted(found)


@pytest.mark.parametrize("rule", ["Sum", "Both", "Sum | Both"])
def test_a_rule_does_what_it_does_in_tvm(rule, tmp_path):
    ours, theirs = (programs(tmp_path, package) for package in ("relaxide", "tvm"))
    read = relaxide.script.from_source(eval(rule, theirs)(theirs["Module"]).script(show_meta=True))
    rewritten = eval(rule, ours)(ours["Module"])
    assert calls(rewritten) == calls(read)
    assert rewritten.script() != ours["Module"].script()


def test_a_class_that_is_no_rule_is_refused(tmp_path):
    module = programs(tmp_path, "relaxide")["Module"]
    with pytest.raises(KeyError, match="pattern"):
        relaxide.script.relax.rewriter(module)
