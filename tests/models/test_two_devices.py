"""ResNet-18 and silero-vad split over two devices of one kind: results are those of one device."""

import pathlib
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

DEVICES = [tvm.cpu(0), tvm.cpu(1)]


@relax.expr_functor.mutator
class Split(relax.expr_functor.PyExprMutator):
    """Moves what follows some of the calls of an operator, by their numbers, to the other device."""

    def __init__(self, mod, op, numbers):
        super().__init__(mod)
        self.op, self.numbers, self.count, self.crossings = tvm.ir.Op.get(op), numbers, 0, 0

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op != self.op:
            return call
        self.count += 1
        if self.count not in self.numbers:
            return call
        here, there = (DEVICES[(self.crossings + i) % 2] for i in (0, 1))
        self.crossings += 1
        value = self.builder_.emit(call)
        marked = self.builder_.emit(relax.op.hint_on_device(value, here))
        return relax.op.hint_on_device(marked, there)


def split(mod, op, numbers):
    found = Split(mod, op, numbers)
    for name, function in mod.functions_items():
        if isinstance(function, relax.Function):
            found.builder_.update_func(name, found.visit_expr(function))
    mod = found.builder_.get()
    mod.update_global_info("vdevice", [tvm.ir.VDevice("llvm", 0), tvm.ir.VDevice("llvm", 1)])
    return mod, found.crossings


def agrees(mod, op, numbers, feeds):
    whole = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    parted, crossings = split(mod, op, numbers)
    assert crossings == len(numbers)
    # A parameter lives where what it becomes lives.
    realized = relax.transform.RealizeVDevice()(parted)
    where = [DEVICES[p.ty.vdevice.vdevice_id if p.ty.vdevice else 0] for p in realized["main"].params]
    assert str(realized).count("to_vdevice") >= crossings
    machine = relax.VirtualMachine(tvm.compile(parted, "llvm"), DEVICES)
    for feed in feeds:
        wanted = whole["main"](*[tvm.runtime.tensor(x) for x in feed])
        got = machine["main"](*[tvm.runtime.tensor(x, device=device) for x, device in zip(feed, where, strict=True)])
        if not hasattr(wanted, "__len__") or isinstance(wanted, tvm.runtime.Tensor):
            wanted, got = [wanted], [got]
        for want, have in zip(wanted, got, strict=True):
            np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4, atol=1e-4 * np.abs(want.numpy()).max())


# Behind residual sums: within a block, a sum would have one side on each device.
@pytest.mark.parametrize("numbers", [{5}, {1, 9}, {3, 7, 11, 15}])
def test_resnet18(numbers):
    rng = np.random.default_rng(0)
    feeds = [[rng.standard_normal((n, 3, side, side)).astype("float32")] for n, side in ((1, 64), (2, 96), (1, 33))]
    agrees(from_onnx(resnet18.build()), "relax.nn.relu", numbers, feeds)


@pytest.mark.parametrize("numbers", [{2}, {1, 3}, {1, 2, 3, 4}])
def test_silero_vad_with_its_branches(numbers):
    model = onnx.load(str(silero.path("silero_vad")))
    names = [i.name for i in model.graph.input]
    feeds = [[feed[name] for name in names] for feed in silero.MODELS["silero_vad"]]
    agrees(from_onnx(model), "relax.nn.relu", numbers, feeds)
