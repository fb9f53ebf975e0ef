"""Programs that PyTorch exported: they are read without it, and give what it gave."""

import pathlib
import subprocess

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.relax.frontend.torch import from_exported_program

FOLDER = pathlib.Path(__file__).with_name("programs")
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.pt2"))


LONGER = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.again.npz"))


def arrays(name):
    """Inputs and results in order."""
    with np.load(FOLDER / f"{name}.npz") as file:
        count = sum(key.startswith("in") for key in file)
        return [file[f"in{at}"] for at in range(count)], [file[f"out{at}"] for at in range(len(file.files) - count)]


def run(module, inputs, result=list):
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return result(machine["main"](*map(tvm.runtime.tensor, inputs)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_pytorch_gave(name):
    inputs, wanted = arrays(name)
    got = run(from_exported_program(FOLDER / f"{name}.pt2"), inputs)
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted):
        assert ours.numpy().dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LONGER)
def test_a_program_gives_for_other_lengths_what_pytorch_gave(name):
    inputs, wanted = arrays(f"{name}.again")
    got = run(from_exported_program(FOLDER / f"{name}.pt2"), inputs)
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm_layers", "gru_layers", "rnn_relu", "map", "scan", "associative", "nested", "grow"])
def test_loops_are_functions_and_not_unrolled(name):
    module = from_exported_program(FOLDER / f"{name}.pt2")
    functions = [name for name, function in module.functions_items() if isinstance(function, relax.Function)]
    assert len(functions) > 1


@pytest.mark.parametrize("name", ["map", "associative"])
def test_loops_over_no_rows_give_none(name):
    inputs, wanted = arrays(name)
    rows = [np.zeros((0, *value.shape[1:]), value.dtype) if value.shape[0] == inputs[0].shape[0] else value for value in inputs]
    for ours, theirs in zip(run(from_exported_program(FOLDER / f"{name}.pt2"), rows), wanted):
        assert ours.shape == (0, *theirs.shape[1:])


def test_open_lengths_are_open():
    module = from_exported_program(FOLDER / "linear_batches.pt2")
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    for count in (1, 2, 17):
        x = np.random.default_rng(count).standard_normal((count, 4)).astype("float32")
        (y,) = machine["main"](tvm.runtime.tensor(x))
        assert y.shape == (count, 8)
        np.testing.assert_allclose(y.numpy().sum(-1), np.ones(count), rtol=1e-5)


def test_weights_may_be_parameters():
    module = from_exported_program(FOLDER / "linear.pt2", keep_params_as_input=True)
    main = module["main"]
    assert int(main.attrs["num_input"]) == 1
    inputs, (wanted,) = arrays("linear")
    weights = [weight.numpy() for weight in main.attrs["params"]]
    assert len(main.params) == 1 + len(weights) == 5
    (got,) = run(module, inputs + weights)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_a_single_result_may_come_as_it_is():
    module = from_exported_program(FOLDER / "linear.pt2", unwrap_unit_return_tuple=True)
    inputs, (wanted,) = arrays("linear")
    got = run(module, inputs, result=lambda value: value)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_changed_buffers_are_named():
    with pytest.warns(UserWarning, match="count"):
        module = from_exported_program(FOLDER / "counter.pt2")
    assert list(module["main"].attrs["dropped_writes"]) == ["count"]


def test_the_command_takes_programs(tmp_path):
    command = FOLDER.parents[2] / "build" / "relaxide"
    inputs, (wanted,) = arrays("linear")
    np.save(tmp_path / "x.npy", inputs[0])
    library = tmp_path / "model.so"
    subprocess.run([command, "compile", FOLDER / "linear.pt2", "-o", library], check=True, capture_output=True)
    subprocess.run([command, "run", library, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npz"], check=True, capture_output=True)
    with np.load(tmp_path / "y.npz") as results:
        np.testing.assert_allclose(results[results.files[0]], wanted, rtol=1e-5, atol=1e-5)


def test_what_is_no_program_is_told(tmp_path):
    path = tmp_path / "model.pt2"
    with pytest.raises(FileNotFoundError, match="model.pt2"):
        from_exported_program(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="not a `.pt2` file"):
        from_exported_program(path)
    with pytest.raises((TypeError, ImportError)):
        from_exported_program(object())
