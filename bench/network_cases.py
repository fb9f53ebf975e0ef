"""The networks that ``models.py`` times: as files of ONNX, with what they are called with.

Some come with packages that the tests use, or are built node by node. The others are torchvision's and transformers' with random
weights, or are written here in PyTorch, and are exported once into a folder: they need ``torch``, ``torchvision``, ``transformers`` and
``onnxscript``, which nothing else here does.
"""

import dataclasses
import pathlib
import sys
from typing import Callable

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "models"))


@dataclasses.dataclass(frozen=True)
class Network:
    """A network: how its file comes to be, and one call's arguments."""

    name: str
    #: Writes the file, or finds it; a folder is given.
    file: Callable[[pathlib.Path], pathlib.Path]
    #: Arrays by the names of inputs.
    feed: Callable[[], dict]
    #: The module of PyTorch and its arguments, for PyTorch's own compiler; nothing where there is none.
    module: Callable[[], tuple] | None = None


def image(side, name="x", batch=1):
    return lambda: {name: np.random.default_rng(0).standard_normal((batch, 3, side, side), "float32")}


def of_tests(name, shape):
    """A network of the tests with one input."""
    import zoo

    model = zoo.MODELS[name]
    return Network(name, lambda _: pathlib.Path(model.path), lambda: {model.input: model.make(shape)})


def built(name, build, feed):
    """A network that is built node by node."""

    def file(folder):
        import onnx

        path = folder / f"{name}.onnx"
        if not path.exists():
            onnx.save(build(), path)
        return path

    return Network(name, file, feed)


def exported(name, make, feed, dynamic=None):
    """A module of PyTorch, exported. ``dynamic`` names dimensions of inputs that stay open, by input and axis."""

    def module():
        import torch

        torch.manual_seed(0)
        return make().eval(), tuple(torch.from_numpy(array) for array in feed().values())

    def file(folder):
        import torch

        path = folder / f"{name}.onnx"
        if not path.exists():
            model, args = module()
            names = list(feed())
            shapes = dynamic and tuple(
                {axis: torch.export.Dim(dim, min=1, max=1 << 16) for axis, dim in dynamic.get(input, {}).items()} for input in names
            )
            with torch.no_grad():
                torch.onnx.export(
                    model, args, str(path), input_names=names, dynamic_shapes=shapes, dynamo=True, opset_version=18, external_data=False,
                    verbose=False,
                )
        return path

    return Network(name, file, feed, module)


def vision(name, side=224):
    """A classifier of torchvision."""

    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None)

    return exported(name, make, image(side))


def first(make):
    """A module that gives the first result of another, by its name or place."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()

        def forward(self, x):
            result = self.inner(x)
            return result[0] if isinstance(result, tuple) else next(iter(result.values()))

    return First()


def segmentation():
    import torchvision

    return first(lambda: torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, aux_loss=False))


def transformer(config, model, **options):
    """A network of transformers with random weights, by the names of its classes."""

    def make():
        import transformers

        made = getattr(transformers, model)(getattr(transformers, config)(**options, use_cache=False))
        return first(lambda: made)

    return make


def tokens(length, batch=1, vocabulary=30_000):
    return lambda: {"input_ids": np.random.default_rng(0).integers(0, vocabulary, (batch, length))}


def vocoder():
    """HiFi-GAN's form (Kong et al., 2020): transposed convolutions by 8 and 4, then dilated ones, added up."""
    from torch import nn
    from torch.nn import functional

    class Residual(nn.Module):
        def __init__(self, channels, kernel):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Conv1d(channels, channels, kernel, padding=dilation * (kernel - 1) // 2, dilation=dilation) for dilation in (1, 3, 5)
            )

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(functional.leaky_relu(x, 0.1))
            return x

    class Vocoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(80, 128, 7, padding=3)
            channels = 128
            self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
            for factor in (8, 4):
                self.up.append(nn.ConvTranspose1d(channels, channels // 2, 2 * factor, factor, padding=factor // 2))
                channels //= 2
                self.blocks.append(nn.ModuleList(Residual(channels, kernel) for kernel in (3, 7, 11)))
            self.last = nn.Conv1d(channels, 1, 7, padding=3)

        def forward(self, mel):
            x = self.first(mel)
            for up, blocks in zip(self.up, self.blocks):
                x = up(functional.leaky_relu(x, 0.1))
                x = sum(block(x) for block in blocks) / len(blocks)
            return self.last(functional.leaky_relu(x)).tanh()

    return Vocoder()


def unet():
    """U-Net's form (Ronneberger et al., 2015) with four levels."""
    import torch
    from torch import nn

    def twice(inputs, outputs):
        layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (32, 64, 128, 256)
            self.down = nn.ModuleList(twice(i, o) for i, o in zip((3, *widths), widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(widths, widths[1:]))
            self.join = nn.ModuleList(twice(2 * i, i) for i in widths[:-1])
            self.last = nn.Conv2d(widths[0], 2, 1)

        def forward(self, x):
            kept = []
            for level, layer in enumerate(self.down):
                x = layer(x if level == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for level in reversed(range(len(self.up))):
                x = self.join[level](torch.cat([kept[level], self.up[level](x)], 1))
            return self.last(x)

    return UNet()


def detector():
    """The form of small detectors: stages of 3×3 convolutions with SiLU, two of them joined again by enlarging."""
    import torch
    from torch import nn

    def conv(inputs, outputs, kernel=3, stride=1):
        return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())

    class Split(nn.Module):
        def __init__(self, channels, count):
            super().__init__()
            self.inside = conv(channels, channels, 1)
            self.layers = nn.ModuleList(nn.Sequential(conv(channels // 2, channels // 2), conv(channels // 2, channels // 2)) for _ in range(count))
            self.outside = conv(channels // 2 * (2 + count), channels, 1)

        def forward(self, x):
            parts = list(self.inside(x).chunk(2, 1))
            for layer in self.layers:
                parts.append(parts[-1] + layer(parts[-1]))
            return self.outside(torch.cat(parts, 1))

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.early = nn.Sequential(conv(3, 16, stride=2), conv(16, 32, stride=2), Split(32, 1), conv(32, 64, stride=2), Split(64, 2))
            self.middle = nn.Sequential(conv(64, 128, stride=2), Split(128, 2))
            self.late = nn.Sequential(conv(128, 256, stride=2), Split(256, 1))
            self.joined = nn.ModuleList([nn.Sequential(conv(384, 128, 1), Split(128, 1)), nn.Sequential(conv(192, 64, 1), Split(64, 1))])
            self.heads = nn.ModuleList(nn.Sequential(conv(c, 64), nn.Conv2d(64, 84, 1)) for c in (64, 128, 256))

        def forward(self, x):
            near = self.early(x)
            middle = self.middle(near)
            far = self.late(middle)
            middle = self.joined[0](torch.cat([nn.functional.interpolate(far, scale_factor=2.0), middle], 1))
            near = self.joined[1](torch.cat([nn.functional.interpolate(middle, scale_factor=2.0), near], 1))
            return torch.cat([head(part).flatten(2) for head, part in zip(self.heads, (near, middle, far))], 2)

    return Detector()


def diacritics():
    """A small network for characters: an embedding, two LSTMs in both directions, a layer."""
    from torch import nn

    class Diacritics(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(64, 64)
            self.lstm = nn.LSTM(64, 128, num_layers=2, bidirectional=True, batch_first=True)
            self.last = nn.Linear(256, 16)

        def forward(self, input_ids):
            return self.last(self.lstm(self.table(input_ids))[0])

    return Diacritics()


def of_silero(name, at):
    """A detector of silero-vad."""
    import silero

    return Network(name, lambda _: silero.path(name), lambda: silero.MODELS[name][at])


def minilm_feed():
    ids = np.random.default_rng(0).integers(0, 30_000, (1, 32))
    return {"input_ids": ids, "token_type_ids": 0 * ids, "attention_mask": np.ones_like(ids)}


def of_minilm():
    def build():
        sys.path.insert(0, str(HERE.parent / "examples" / "sentence_embedding"))
        import minilm

        return minilm.build()

    return built("minilm", build, minilm_feed)


def symbolic_resnet18():
    def build():
        import resnet18

        return resnet18.build()

    return built("resnet18_symbolic", build, image(224))


def decoder():
    def build():
        import llama

        return llama.build()

    def feed():
        import llama

        return llama.feeds()[-1]

    return built("decoder_tiny", build, feed)


BERT = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
WHISPER = {
    "d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
    "decoder_layers": 1, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536,
}  # fmt: skip


def whisper():
    import transformers

    return first(lambda: transformers.WhisperModel(transformers.WhisperConfig(**WHISPER)).get_encoder())


def t5():
    import transformers

    return first(lambda: transformers.T5EncoderModel(transformers.T5Config(use_cache=False)))


#: The shapes of the networks of the tests: a page, a line, a line, a file, a photograph.
SHAPES = {
    "det": (1, 3, 480, 640),
    "rec": (1, 3, 48, 320),
    "cls": (1, 3, 48, 192),
    "magika": (1, 2048),
    "resnet18": (1, 3, 224, 224),
}

#: What ``models.py`` times where nothing is said.
USUAL = [of_tests(name, shape) for name, shape in SHAPES.items()]

#: With ``--all``, these too.
FURTHER = [
    exported("vocoder", vocoder, lambda: {"mel": np.random.default_rng(0).standard_normal((1, 80, 100), "float32")}, {"mel": {2: "frames"}}),
    exported("deeplabv3_resnet50", segmentation, image(257)),
    of_silero("silero_vad", 0),
    of_silero("silero_vad_16k_sequence", 2),
    symbolic_resnet18(),
    exported("diacritics", diacritics, tokens(64, vocabulary=64)),
    *map(
        vision,
        [
            "googlenet", "squeezenet1_1", "mobilenet_v3_small", "mobilenet_v3_large", "vgg11", "mnasnet1_0", "regnet_y_400mf", "densenet121",
            "mobilenet_v2", "resnet34", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "efficientnet_b0", "efficientnet_v2_s",
            "shufflenet_v2_x1_0", "alexnet", "swin_t", "convnext_tiny", "vit_b_16",
        ],
    ),
    vision("inception_v3", 299),
    exported("detector", detector, image(320)),
    exported("unet", unet, image(256)),
    exported("bert_base_128", transformer("BertConfig", "BertModel", **BERT), tokens(128)),
    exported("distilbert_128", transformer("DistilBertConfig", "DistilBertModel"), tokens(128)),
    exported("gpt2_small", transformer("GPT2Config", "GPT2LMHeadModel"), tokens(64)),
    exported("whisper_encoder", whisper, lambda: {"input_features": np.random.default_rng(0).standard_normal((1, 80, 3000), "float32")}),
    exported("t5_encoder_dynamic", t5, tokens(64), {"input_ids": {1: "length"}}),
    of_minilm(),
    decoder(),
]  # fmt: skip

NETWORKS = {network.name: network for network in [*USUAL, *FURTHER]}
