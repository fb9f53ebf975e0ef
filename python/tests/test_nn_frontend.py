"""Models written as modules: what is exported, and that it computes what NumPy and TVM say."""

import numpy as np
import pytest

import relaxide as rx
from relaxide import relax
from relaxide.relax.frontend import nn
from relaxide.relax.frontend.nn import modules, spec


def run(module, method, *arrays, debug=False):
    """The results of a method on arrays, with the parameters' values."""
    specs = {}
    for name, array in zip("abcdefgh", arrays):
        specs[name] = int if isinstance(array, int) else spec.Tensor(list(array.shape), str(array.dtype))
    machine, weights = module.jit({method: specs}, out_format="tvm", debug=debug)
    given = [rx.runtime.ShapeTuple([a]) if isinstance(a, int) else rx.runtime.tensor(a) for a in arrays]
    out = machine[method](*given, *weights)
    return [value.numpy() for value in out] if isinstance(out, (list, tuple)) or not hasattr(out, "numpy") else out.numpy()


def with_values(module, seed=0):
    rng = np.random.default_rng(seed)
    for param in module.parameters():
        param.data = rng.standard_normal([int(dim) for dim in param.shape]).astype(param.dtype)
    return module


def of(function):
    """A module whose method is a function of tensors."""
    return type("Applied", (nn.Module,), {"forward": lambda self, *args: function(*args)})()


X = np.random.default_rng(1).standard_normal((2, 3, 4)).astype("float32")


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda x: x + 1, X + 1),
        (lambda x: 1 - x, 1 - X),
        (lambda x: 2 / x, 2 / X),
        (lambda x: (x < 0.5).astype("float32"), (X < 0.5).astype("float32")),
        (lambda x: x.maximum(0.1).minimum(0.3), np.clip(X, 0.1, 0.3)),
        (lambda x: x.reshape(2, -1), X.reshape(2, -1)),
        (lambda x: x.permute_dims(2, 0, 1), X.transpose(2, 0, 1)),
        (lambda x: nn.permute_dims(x), X.T),
        (lambda x: x.repeat(2, 1), X.repeat(2, 1)),
        (lambda x: nn.concat([x, nn.negative(x)], 1), np.concatenate([X, -X], 1)),
        (lambda x: nn.chunk(x, 2, 2)[1], X[:, :, 2:]),
        (lambda x: nn.split(x, [1], 1)[0], X[:, :1]),
        (lambda x: nn.sum(x, [0, 2], keepdims=True), X.sum((0, 2), keepdims=True)),
        (lambda x: nn.max(x, -1), X.max(-1)),
        (lambda x: nn.min(x), X.min()),
        (lambda x: nn.unsqueeze(x, 1), X[:, None]),
        (lambda x: nn.cumsum(x, 1), X.cumsum(1)),
        (lambda x: nn.sort(x), np.sort(X)),
        (lambda x: nn.topk(x, 2)[0], -np.sort(-X)[..., :2]),
        (lambda x: nn.pad(x, [0, 0, 1, 0, 0, 2]), np.pad(X, [(0, 0), (1, 0), (0, 2)])),
        (lambda x: nn.full([2], 1.5), np.full(2, 1.5, "float32")),
        (lambda x: nn.arange(3), np.arange(3, dtype="float32")),
        (lambda x: nn.softmax(x), np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
        (lambda x: nn.where(x > 0, x, nn.exp(x)), np.where(X > 0, X, np.exp(X))),
        (lambda x: nn.triu(x, 1), np.triu(X, 1)),
    ],
)
def test_operators(function, wanted):
    got = run(of(function), "forward", X)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_layers():
    class Net(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(4, 5)
            self.norm = nn.LayerNorm(5)
            self.scale = nn.RMSNorm(5, -1, bias=False)

        def forward(self, x):
            return self.scale(self.norm(self.fc(x)))

    net = with_values(Net())
    w = {name: param.data.numpy() for name, param in net.named_parameters()}
    y = X @ w["fc.weight"].T + w["fc.bias"]
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5) * w["norm.weight"] + w["norm.bias"]
    y = y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5) * w["scale.weight"]
    np.testing.assert_allclose(run(net, "forward", X), y, rtol=1e-4, atol=1e-5)


def test_embeddings_of_any_shape():
    table = with_values(nn.Embedding(7, 3))
    at = np.array([[0, 6], [3, 3]], "int32")
    np.testing.assert_array_equal(run(table, "forward", at), table.weight.data.numpy()[at])


def test_odd_embeddings_of_time_steps_end_in_a_zero():
    got = run(of(lambda x: nn.get_timestep_embedding(x, 5)), "forward", np.array([1, 10], "float32"))
    angles = np.array([[1], [10]]) * np.exp(-np.log(1e4) * np.arange(2) / (2 - 1))
    np.testing.assert_allclose(got, np.concatenate([np.sin(angles), np.cos(angles), np.zeros((2, 1))], 1), atol=1e-5)


def test_attention_with_a_norm():
    layer = with_values(modules.Attention(8, heads=2, dim_head=4, norm_num_groups=2))
    assert run(layer, "forward", X.reshape(1, 3, 8)).shape == (1, 3, 8)
    with pytest.raises(TypeError, match="does not know mood"):
        layer(None, mood=1)


def choose(probabilities, tokens, top_p, top_k, uniform):
    """Sampling as it is described, row by row."""
    total, kept = 0.0, []
    for probability, token in zip(probabilities, tokens):
        kept.append((probability, token))
        total += probability
        if total >= top_p or len(kept) >= top_k:
            break
    cumulated = 0.0
    for probability, token in kept:
        cumulated += probability
        if uniform < cumulated / total:
            return token
    return kept[-1][1]


@pytest.mark.parametrize("seed", range(5))
def test_sampling_among_the_likeliest(seed):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(6), 3).astype("float32")
    order = np.argsort(-prob, -1).astype("int64")
    ranked = np.take_along_axis(prob, order, -1)
    top_p, top_k = rng.uniform(0.3, 1, (3, 1)).astype("float32"), rng.integers(1, 7, (3, 1))
    rows, uniform = rng.integers(0, 3, (8, 1)), rng.uniform(size=(8, 1)).astype("float32")
    arrays = [ranked, order, top_p, top_k, uniform, rows]
    got = run(of(nn.sample_top_p_top_k_from_sorted_prob), "forward", *arrays)
    wanted = [[choose(ranked[r], order[r], top_p[r, 0], top_k[r, 0], u[0])] for (r,), u in zip(rows, uniform)]
    np.testing.assert_array_equal(got, wanted)
    kept = run(of(nn.renormalize_top_p_top_k_prob), "forward", prob, ranked, top_p, top_k)
    np.testing.assert_allclose(kept.sum(-1), 1, rtol=1e-5)
    limit = [min(np.searchsorted(np.cumsum(r), p) + 1, k) for r, (p,), (k,) in zip(ranked.astype("float64"), top_p, top_k)]
    np.testing.assert_array_equal((kept > 0).sum(-1), limit)


def test_sampling_among_as_many_tokens_as_there_are():
    specs = {"prob": ("float32", ["b", "v"]), "order": ("int64", ["b", "v"]), "p": ("float32", ["b", 1])}
    specs |= {"k": ("int64", ["b", 1]), "u": ("float32", ["b", 1])}
    spec_of = {name: spec.Tensor(shape, dtype) for name, (dtype, shape) in specs.items()}
    machine, _ = of(nn.sample_top_p_top_k_from_sorted_prob).jit({"forward": spec_of}, out_format="tvm")
    for count in (3, 5):
        prob = np.full((2, count), 1 / count, "float32")
        order = np.tile(np.arange(count)[::-1], (2, 1)).astype("int64")
        ones = np.ones((2, 1), "float32")
        arrays = [prob, order, ones, np.array([[1], [count]]), ones * np.float32(0.999)]
        got = machine["forward"](*(rx.runtime.tensor(array) for array in arrays)).numpy()
        np.testing.assert_array_equal(got, [[count - 1], [0]])


@pytest.mark.parametrize("param_mode", ["plain", "packed"])
@pytest.mark.parametrize("effect_mode", ["plain", "packed"])
def test_modes_of_parameters_and_effects(param_mode, effect_mode):
    class Net(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(4, "n", bias=False)
            self.cache = nn.KVCache(2, [4])

        def forward(self, x, total: int):
            self.cache.append(x)
            return self.fc(self.cache.view(total))

    modes = {"param_mode": param_mode, "effect_mode": effect_mode}
    mod, params = Net().export_tvm({"forward": {"x": spec.Tensor(["b", 4], "float32"), "total": int, "$": modes}})
    assert [name for name, _ in params] == ["fc.weight"] and int(mod["forward"].attrs["num_input"]) == 3
    machine = relax.VirtualMachine(rx.compile(mod, "llvm"), rx.cpu())
    weight, rows = np.eye(4, dtype="float32")[:3], np.arange(20, dtype="float32").reshape(5, 4)
    state = machine["_initialize_effect"]()
    given = rx.runtime.tensor(weight)
    for begin, end in ((0, 1), (1, 5)):
        held = [state] if effect_mode == "packed" else list(state)
        weights = [[given]] if param_mode == "packed" else [given]
        total = rx.runtime.ShapeTuple([end])
        out, state = machine["forward"](rx.runtime.tensor(rows[begin:end]), total, *held, *weights)
    np.testing.assert_array_equal(out.numpy(), rows[:, :3])


def test_subroutines_are_written_once_for_equal_types():
    class Double(nn.Module):
        define_subroutine = True

        def __init__(self, n):
            self.weight = nn.Parameter((n, n))

        def forward(self, x):
            return nn.matmul(x, self.weight)

    class Net(nn.Module):
        def __init__(self):
            self.layers = nn.ModuleList([Double(4), Double(4)])

        def forward(self, x):
            return self.layers(x)

    mod, _ = Net().export_tvm({"forward": {"x": spec.Tensor(["b", 4], "float32")}})
    assert sorted(gvar.name_hint for gvar in mod.get_global_vars()) == ["double", "forward"]
    net = with_values(Net())
    first, second = (param.data.numpy() for param in net.parameters())
    np.testing.assert_allclose(run(net, "forward", X), X @ first @ second, rtol=1e-4, atol=1e-5)


def test_mutators_replace_modules():
    class Halve(nn.Mutator):
        def visit_module(self, name, node):
            if isinstance(node, nn.Linear):
                seen.append(name)
                return nn.Linear(node.in_features, node.out_features // 2, bias=False)
            return self.visit(name, node)

    class Net(nn.Module):
        def __init__(self):
            self.heads = nn.ModuleDict({"left": nn.Linear(4, 8)})
            self.body = nn.ModuleList([nn.Linear(4, 4)])

    seen = []
    net = Halve().visit_module("", Net())
    assert seen == ["heads.left", "body.0"]
    assert [(name, param.shape) for name, param in net.named_parameters()] == [
        ("heads.left.weight", [4, 4]),
        ("body.0.weight", [2, 4]),
    ]


def test_state_is_loaded_by_name():
    source, target = with_values(nn.Linear(2, 3)), nn.Linear(2, 3)
    assert target.load_state_dict(source.state_dict()) == ([], [])
    assert target.bias.data is source.bias.data
    with pytest.raises(KeyError, match="Missing keys"):
        target.load_state_dict({"weight": source.weight})
    with pytest.raises(ValueError, match="Shape mismatch"):
        target.weight.data = np.zeros((2, 3), "float32")
    with pytest.raises(ValueError, match="has a value"):
        source.to("float16")
    target = nn.Linear(2, 3)
    target.to("float16")
    assert target.weight.dtype == target.bias.dtype == "float16"


def test_mistakes_are_named():
    with pytest.raises(RuntimeError, match="outside of a method"):
        nn.relu(nn.Parameter([1]))
    with pytest.raises(RuntimeError, match="debug=True"):
        of(lambda x: nn.print_(x)).export_tvm({"forward": {"x": spec.Tensor([1], "float32")}})
    with pytest.raises(TypeError, match="Invalid spec for argument x"):
        of(lambda x: x).export_tvm({"forward": {"x": 3}})
    with pytest.raises(ValueError, match="Invalid param_mode"):
        of(lambda x: x).export_tvm({"forward": {"x": int, "$": {"param_mode": "wrapped"}}})
    with pytest.raises(AttributeError, match="no method 'backward'"):
        nn.ReLU().export_tvm({"backward": {}})
    with pytest.raises(ValueError, match="not set to any concrete"):
        nn.Linear(1, 1).jit({"forward": {"x": spec.Tensor([1, 1], "float32")}}, out_format="tvm")
    with pytest.raises(ValueError, match="one of size and scale_factor"):
        of(lambda x: nn.interpolate(x)).export_tvm({"forward": {"x": spec.Tensor([1, 1, 2, 2], "float32")}})


def test_functions_of_the_process():
    seen = []
    rx.register_global_func("test.nn.doubled", lambda x, out: out.copyfrom(x.numpy() * 2), override=True)
    rx.register_global_func("test.nn.look", lambda line, x, n: seen.append((line, x.numpy(), n)), override=True)

    def forward(x):
        nn.debug_func("test.nn.look", x, 7)
        return nn.extern("test.nn.doubled", [x], nn.Tensor.placeholder(x.shape, "float32"))

    machine, _ = of(forward).jit({"forward": {"x": spec.Tensor(["n"], "float32")}}, out_format="tvm", debug=True)
    out, _ = machine["forward"](rx.runtime.tensor(X.reshape(-1)), *machine["_initialize_effect"]())
    np.testing.assert_array_equal(out.numpy(), X.reshape(-1) * 2)
    ((line, value, number),) = seen
    assert "test_nn_frontend.py:" in line and number == 7
    np.testing.assert_array_equal(value, X.reshape(-1))
