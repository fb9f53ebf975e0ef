"""Finds which sentences mean the same, with MiniLM compiled to one file.

usage: embed.py [--build DIRECTORY] [SENTENCE ...]

Batch and length are symbolic: the library takes any number of sentences of any length.
"""

import argparse
import pathlib
import time

import minilm
import numpy as np
import onnx

import relaxide as tvm

HERE = pathlib.Path(__file__).resolve().parent
SENTENCES = [
    "The bakery around the corner opens at six.",
    "You can buy fresh bread from early in the morning.",
    "Our train was forty minutes late again.",
    "The railway apologises for the delay.",
    "She plays the cello in an orchestra.",
]


def library(build):
    """The compiled model, made where it is not there yet."""
    path = build / "minilm.so"
    if not path.exists():
        build.mkdir(parents=True, exist_ok=True)
        onnx.save(minilm.build(), build / "minilm.onnx")
        start = time.perf_counter()
        module = tvm.relax.frontend.onnx.from_onnx(build / "minilm.onnx")
        tvm.compile(module, target="llvm").export_library(str(path))
        size, seconds = path.stat().st_size / 1e6, time.perf_counter() - start
        print(f"compiled minilm.onnx to {path.name}: {size:.0f} MB in {seconds:.1f} s")
    return tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())


def tokens(sentences):
    """Ids, segments and mask, padded to the longest sentence."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm.folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences)
    return [np.array([getattr(e, part) for e in encoded], "int64") for part in ("ids", "type_ids", "attention_mask")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", nargs="*", help="by default five examples")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "sentence_embedding")
    args = parser.parse_args()
    sentences = args.sentences or SENTENCES
    machine = library(args.build)
    inputs = [tvm.runtime.tensor(x) for x in tokens(sentences)]
    start = time.perf_counter()
    vectors = machine["main"](*inputs).numpy()
    print(f"{len(sentences)} sentences in {(time.perf_counter() - start) * 1e3:.1f} ms\n")
    likeness = vectors @ vectors.T - 2 * np.eye(len(sentences))
    for sentence, row in zip(sentences, likeness):
        nearest = int(row.argmax())
        print(f"{row[nearest]:5.2f}  {sentence}\n       {sentences[nearest]}")


if __name__ == "__main__":
    main()
