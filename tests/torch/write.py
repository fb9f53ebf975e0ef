"""Writes the programs that the tests without PyTorch read: small modules, exported, each with inputs and results beside it.

usage: python tests/torch/write.py [name…]    (needs PyTorch 2.9 or newer; without names, all are written)

What an archive says about the machine that wrote it (lines of files, versions of nodes) is left out.
"""

import io
import json
import pathlib
import sys
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).with_name("programs")
Dim = torch.export.Dim


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: (t * 2,), lambda t: (t - 1,), (x,))


class Loop(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda n, t: n < 5, lambda n, t: (n + 1, t * 1.5), (torch.tensor(0), x))[1]


class Map(nn.Module):
    """Rows of two tensors, a weight that the body captures, and a branch in it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, y, scale):
        from torch._higher_order_ops.map import map

        def body(rows, scale):
            a, b = rows
            a = torch.cond(a.sum() > 0, lambda t: (t * 2,), lambda t: (t - 1,), (a,))[0]
            return self.layer(a) * scale, b + 1

        return map(body, (x, y), scale)


class Nested(nn.Module):
    """Loops over rows in a loop over rows, whose lengths are both open, with a loop's state going through both."""

    def forward(self, start, x):
        from torch._higher_order_ops.map import map
        from torch._higher_order_ops.scan import scan

        def outer(carry, rows):
            last, _ = scan(lambda total, row: (total + row, total.clone()), carry, map(lambda row: row.cumsum(0), rows))
            return last, last * rows

        return scan(outer, start, x)


class Scan(nn.Module):
    """State, rows along the second axis, from the last on, and a tensor that is only read."""

    def forward(self, start, x, k):
        from torch._higher_order_ops.scan import scan

        def step(carry, row):
            total, last = carry
            return (total * 0.5 + row * k, row.clone()), (total.clone(), last + row)

        return scan(step, (start, start * 2), x, dim=1, reverse=True)


class Associative(nn.Module):
    def forward(self, a, b):
        from torch._higher_order_ops.associative_scan import associative_scan

        def combine(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        return associative_scan(combine, (a, b), dim=0, combine_mode="pointwise")


class Grow(nn.Module):
    """A loop whose state has open lengths, with a loop over its rows inside."""

    def forward(self, x, step):
        from torch._higher_order_ops.map import map
        from torch._higher_order_ops.while_loop import while_loop

        def body(count, total):
            return count + 1, total + map(lambda row: row * step, total)

        return while_loop(lambda count, total: total.sum() < 100, body, (torch.tensor(0), x))


class Rows(nn.Module):
    """Lengths that depend on values, indices and masks."""

    def forward(self, x, places):
        chosen = x[x[:, 0] > 0]
        return chosen, x[places], x.nonzero().sum(), torch.where(x > 0, x, 0.0)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(4))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class Shapes(nn.Module):
    def forward(self, x):
        a, b = x.split([1, x.shape[1] - 1], 1)
        return x.reshape(-1, x.shape[2]), x[:, -1], F.pad(b, (1, 2)), a.expand(-1, 3, -1), torch.arange(x.shape[0])


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.Hardswish(), nn.MaxPool2d(2))
        self.up = nn.ConvTranspose2d(6, 3, 2, stride=2)

    def forward(self, x):
        y = self.up(self.stem(x))
        return F.interpolate(y, scale_factor=2, mode="bilinear"), F.adaptive_avg_pool2d(y, 1).flatten(1)


class Quantized(nn.Module):
    """What quantization writes between operators: weights of channels and groups, numbers of all, of rows, and as they come."""

    def __init__(self):
        super().__init__()
        self.register_buffer("filters", torch.randint(-128, 128, (6, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.randint(-4, 4, (6,)))
        self.register_buffer("groups", torch.randint(-128, 128, (5, 24), dtype=torch.int8))
        self.register_buffer("group_scales", torch.rand(5, 3) * 0.02 + 0.001)
        self.register_buffer("group_zeros", torch.randint(-4, 4, (5, 3)))

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        x = ops.quantize_per_tensor(x, 0.0213, 117, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor(x, 0.0213, 117, 0, 255, torch.uint8)
        filters = ops.dequantize_per_channel(self.filters, self.scales, self.zeros, 0, -128, 127, torch.int8)
        y = F.conv2d(x, filters, padding=1).relu().flatten(2).mean(1)
        scale, zero = ops.choose_qparams(y, -128, 127, 1e-5, torch.int8)
        whole = ops.quantize_per_tensor(y, scale, zero, -128, 127, torch.int8)
        y = ops.dequantize_per_tensor(whole, scale, zero, -128, 127, torch.int8)
        scale, zero = ops.choose_qparams_per_token_asymmetric(y, torch.int8)
        rows = ops.quantize_per_token(y, scale, zero, -128, 127, torch.int8)
        y = ops.dequantize_per_token(rows, scale, zero, -128, 127, torch.int8, torch.float32)
        weight = ops.dequantize_per_channel_group(self.groups, self.group_scales, self.group_zeros, -128, 127, torch.int8, 8, torch.float32)
        return F.linear(y, weight), whole, rows, torch._int_mm(rows, self.groups.t().contiguous())


class Blind(nn.Module):
    """Attention of queries of which one may see nothing, by a mask and by what is added."""

    def forward(self, x, mask):
        added = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask), F.scaled_dot_product_attention(x, x, x, attn_mask=added)


class Experts(nn.Module):
    """Rows by the expert that they go to, the last ones to none."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.randn(4, 4, 8))

    def forward(self, x, experts):
        counts = torch.histc(experts.float(), bins=4, min=0, max=3)
        ends = counts.cumsum(0, dtype=torch.int32)
        product = torch._grouped_mm(x, self.weights, ends)
        return counts, torch.where((experts < 4)[:, None], product, 0.0)


def whole():
    """What PyTorch would write in terms of others, and what it has no terms for."""
    torch.manual_seed(4)
    mask = torch.rand(2, 1, 4, 4) > 0.5
    mask[:, :, 1] = False
    mask[:, :, 2, 0] = True
    yield "blind", Blind(), (torch.randn(2, 3, 4, 8), mask), ({0: Dim("n")}, {0: Dim("n")})
    yield "experts", Experts(), (torch.randn(9, 4), torch.tensor([0, 0, 1, 1, 1, 3, 3, 7, 9])), None


def quantized():
    import torch.ao.quantization.fx._decomposed  # noqa: F401 (adds the operators)

    torch.manual_seed(3)
    yield "quantized", Quantized(), (torch.randn(3, 3, 4, 6),), None


def loops():
    torch.manual_seed(1)
    rows = ({0: Dim("n")}, {0: Dim("n")}, None)
    yield "map", Map(), (torch.randn(5, 3, 4), torch.randn(5, 2), torch.randn(3, 4)), rows
    yield "nested", Nested(), (torch.randn(4), torch.randn(3, 2, 4)), (None, {0: Dim("n"), 1: Dim("m")})
    yield "scan", Scan(), (torch.randn(3, 4), torch.randn(3, 7, 4), torch.randn(4)), (None, {1: Dim("n")}, None)
    yield "associative", Associative(), (torch.rand(6, 3), torch.randn(6, 3)), ({0: Dim("n")}, {0: Dim("n")})
    yield "grow", Grow(), (torch.rand(3, 4) + 0.1, torch.rand(4)), ({0: Dim("n")}, None)


def recurrent():
    """Layers that stay as they are, where the cases before have PyTorch write the steps."""
    torch.manual_seed(2)
    batches = ({1: Dim("n")},)
    yield "lstm_layers", nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), (torch.randn(2, 6, 3),), ({0: Dim("n")},)
    yield "lstm_projected", nn.LSTM(3, 4, proj_size=2, bidirectional=True), (torch.randn(6, 2, 3),), batches
    yield "lstm_unbiased", nn.LSTM(3, 4, bias=False), (torch.randn(3, 2, 3),), batches
    yield "gru_layers", nn.GRU(3, 4, num_layers=2, bidirectional=True), (torch.randn(6, 2, 3), torch.randn(4, 2, 4)), None
    yield "gru_one", nn.GRU(3, 4), (torch.randn(6, 3),), None
    yield "rnn_relu", nn.RNN(3, 4, nonlinearity="relu", batch_first=True), (torch.randn(2, 6, 3),), ({0: Dim("n")},)
    yield "rnn_tanh", nn.RNN(3, 4), (torch.randn(2, 2, 3),), batches


def cases():
    torch.manual_seed(0)
    yield "linear", nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), (torch.randn(3, 4),), None
    yield "linear_batches", nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Softmax(-1)), (torch.randn(3, 4),), ({0: Dim("n")},)
    yield "image", Image(), (torch.randn(2, 3, 16, 16),), None
    yield "attention", Attention(), (torch.randn(2, 5, 8),), ({0: Dim("n"), 1: Dim("length")},)
    yield "branch", Branch(), (torch.randn(3, 4),), None
    yield "loop", Loop(), (torch.randn(3, 4),), None
    yield "rows", Rows(), (torch.randn(6, 3), torch.tensor([0, -1, 2])), None
    yield "counter", Counter(), (torch.randn(3, 4),), None
    yield "shapes", Shapes(), (torch.randn(2, 5, 3),), ({0: Dim("n"), 1: Dim("length", min=3)},)
    yield "lstm", nn.LSTM(3, 4), (torch.randn(5, 2, 3),), None
    yield "integers", Integers(), (torch.randint(-9, 9, (3, 4)), torch.randint(1, 5, (3, 4))), None
    yield "embedding", nn.Sequential(nn.Embedding(9, 4), nn.Flatten()), (torch.randint(0, 9, (2, 3)),), None


class Integers(nn.Module):
    def forward(self, a, b):
        return a // b, a % b, torch.fmod(a, b), a / b, a & b, (a > b).sum(), a.cumsum(1), a.sort(1)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return [value]


def scrubbed(archive, name):
    """The archive without what it says of the machine, and without what no reader needs."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.infolist():
            path = pathlib.PurePosixPath(member.filename)
            if "sample_inputs" in path.parts:
                continue
            data = old.read(member)
            if path.suffix == ".json" and "models" in path.parts:
                program = json.loads(data)
                clean(program["graph_module"]["graph"])
                program["graph_module"]["module_call_graph"] = []
                data = json.dumps(program, separators=(",", ":")).encode()
            # The same bytes for the same program.
            new.writestr(zipfile.ZipInfo(str(pathlib.PurePosixPath(name, *path.parts[1:]))), data)
    return out.getvalue()


def clean(graph):
    for node in graph["nodes"]:
        node["metadata"] = {"stack_trace": f'File "model.py", line 1, in forward\n    {node["name"]}'}
        for argument in node["inputs"]:
            inner = argument["arg"].get("as_graph") if isinstance(argument["arg"], dict) else None
            if inner:
                clean(inner["graph"])


def write(name, module, inputs, dynamic, kept, again):
    module = module.eval()
    with torch.no_grad():
        program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
        decompositions = torch.export.default_decompositions()
        for operator in [known for known in decompositions if known.name() in kept]:
            del decompositions[operator]
        decomposed = program.run_decompositions(decompositions)
    # Before the module runs, which may change its buffers.
    archive = io.BytesIO()
    torch.export.save(decomposed, archive)
    (FOLDER / f"{name}.pt2").write_bytes(scrubbed(archive, name))
    write_call(FOLDER / f"{name}.npz", program, inputs)
    if again:
        write_call(FOLDER / f"{name}.again.npz", program, again)


def write_call(path, program, inputs):
    with torch.no_grad():
        results = flat(program.module()(*inputs))
    arrays = {f"in{at}": value.numpy() for at, value in enumerate(inputs)}
    arrays |= {f"out{at}": value.numpy() for at, value in enumerate(results)}
    np.savez(path, **arrays)


def longer(inputs, dynamic):
    """Inputs that are twice as long where lengths are open."""
    made = []
    for value, axes in zip(inputs, dynamic):
        for axis in axes or ():
            value = torch.cat([value, (value.flip(axis) * 0.75).to(value.dtype)], axis)
        made.append(value)
    return tuple(made)


def main():
    FOLDER.mkdir(exist_ok=True)
    kept = ("aten::lstm.input", "aten::gru.input", "aten::rnn_tanh.input", "aten::rnn_relu.input", "aten::scaled_dot_product_attention")
    for group, kept in ((cases(), ()), (loops(), ()), (recurrent(), kept), (whole(), kept), (quantized(), ())):
        for name, module, inputs, dynamic in group:
            if name in sys.argv[1:] or not sys.argv[1:]:
                write(name, module, inputs, dynamic, kept, longer(inputs, dynamic) if dynamic else None)


if __name__ == "__main__":
    main()
