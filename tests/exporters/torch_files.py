"""What torch.onnx writes, by its older exporter and by the one over torch.export: fixed and named lengths."""

import io
import warnings

import numpy as np


def networks():
    """Name, module, and for each of three runs the shapes (or arrays) of its inputs; axes with more than one length are named."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def module(run, **parts):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                for name, part in parts.items():
                    setattr(self, name, part)

            def forward(self, *inputs):
                return run(self, *inputs)

        return Network()

    def plain(run):
        return module(lambda self, *inputs: run(*inputs))

    ids = lambda n, high, *shape: np.random.default_rng(n).integers(0, high, shape).astype("int64")  # noqa: E731

    # Images.
    yield "cnn", module(lambda s, x: s.f(F.adaptive_avg_pool2d(F.relu(s.b(s.c(x))), 1).flatten(1)), c=nn.Conv2d(3, 8, 3, padding=1, stride=2), b=nn.BatchNorm2d(8), f=nn.Linear(8, 5)), [[(1, 3, 16, 16)], [(2, 3, 16, 24)], [(3, 3, 20, 17)]]
    yield "unet", module(lambda s, x: s.o(torch.cat([x, F.interpolate(s.u(F.max_pool2d(s.d(x), 2)), scale_factor=2, mode="nearest")], 1)), d=nn.Conv2d(3, 4, 3, padding=1), u=nn.Conv2d(4, 4, 3, padding=1), o=nn.Conv2d(7, 2, 1)), [[(1, 3, 16, 16)], [(2, 3, 8, 24)], [(1, 3, 32, 12)]]
    for mode, extra in (("bilinear", dict(align_corners=False)), ("bilinear", dict(align_corners=True)), ("bicubic", dict(align_corners=False)), ("nearest", {}), ("area", {})):
        yield f"interpolate-{mode}-{extra.get('align_corners', '')}", plain(lambda x, m=mode, e=extra: F.interpolate(x, size=(7, 9), mode=m, **e)), [[(1, 2, 5, 6)], [(2, 2, 5, 6)], [(3, 2, 5, 6)]]
        if mode != "area":
            yield f"interpolate-to-{mode}-{extra.get('align_corners', '')}", plain(lambda x, y, m=mode, e=extra: F.interpolate(x, size=y.shape[2:], mode=m, **e) * y.mean()), [[(1, 2, 5, 6), (1, 1, 7, 8)], [(2, 2, 4, 6), (2, 1, 9, 3)], [(1, 2, 3, 3), (1, 1, 6, 6)]]
    yield "pixel-shuffle", plain(lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2) * 2, 2)), [[(1, 8, 4, 4)], [(2, 8, 4, 6)], [(1, 8, 2, 2)]]
    for mode, pads in (("bilinear", "zeros"), ("nearest", "border"), ("bilinear", "reflection")):
        yield f"grid-sample-{mode}-{pads}", plain(lambda x, g, m=mode, p=pads: F.grid_sample(x, g.tanh() * 1.2, mode=m, padding_mode=p, align_corners=False)), [[(1, 2, 5, 6), (1, 4, 3, 2)], [(2, 2, 4, 6), (2, 2, 2, 2)], [(1, 2, 7, 3), (1, 1, 5, 2)]]
    yield "deconv", module(lambda s, x: s.c(x).sigmoid(), c=nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)), [[(1, 3, 5, 5)], [(2, 3, 4, 6)], [(1, 3, 7, 3)]]
    yield "depthwise", module(lambda s, x: F.hardswish(s.p(F.relu6(s.d(x)))), d=nn.Conv2d(6, 6, 3, groups=6, padding=1, dilation=1), p=nn.Conv2d(6, 4, 1)), [[(1, 6, 8, 8)], [(2, 6, 5, 9)], [(1, 6, 3, 3)]]
    yield "conv3d", module(lambda s, x: F.max_pool3d(s.c(x), 2), c=nn.Conv3d(2, 3, 2)), [[(1, 2, 5, 6, 7)], [(2, 2, 5, 5, 5)], [(1, 2, 4, 4, 8)]]
    yield "conv1d-pads", module(lambda s, x: s.c(F.pad(x, (3, 1), mode="reflect")), c=nn.Conv1d(4, 4, 3, padding="same")), [[(1, 4, 9)], [(2, 4, 12)], [(1, 4, 5)]]
    yield "pads", plain(lambda x: F.pad(F.pad(F.pad(x, (1, 2), value=3.0).unsqueeze(0), (2, 1, 0, 1), mode="replicate"), (1, 1, 1, 1), mode="circular")), [[(2, 4, 5)], [(2, 3, 6)], [(2, 5, 4)]]
    yield "norms", module(lambda s, x: s.g(s.i(x)) + s.l(x.transpose(1, 3)).transpose(1, 3), g=nn.GroupNorm(2, 4), i=nn.InstanceNorm2d(4, affine=True), l=nn.LayerNorm(4)), [[(1, 4, 5, 5)], [(2, 4, 3, 6)], [(3, 4, 4, 2)]]
    yield "avg-pools", plain(lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False) + F.avg_pool2d(x, 3, 2, 1) + F.max_pool2d(x, 3, 2, 1) + F.lp_pool2d(F.pad(x, (1, 1, 1, 1)), 2.0, 3, 2)), [[(1, 2, 8, 8)], [(2, 2, 5, 7)], [(1, 2, 9, 6)]]
    yield "adaptive", plain(lambda x: F.adaptive_avg_pool2d(x, (2, 3)) + F.adaptive_max_pool2d(x, (2, 3))), [[(1, 2, 8, 9)], [(2, 2, 8, 9)], [(3, 2, 8, 9)]]
    yield "unfold", module(lambda s, x: s.f(F.unfold(x, 3, stride=2, padding=1).transpose(1, 2)), f=nn.Linear(18, 4)), [[(1, 2, 6, 6)], [(2, 2, 6, 6)], [(3, 2, 6, 6)]]

    # Recurrent.
    for kind in ("RNN", "GRU", "LSTM"):
        for both in (False, True):
            yield f"{kind}-{both}", module(lambda s, x: s.r(x)[0], r=getattr(nn, kind)(4, 5, 2, bidirectional=both, batch_first=True)), [[(1, 6, 4)], [(2, 3, 4)], [(3, 9, 4)]]
    yield "LSTM-states", module(lambda s, x, h, c: s.r(x, (h, c)), r=nn.LSTM(4, 5, batch_first=True)), [[(1, 6, 4), (1, 1, 5), (1, 1, 5)], [(2, 3, 4), (1, 2, 5), (1, 2, 5)], [(3, 1, 4), (1, 3, 5), (1, 3, 5)]]
    yield "LSTM-projection", module(lambda s, x: s.r(x)[0][:, -1], r=nn.LSTM(4, 5, batch_first=True)), [[(1, 6, 4)], [(2, 3, 4)], [(3, 9, 4)]]

    yield "crnn", module(lambda s, x: s.f(s.r(F.relu(s.c(x)).mean(2).permute(0, 2, 1))[0]).log_softmax(2), c=nn.Conv2d(1, 8, 3, padding=1), r=nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), f=nn.Linear(32, 7)), [[(1, 1, 8, 20)], [(1, 1, 8, 33)], [(1, 1, 8, 7)]]

    # Attention.
    def attention(s, x, mask=None):
        b, n, d = x.shape
        q, k, v = s.qkv(x).view(b, n, 3, 2, d // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / (d // 2) ** 0.5
        if mask is not None:
            scores = scores + mask
        return s.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))

    parts = lambda: dict(qkv=nn.Linear(8, 24), o=nn.Linear(8, 8))  # noqa: E731
    lengths = [[(1, 6, 8)], [(2, 3, 8)], [(3, 9, 8)]]
    yield "attention", module(attention, **parts()), lengths
    yield "attention-triu", module(lambda s, x: attention(s, x, torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)), **parts()), lengths
    yield "attention-arange", module(lambda s, x: attention(s, x, torch.where(torch.arange(x.shape[1])[:, None] >= torch.arange(x.shape[1])[None], 0.0, -1e9)), **parts()), lengths
    yield "attention-window", module(lambda s, x: attention(s, x, torch.where((torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])[None]).abs() < 3, 0.0, float("-inf"))), **parts()), lengths
    yield "attention-sdpa", module(lambda s, x: s.o(F.scaled_dot_product_attention(*s.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4), is_causal=True).transpose(1, 2).flatten(2)), **parts()), lengths
    bias = torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16) == 1
    yield "attention-buffer", module(lambda s, x: attention(s, x, torch.where(bias[:, :, : x.shape[1], : x.shape[1]], 0.0, torch.finfo(torch.float32).min)), **parts()), lengths
    yield "attention-cache", module(lambda s, x, past: (attention(s, torch.cat([past, x], 1))[:, -x.shape[1] :], torch.cat([past, x], 1)), **parts()), [[(1, 2, 8), (1, 3, 8)], [(2, 1, 8), (2, 5, 8)], [(1, 4, 8), (1, 1, 8)]]
    yield "multihead", module(lambda s, x: s.m(x, x, x)[0], m=nn.MultiheadAttention(8, 2, batch_first=True)), lengths
    yield "encoder", module(lambda s, x: s.e(x), e=nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False)), lengths
    yield "decoder", module(lambda s, x, m: s.e(x, m), e=nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)), [[(1, 6, 8), (1, 4, 8)], [(2, 3, 8), (2, 5, 8)], [(3, 9, 8), (3, 1, 8)]]

    def rope(x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[1])[:, None] * (10000.0 ** (-torch.arange(half) / half))[None]
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    yield "rope", module(lambda s, x: attention(s, rope(x)), **parts()), lengths
    yield "gpt", module(lambda s, i: s.h(attention(s, s.e(i) + s.p(torch.arange(i.shape[1]))[None], torch.triu(torch.full((i.shape[1], i.shape[1]), -1e9), 1))), e=nn.Embedding(11, 8), p=nn.Embedding(16, 8), h=nn.Linear(8, 11), **parts()), [[ids(n, 11, *shape)] for n, shape in enumerate([(1, 6), (2, 3), (3, 9)])]
    yield "bert", module(lambda s, i, m: attention(s, s.e(i), (1.0 - m[:, None, None, :].float()) * torch.finfo(torch.float32).min).mean(1), e=nn.Embedding(11, 8), **parts()), [[ids(n, 11, *shape), np.maximum(ids(n + 9, 2, *shape), np.eye(*shape, dtype="int64"))] for n, shape in enumerate([(1, 6), (2, 3), (3, 9)])]
    yield "positions-cumsum", module(lambda s, i: s.e((i.ne(1).int().cumsum(1) * i.ne(1).int()).long() + 1), e=nn.Embedding(32, 4)), [[ids(n, 4, *shape)] for n, shape in enumerate([(1, 6), (2, 3), (3, 9)])]
    yield "rms", module(lambda s, x: s.w * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * F.silu(x), w=nn.Parameter(torch.randn(8))), lengths
    yield "relative", module(lambda s, x: attention(s, x, s.b((torch.arange(x.shape[1])[None] - torch.arange(x.shape[1])[:, None]).clamp(-3, 3) + 3).permute(2, 0, 1)[None]), b=nn.Embedding(7, 2), **parts()), lengths

    # Slices, indices, shapes.
    rows = [[(4, 6)], [(7, 6)], [(5, 9)]]
    yield "slices", plain(lambda x: torch.cat([x[1:], x[:-1], x[::2], x[1:3], x[-2:]], 0)), rows
    yield "differences", plain(lambda x: (x[1:] - x[:-1], x - x[:, :1], x[:, 1:] * x[:, :-1])), rows
    yield "flip-roll", plain(lambda x: (x.flip(0), x.roll(2, 1), x.roll((1, -1), (0, 1)))), rows
    yield "chunk", plain(lambda x: torch.cat(x.chunk(2, 1)[::-1], 1)), [[(4, 6)], [(7, 6)], [(5, 6)]]
    yield "split", plain(lambda x: [p * (i + 1) for i, p in enumerate(x.split([1, 2, 3], 1))]), [[(4, 6)], [(7, 6)], [(5, 6)]]
    yield "einsum", plain(lambda x, y: (torch.einsum("bik,bjk->bij", x, y), torch.einsum("bik,bjl->bkl", x, y), torch.einsum("bii->bi", x @ x.transpose(1, 2)))), [[(2, 3, 4), (2, 5, 4)], [(1, 6, 4), (1, 2, 4)], [(3, 1, 4), (3, 3, 4)]]
    yield "gathers", plain(lambda x, i: (x.gather(1, i), x[i[:, 0]], x.index_select(0, i[0]), torch.take_along_dim(x, i, 1))), [[np.random.default_rng(n).standard_normal(s).astype("float32"), ids(n, 3, s[0], 2)] for n, s in enumerate([(4, 6), (7, 6), (5, 9)])]
    yield "index-put", plain(lambda x, i: x.clone().index_put((i,), torch.zeros(())) + x), [[np.random.default_rng(n).standard_normal(s).astype("float32"), np.arange(2)] for n, s in enumerate([(4, 6), (7, 6), (5, 9)])]
    yield "scatter", plain(lambda x, i: (torch.zeros_like(x).scatter(1, i, 1.0), x.scatter_add(1, i, torch.ones_like(i, dtype=torch.float32)), x.scatter_reduce(1, i, torch.full_like(i, 2, dtype=torch.float32), "amax"))), [[np.random.default_rng(n).standard_normal(s).astype("float32"), np.tile(np.array([[0, 2]]), (s[0], 1))] for n, s in enumerate([(4, 6), (7, 6), (5, 9)])]
    yield "masked", plain(lambda x: (x.masked_fill(x > 0, -1.0), torch.where(x < 0, x * 2, x.new_zeros(())), x.clamp(-0.5, 0.5), (x > 0).any(1), (x > 0).all(0))), rows
    yield "nonzero", plain(lambda x: x[x > 0].sum() + torch.nonzero(x > 0.5).float().sum()), rows
    yield "topk", plain(lambda x: (*x.topk(3, 1), *x.sort(1, descending=True, stable=True), x.argmax(1), x.kthvalue(2, 1).values)), rows
    yield "cums", plain(lambda x: (x.cumsum(0), x.cumsum(1).flip(1), x.cumprod(1), x.logcumsumexp(1))), rows
    yield "reductions", plain(lambda x: (x.mean(0), x.std(1), x.var(0, unbiased=False), x.amax(1), x.min(0).values, x.prod(1), x.norm(dim=1), x.logsumexp(1), x.abs().sum())), rows
    yield "views", plain(lambda x: (x.reshape(-1), x.view(x.shape[0], 2, -1), x.t().contiguous().view(-1, x.shape[0]), x.unsqueeze(1).expand(-1, 3, -1), x.repeat(2, 3), x.unflatten(1, (3, -1)))), [[(4, 6)], [(7, 6)], [(5, 12)]]
    yield "stack", plain(lambda x: (torch.stack([x, x * 2], 1), torch.cat([x.new_ones(x.shape[0], 1), x], 1), x.new_full((x.shape[0],), 2.0))), rows
    yield "ranges", plain(lambda x: (torch.arange(x.shape[0]), torch.arange(0, x.shape[1] * 2, 2), torch.linspace(0, 1, 5), torch.arange(x.shape[0], 0, -1), torch.eye(x.shape[1]))), rows
    yield "meshgrid", plain(lambda x: torch.stack(torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij"), -1).float() + x[..., None]), rows
    yield "outer", plain(lambda x: (x @ x.t(), torch.outer(x[0], x[1]), torch.bmm(x[None], x.t()[None]), torch.addmm(x @ x.t(), x, x.t(), beta=0.5), x @ x[0])), rows
    yield "tril", plain(lambda x: (x.tril(), x.triu(1), x.tril(-1), x.diagonal())), rows
    yield "one-hot", plain(lambda i: F.one_hot(i, 5).float() * 2), [[ids(n, 5, *shape)] for n, shape in enumerate([(1, 6), (2, 3), (3, 9)])]
    yield "bucket", plain(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5]))), rows
    yield "cdist", plain(lambda x, y: torch.cdist(x, y)), [[(4, 3), (5, 3)], [(2, 3), (2, 3)], [(1, 3), (7, 3)]]
    yield "integers", plain(lambda i: (i // 3, i % 3, i.float() / 2, -i // 2, i << 1, i & 6, i ^ 3, i.pow(2), i.remainder(-3))), [[ids(n, 50, *shape)] for n, shape in enumerate([(1, 6), (2, 3), (3, 9)])]
    yield "activations", plain(lambda x: sum(f(x) for f in (F.gelu, F.elu, F.selu, F.celu, F.softplus, F.mish, F.silu, F.hardtanh, F.hardsigmoid, F.leaky_relu, F.logsigmoid, F.tanhshrink, F.softsign, F.relu6, torch.erf, torch.atan, torch.sinh, torch.expm1, torch.exp))), rows
    yield "gelu-tanh", plain(lambda x: F.gelu(x, approximate="tanh") + F.glu(x, 1).sum() + F.prelu(x, torch.tensor([0.2])) + F.threshold(x, 0.1, 0.0)), rows
    yield "rounds", plain(lambda x: (x.round(), (x * 3).floor(), x.ceil(), x.trunc(), x.frac(), x.sign(), torch.fmod(x, 0.3), torch.remainder(x, 0.3), x.isnan(), x.isinf())), rows
    yield "losses", plain(lambda x: (F.cross_entropy(x, torch.arange(3)), F.mse_loss(x, x * 0.5), F.smooth_l1_loss(x, x * 0.1), F.nll_loss(x.log_softmax(1), torch.arange(3)))), [[(3, 6)]] * 3
    yield "embedding-bag", module(lambda s, i: s.e(i), e=nn.EmbeddingBag(11, 4, mode="mean")), [[ids(n, 11, 2, 3)] for n in range(3)]
    yield "half", plain(lambda x: ((x.half() * 2).float() + x.double().float() + x.to(torch.int32).float())), rows
    yield "boolean", plain(lambda x: ((x > 0) & (x < 1) | ~(x > -1)).float() + (x > 0).logical_xor(x > 1).float()), rows
    yield "cosine", plain(lambda x, y: (F.cosine_similarity(x, y), F.normalize(x), F.pairwise_distance(x, y))), [[(4, 6), (4, 6)], [(7, 6), (7, 6)], [(5, 9), (5, 9)]]
    yield "complex-free-fft", plain(lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=False, center=False)), [[(1, 32)], [(2, 32)], [(3, 32)]]


def scripted():
    """Control flow, which only the older exporter takes from scripts."""
    import torch

    class Branch(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                y = x * 2
            else:
                y = x - 1
            return y

    class Count(torch.nn.Module):
        def forward(self, x):
            y = torch.zeros_like(x)
            for i in range(x.shape[0]):
                y = y + x[i : i + 1] * i
            return y

    class Until(torch.nn.Module):
        def forward(self, x):
            n = 0
            while bool(x.abs().sum() > 1.0) and n < 20:
                x = x * 0.5
                n += 1
            return x

    class Gather(torch.nn.Module):
        def forward(self, x):
            parts = []
            for i in range(x.shape[0]):
                parts.append(x[i] * i)
            return torch.stack(parts)

    for made in (Branch, Count, Until, Gather):
        yield f"script-{made.__name__}", torch.jit.script(made()), [[(4, 6)], [(7, 6)], [(5, 9)]]


def arrays(runs, seed=0):
    rng = np.random.default_rng(seed)
    fill = lambda one: one if isinstance(one, np.ndarray) else rng.standard_normal(one).astype("float32")  # noqa: E731
    return [[fill(one) for one in run] for run in runs]


def named(runs):
    """The axes of each input whose length is not the same in all runs."""
    shapes = [[a.shape for a in run] for run in runs]
    return [[axis for axis in range(len(of[0])) if len({shape[axis] for shape in of}) > 1] for of in zip(*shapes)]


def export(network, runs, fixed, dynamo):
    import torch

    runs = runs[:1] if fixed else runs
    inputs = tuple(torch.from_numpy(a) for a in runs[-1])
    names = [f"x{i}" for i in range(len(inputs))]
    axes = named(runs)
    network = network.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if dynamo:
            # The inputs are one argument, `*inputs`.
            shapes = (tuple({axis: torch.export.Dim.DYNAMIC for axis in of} for of in axes),)
            program = torch.onnx.export(network, inputs, dynamo=True, dynamic_shapes=shapes if not fixed else None, input_names=names, verbose=False)
            return program.model_proto
        file = io.BytesIO()
        dynamic = {name: {axis: f"{name}_{axis}" for axis in of} for name, of in zip(names, axes)}
        torch.onnx.export(network, inputs, file, dynamo=False, input_names=names, dynamic_axes=None if fixed else dynamic, opset_version=18)
        return file.getvalue()


def files():
    import logging

    import torch

    logging.disable(logging.WARNING)
    torch.manual_seed(0)
    # Its fused kernels are no operators of ONNX.
    torch.backends.mha.set_fastpath_enabled(False)
    for source, kinds in ((networks, (False, True)), (scripted, (False,))):
        for name, network, shapes in source():
            runs = arrays(shapes)
            for dynamo in kinds:
                for fixed in (True, False):
                    kind = f"torch-{'dynamo' if dynamo else 'older'}-{'fixed' if fixed else 'named'}-{name}"
                    trial = arrays([shapes[0]] * 3, 4) if fixed else runs
                    feeds = [{f"x{i}": a for i, a in enumerate(run)} for run in trial]
                    yield kind, lambda n=network, r=runs, f=fixed, d=dynamo: export(n, r, f, d), feeds
