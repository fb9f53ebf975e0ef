"""Operators that a library adds to PyTorch, by rules of the user's: ``custom_convert_map``."""

import importlib
import pathlib
import tomllib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxide as tvm
from relaxide import relax
from relaxide.relax.frontend.torch import from_exported_program, from_fx, relax_dynamo


@torch.library.custom_op("relaxide_tests::twice_plus", mutates_args=())
def twice_plus(x: torch.Tensor, y: torch.Tensor, by: float = 1.0) -> torch.Tensor:
    return 2 * x + by * y


@twice_plus.register_fake
def _(x, y, by=1.0):
    return torch.empty_like(x)


@torch.library.custom_op("relaxide_tests::halves", mutates_args=())
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    middle = x.shape[-1] // 2
    return x[..., :middle].clone(), x[..., middle:].clone()


@halves.register_fake
def _(x):
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    return x.new_empty(shape), x.new_empty(shape)


def convert_twice_plus(node, importer):
    """As TVM's rules are written: arguments from the environment, the result emitted."""
    x, y = importer.env[node.args[0]], importer.env[node.args[1]]
    by = node.args[2] if len(node.args) > 2 else node.kwargs.get("by", 1.0)
    scaled = importer.block_builder.emit(relax.op.multiply(y, relax.const(by, "float32")))
    return importer.block_builder.emit(relax.op.add(relax.op.add(x, x), scaled))


def convert_halves(node, importer):
    (x,) = importer.retrieve_args(node)
    return importer.block_builder.emit(relax.op.split(x, 2, axis=-1))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        left, right = halves(twice_plus(self.layer(x), x, 0.5))
        return left.relu(), right


TABLE = {"twice_plus.default": convert_twice_plus, "halves.default": convert_halves}
DYNAMIC = ({0: torch.export.Dim("n")},)


def run(module, *inputs):
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return [value.numpy() for value in machine["main"](*(tvm.runtime.tensor(value.numpy()) for value in inputs))]


def exported(model=None, dynamic=DYNAMIC):
    torch.manual_seed(0)
    model = (model or Model()).eval()
    return model, torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=dynamic)


def check(module, model, x):
    with torch.no_grad():
        wanted = model(x)
    got = run(module, x)
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["twice_plus.default", "twice_plus", "relaxide_tests::twice_plus", "relaxide_tests.twice_plus.default"])
def test_a_rule_is_found_by_each_of_its_names(name):
    model, program = exported()
    module = from_exported_program(program, custom_convert_map={name: convert_twice_plus, "halves": convert_halves})
    check(module, model, torch.randn(5, 4))


def test_an_operator_itself_is_a_name():
    model, program = exported()
    operators = torch.ops.relaxide_tests
    table = {operators.twice_plus.default: convert_twice_plus, operators.halves: convert_halves}
    check(from_exported_program(program, custom_convert_map=table), model, torch.randn(2, 4))


def test_a_saved_program_takes_rules(tmp_path):
    model, program = exported()
    torch.export.save(program.run_decompositions(), tmp_path / "model.pt2")
    check(from_exported_program(tmp_path / "model.pt2", custom_convert_map=TABLE), model, torch.randn(5, 4))


def test_weights_may_be_parameters_of_a_rule():
    model, program = exported()
    module = from_exported_program(program, keep_params_as_input=True, custom_convert_map=TABLE)
    assert int(module["main"].attrs["num_input"]) == 1 and len(module["main"].params) == 3


def test_a_rule_goes_before_the_one_that_there_is():
    class Gelu(torch.nn.Module):
        def forward(self, x):
            return (torch.nn.functional.gelu(x),)

    def convert(node, importer):
        return importer.block_builder.emit(relax.op.nn.relu(importer.env[node.args[0]]))

    _, program = exported(Gelu())
    x = torch.randn(2, 4)
    (got,) = run(from_exported_program(program, custom_convert_map={"gelu.default": convert}), x)
    np.testing.assert_array_equal(got, x.relu().numpy())


def test_a_rule_is_used_within_loops_and_branches():
    class Looped(torch.nn.Module):
        def forward(self, x):
            from torch._higher_order_ops.map import map

            def body(row):
                return torch.cond(row.sum() > 0, lambda t: (twice_plus(t, t),), lambda t: (t - 1,), (row,))[0]

            return (map(body, x),)

    model, program = exported(Looped())
    x = torch.randn(6, 4)
    (got,) = run(from_exported_program(program, custom_convert_map=TABLE), x)
    np.testing.assert_allclose(got, model(x)[0].numpy(), rtol=1e-5)


def test_traced_modules_take_rules():
    model = Model().eval()
    module = from_fx(torch.fx.symbolic_trace(model), [((3, 4), "float32")], custom_convert_map=TABLE)
    check(module, model, torch.randn(3, 4))
    with pytest.raises(NotImplementedError, match="rules for whole modules .*Linear"):
        from_fx(model, [((3, 4), "float32")], custom_convert_map={torch.nn.Linear: convert_halves})


def test_without_a_rule_the_operator_is_named_with_the_line_and_what_to_do():
    _, program = exported()
    with pytest.raises(NotImplementedError) as raised:
        from_exported_program(program, custom_convert_map={"halves": convert_halves})
    text = str(raised.value)
    assert "relaxide_tests.twice_plus" in text and 'custom_convert_map={"twice_plus.default": function}' in text
    assert "test_converters.py" in text and "1 problem" in text


def test_what_a_rule_raises_is_told_at_its_node():
    _, program = exported()

    def convert(node, importer):
        raise KeyError("what it wanted")

    with pytest.raises(NotImplementedError, match="twice_plus.*its converter raised KeyError") as raised:
        from_exported_program(program, custom_convert_map={**TABLE, "twice_plus": convert, "twice_plus.default": convert})
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda node, importer: (importer.env[node.args[0]],) * 2, "its converter gives 2 values, and the operator gives 1"),
        (lambda node, importer: relax.op.sum(importer.env[node.args[0]]), "the result has 0 dimensions, and the program says 2"),
        (lambda node, importer: 3.5, "its converter gives a value that is no tensor"),
        (lambda node, importer: importer.env[next(iter(node.users))], "is no argument of the node that is converted"),
    ],
)
def test_results_that_do_not_fit_are_told(convert, message):
    _, program = exported()
    with pytest.raises(NotImplementedError, match=message):
        from_exported_program(program, custom_convert_map={**TABLE, "twice_plus.default": convert})


def test_tables_that_are_none_are_told():
    _, program = exported()
    with pytest.raises(TypeError, match="expected a function of a node and an importer"):
        from_exported_program(program, custom_convert_map={"twice_plus": relax.op})


def test_compiled_functions_take_rules():
    model = Model().eval()
    used = []

    def convert(node, importer):
        used.append(node.name)
        return convert_twice_plus(node, importer)

    torch._dynamo.reset()
    fast = torch.compile(model, backend=relax_dynamo(custom_convert_map={**TABLE, "twice_plus.default": convert}))
    x = torch.randn(3, 4)
    with torch.no_grad():
        for ours, theirs in zip(fast(x), model(x)):
            torch.testing.assert_close(ours, theirs)
    assert used
    torch._dynamo.reset()
    with torch.no_grad(), pytest.warns(UserWarning, match="twice_plus.*custom_convert_map"):
        torch.compile(model, backend=relax_dynamo())(x)


def test_an_installed_package_is_a_back_end_by_name(tmp_path, monkeypatch):
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())
    (entry,) = project["project"]["entry-points"]["torch_dynamo_backends"].items()
    info = tmp_path / "relaxide_of_tests-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: relaxide_of_tests\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[torch_dynamo_backends]\n{entry[0]} = {entry[1]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    # PyTorch looks for packages once in a process.
    for function in vars(torch._dynamo.backends.registry).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    model = Model().eval()
    torch._dynamo.reset()
    fast = torch.compile(model, backend="relaxide", options={"custom_convert_map": TABLE})
    x = torch.randn(3, 4)
    with torch.no_grad():
        for ours, theirs in zip(fast(x), model(x)):
            torch.testing.assert_close(ours, theirs)
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(Exception, match="has no option 'piplines'"):
        torch.compile(model, backend="relaxide", options={"piplines": None})(x)
