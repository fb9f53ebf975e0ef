"""Training: optimizers step as their papers say, and a small network learns."""

import numpy as np
import pytest

import relaxide as rx
from relaxide import relax
from relaxide.relax.training import AppendLoss, SetupTrainer, Trainer, loss, optimizer
from relaxide.script import ir as I
from relaxide.script import relax as R


@I.ir_module
class Net:
    I.module_attrs({"param_num": 4, "state_num": 0})

    @R.function
    def backbone(
        x: R.Tensor((32, 2), "float32"),
        w0: R.Tensor((2, 16), "float32"),
        b0: R.Tensor((16,), "float32"),
        w1: R.Tensor((16, 2), "float32"),
        b1: R.Tensor((2,), "float32"),
    ):
        with R.dataflow():
            lv0 = R.nn.relu(R.add(R.matmul(x, w0), b0))
            out = R.add(R.matmul(lv0, w1), b1)
            R.output(out)
        return out


def sgd(g, p, state, t):
    return p - 0.1 * (g + 0.01 * p), state


def momentum(g, p, state, t):
    (v,) = state
    g = g + 0.01 * p
    v = 0.9 * v + 0.8 * g
    return p - 0.1 * (g + 0.9 * v), (v,)


def adam(g, p, state, t):
    m, v = state
    m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
    return p - 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-6), (m, v)


@pytest.mark.parametrize(
    "made, step, states",
    [
        (optimizer.SGD(0.1, 0.01), sgd, 0),
        (optimizer.MomentumSGD(0.1, 0.9, 0.2, 0.01, nesterov=True), momentum, 1),
        (optimizer.Adam(0.1, (0.8, 0.9), 1e-6), adam, 2),
    ],
)
def test_optimizers_step_as_described(made, step, states):
    types = [relax.TensorType((3, 2), "float32"), relax.TensorType((4,), "float32")]
    variables = [relax.Var(f"p{at}", ty) for at, ty in enumerate(types)]
    mod = rx.IRModule({"step": made.init(variables).get_function().with_attr("global_symbol", "step")})
    machine = relax.VirtualMachine(rx.compile(mod, "llvm"), rx.cpu())
    rng = np.random.default_rng(0)
    params = [rng.standard_normal(shape) for shape in ((3, 2), (4,))]
    held = [tuple(np.zeros_like(p) for _ in range(states)) for p in params]
    now, state = [rx.runtime.tensor(p.astype("float32")) for p in params], list(made.state)
    for t in range(1, 4):
        gradients = [rng.standard_normal(p.shape) for p in params]
        given = [rx.runtime.tensor(g.astype("float32")) for g in gradients]
        now, state = machine["step"](now, given, state)
        now, state = list(now), list(state)
        params, held = zip(*(step(g, p, h, t) for g, p, h in zip(gradients, params, held)))
        for got, wanted in zip(now, params):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert int(state[0].numpy()) == 3


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 5, 3)).astype("float32")
    classes, weights = np.array([0, 2, 1, 1, 0]), np.array([0.5, 1, 2], "float32")
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction]
    floats, ints = relax.TensorType((5, 3), "float32"), relax.TensorType((5,), "int64")

    def run(func, *arrays):
        name = func.attrs["global_symbol"]
        machine = relax.VirtualMachine(rx.compile(rx.IRModule({name: func}), "llvm"), rx.cpu())
        return machine[name](*(rx.runtime.tensor(a) for a in arrays)).numpy()

    np.testing.assert_allclose(run(loss.L1Loss(reduction)(floats, floats), x, y), reduce(np.abs(x - y)), rtol=1e-5)
    np.testing.assert_allclose(run(loss.MSELoss(reduction)(floats, floats), x, y), reduce((x - y) ** 2), rtol=1e-5)
    logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    wanted = reduce(-logs * y * weights)
    made = loss.CategoricalCrossEntropyLoss(reduction)(floats, floats, relax.TensorType((3,), "float32"))
    np.testing.assert_allclose(run(made, x, y, weights), wanted, rtol=1e-4, atol=1e-5)
    picked = -logs[np.arange(5), classes]
    np.testing.assert_allclose(run(loss.CrossEntropyLoss(reduction)(floats, ints), x, classes), reduce(picked), rtol=1e-5)
    with pytest.raises(ValueError, match="reduction is one of"):
        loss.L1Loss("median")


def test_a_small_network_learns():
    pred, target = relax.TensorType((32, 2), "float32"), relax.TensorType((32,), "int64")
    mod = SetupTrainer(loss.CrossEntropyLoss(), optimizer.Adam(0.02), [pred, target])(Net)
    assert sorted(gvar.name_hint for gvar in mod.get_global_vars() if "backbone" in gvar.name_hint or gvar.name_hint == "optimizer") == [
        "backbone",
        "backbone_loss",
        "backbone_loss_adjoint",
        "optimizer",
    ]
    trainer = Trainer(mod, relax.VirtualMachine(rx.compile(mod, "llvm"), rx.cpu()), rx.cpu())
    rng = np.random.default_rng(2)
    shapes = {"w0": (2, 16), "b0": (16,), "w1": (16, 2), "b1": (2,)}
    trainer.load_params({name: rng.standard_normal(shape).astype("float32") * 0.5 for name, shape in shapes.items()})
    losses = []
    for _ in range(150):
        points = rng.uniform(-1, 1, (32, 2)).astype("float32")
        losses.append(float(trainer.update(points, (points[:, 0] * points[:, 1] > 0).astype("int64")).numpy()))
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
    points = rng.uniform(-1, 1, (32, 2)).astype("float32")
    right = trainer.predict(points).numpy().argmax(-1) == (points[:, 0] * points[:, 1] > 0)
    assert right.mean() > 0.8
    assert list(trainer.export_params()) == ["w0", "b0", "w1", "b1"]
    with pytest.raises(ValueError, match="no parameter w9"):
        trainer.load_params({"w9": np.zeros(1)})


def test_states_go_behind_the_loss():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), s: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.add(x, s)
                t = R.multiply(s, R.const(2, "float32"))
                R.output(y, t)
            return y, t

    ty = relax.TensorType((2, 3), "float32")
    mod = AppendLoss("main", loss.MSELoss()(ty, ty))(Module)
    machine = relax.VirtualMachine(rx.compile(mod, "llvm"), rx.cpu())
    x, s, y = np.ones((2, 3), "float32"), np.arange(3, dtype="float32"), np.zeros((2, 3), "float32")
    got, state = machine["main_loss"](*(rx.runtime.tensor(a) for a in (x, s, y)))
    np.testing.assert_allclose(got.numpy(), ((x + s) ** 2).mean(), rtol=1e-6)
    np.testing.assert_array_equal(state.numpy(), s * 2)
    with pytest.raises(RuntimeError, match="cannot be handed on"):
        AppendLoss("main", loss.MSELoss()(ty, ty), 3)(Module)
    with pytest.raises(ValueError, match="param_num"):
        SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [ty, ty])(Module)
