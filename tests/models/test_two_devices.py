"""ResNet-18 and silero-vad split over two devices: of one kind, and the CPU and one whose memory it does not reach. Results are those of
one device."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.relax.frontend.onnx import from_onnx

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import resnet18  # noqa: E402
import silero  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
DEVICES = [tvm.cpu(0), tvm.cpu(1)]
#: The device of handles that the testkit has.
HANDLES = [tvm.cpu(0), tvm.device("ext_dev", 0)]
#: Runs a library over the CPU and that device; `make test` builds it.
OVER_HANDLES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "over_handles"


@relax.expr_functor.mutator
class Split(relax.expr_functor.PyExprMutator):
    """Moves what follows some of the calls of an operator, by their numbers, to the other device."""

    def __init__(self, mod, op, numbers, devices):
        super().__init__(mod)
        self.devices = devices
        self.op, self.numbers, self.count, self.crossings = tvm.ir.Op.get(op), numbers, 0, 0

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op != self.op:
            return call
        self.count += 1
        if self.count not in self.numbers:
            return call
        here, there = (self.devices[(self.crossings + i) % 2] for i in (0, 1))
        self.crossings += 1
        value = self.builder_.emit(call)
        marked = self.builder_.emit(relax.op.hint_on_device(value, here))
        return relax.op.hint_on_device(marked, there)


def split(mod, op, numbers, devices, second):
    found = Split(mod, op, numbers, devices)
    for name, function in mod.functions_items():
        if isinstance(function, relax.Function):
            found.builder_.update_func(name, found.visit_expr(function))
    mod = found.builder_.get()
    mod.update_global_info("vdevice", [tvm.ir.VDevice("llvm", 0), second])
    return mod, found.crossings


def places(parted):
    """The index of each parameter's device: it lives where what it becomes lives."""
    parted = relax.transform.RealizeVDevice()(parted)
    devices = list(parted.global_infos["vdevice"])
    found = [p.ty.vdevice for p in parted["main"].params]
    return [next((i for i, d in enumerate(devices) if d.same_as(device)), 0) for device in found]


def agrees(mod, op, numbers, feeds):
    whole = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    parted, crossings = split(mod, op, numbers, DEVICES, tvm.ir.VDevice("llvm", 1))
    assert crossings == len(numbers)
    where = [DEVICES[place] for place in places(parted)]
    machine = relax.VirtualMachine(tvm.compile(parted, "llvm"), DEVICES)
    for feed in feeds:
        wanted = whole["main"](*[tvm.runtime.tensor(x) for x in feed])
        got = machine["main"](*[tvm.runtime.tensor(x, device=device) for x, device in zip(feed, where, strict=True)])
        same(listed(wanted), listed(got))


def listed(result):
    single = not hasattr(result, "__len__") or isinstance(result, tvm.runtime.Tensor)
    return [result] if single else list(result)


def same(wanted, got):
    for want, have in zip(wanted, got, strict=True):
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4, atol=1e-4 * np.abs(want.numpy()).max())


def agrees_over_handles(mod, op, numbers, feeds, copies, folder):
    assert OVER_HANDLES.exists(), "cargo build --release --workspace --examples"
    whole = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    second = tvm.ir.VDevice(tvm.target.Target({"kind": "llvm", "target_device_type": 12}), 0)
    parted, crossings = split(mod, op, numbers, HANDLES, second)
    assert crossings == len(numbers)
    where = places(parted)
    tvm.compile(parted, "llvm").export_library(str(folder / "model.so"))
    for feed in feeds:
        given = [tvm.runtime.tensor(x) for x in feed]
        (folder / "inputs").write_bytes(tvm.runtime.save_param_dict({f"{i}@{at}": x for i, (x, at) in enumerate(zip(given, where, strict=True))}))
        done = subprocess.run([OVER_HANDLES, "model.so", "inputs", "outputs"], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found = tvm.runtime.load_param_dict((folder / "outputs").read_bytes())
        same(listed(whole["main"](*given)), [found[str(i)] for i in range(len(found))])
        # To the device, and back from it.
        to_device, from_device, _ = map(int, done.stdout.split())
        assert to_device + from_device >= copies, done.stdout


# Behind residual sums: within a block, a sum would have one side on each device.
@pytest.mark.parametrize("numbers", [{5}, {1, 9}, {3, 7, 11, 15}])
def test_resnet18(numbers):
    rng = np.random.default_rng(0)
    feeds = [[rng.standard_normal((n, 3, side, side)).astype("float32")] for n, side in ((1, 64), (2, 96), (1, 33))]
    agrees(from_onnx(resnet18.build()), "relax.nn.relu", numbers, feeds)


@pytest.mark.parametrize("numbers", [{5}, {1, 9}, {3, 7, 11, 15}])
def test_resnet18_over_handles(numbers, tmp_path):
    rng = np.random.default_rng(1)
    feeds = [[rng.standard_normal((n, 3, side, side)).astype("float32")] for n, side in ((1, 64), (2, 33))]
    agrees_over_handles(from_onnx(resnet18.build()), "relax.nn.relu", numbers, feeds, len(numbers), tmp_path)


@pytest.mark.parametrize("numbers", [{2}, {1, 3}, {1, 2, 3, 4}])
def test_silero_vad_with_its_branches(numbers):
    model = onnx.load(str(silero.path("silero_vad")))
    names = [i.name for i in model.graph.input]
    feeds = [[feed[name] for name in names] for feed in silero.MODELS["silero_vad"]]
    agrees(from_onnx(model), "relax.nn.relu", numbers, feeds)


# Two crossings, or four, in either branch, of which a run takes one.
@pytest.mark.parametrize("numbers", [{1, 3, 6, 8}, {2, 5, 7, 10}, {1, 2, 3, 4, 6, 7, 8, 9}])
def test_silero_vad_over_handles(numbers, tmp_path):
    model = onnx.load(str(silero.path("silero_vad")))
    names = [i.name for i in model.graph.input]
    feeds = [[feed[name] for name in names] for feed in silero.MODELS["silero_vad"]]
    agrees_over_handles(from_onnx(model), "relax.nn.relu", numbers, feeds, len(numbers) // 2, tmp_path)
