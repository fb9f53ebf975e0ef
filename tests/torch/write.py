"""Writes the programs that the tests without PyTorch read: small modules, exported, each with inputs and results beside it.

usage: python tests/torch/write.py    (needs PyTorch 2.9 or newer)

What an archive says about the machine that wrote it (lines of files, versions of nodes) is left out.
"""

import io
import json
import pathlib
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


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, module, inputs, dynamic in cases():
        module = module.eval()
        with torch.no_grad():
            program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
            decomposed = program.run_decompositions()
        # Before the module runs, which may change its buffers.
        archive = io.BytesIO()
        torch.export.save(decomposed, archive)
        with torch.no_grad():
            results = flat(program.module()(*inputs))
        (FOLDER / f"{name}.pt2").write_bytes(scrubbed(archive, name))
        arrays = {f"in{at}": value.numpy() for at, value in enumerate(inputs)}
        arrays |= {f"out{at}": value.numpy() for at, value in enumerate(results)}
        np.savez(FOLDER / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main()
