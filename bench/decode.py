"""Tokens a second of a LLaMA-shaped decoder with weights of 32, 16, 8 and 4 bits, beside ONNX Runtime and llama.cpp with the same weights.

    python bench/decode.py [--width 1024] [--layers 10] [--past 64] [--threads 1,2] [--turns 15]

The network is that of ``tests/models/llama.py`` with random weights, half a gigabyte of them as float32. ``decode`` is one token behind a cache
of ``--past``, each behind the one before: what a call gives as caches is what the next is handed. ``prompt`` is 64 tokens at once. Contenders are processes that take turns; medians are printed, and for decoding the rate at which
weights are read, as a share of what reading alone reaches in the same turns. ONNX Runtime has float32, ``quantize_dynamic`` (int8), and
``MatMulNBits`` in blocks of 32 with ``accuracy_level`` 4. llama.cpp (``pip install llama-cpp-python gguf``) has the matrices as ``F32``, ``Q8_0`` and ``Q4_0``;
its logits of a prompt are compared with those of the ONNX file before it takes part.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "tests" / "models"))
from turns import Contender, serve  # noqa: E402

PAST, PROMPT = 64, 64
#: The longest text that the file for llama.cpp says it is for.
CONTEXT = 1 << 15
#: How many tokens are decoded behind the cache at most.
MOST_TOKENS = 192
#: Bits of a weight, with its scales, by contender.
BITS = {
    "float32": 32, "bf16": 16, "bfloat16-weights": 16, "int8-weights": 8, "int8": 8.25, "int4-weights": 4.5,
    "onnxruntime": 32, "onnxruntime int8": 8, "onnxruntime int4": 5,
    "llama.cpp f32": 32, "llama.cpp q8_0": 8.5, "llama.cpp q4_0": 4.5,
}
#: How far logits may lie apart, root mean square by root mean square. Random weights of 4 bits are far from what they were.
LLAMA_ERRORS = {"f32": 1e-3, "q8_0": 0.05, "q4_0": 0.7}
PASSES = {
    "float32": (), "bf16": ("bfloat16", True), "bfloat16-weights": ("bfloat16",), "int8-weights": ("int8",),
    "int8": ("int8", True), "int4-weights": ("int4",),
}
READ_BYTES = 1 << 29


def sized(width, layers):
    import llama

    llama.WIDTH, llama.HIDDEN, llama.LAYERS = width, width * 11 // 4 // 32 * 32, layers
    llama.HEADS, llama.KV_HEADS, llama.VOCABULARY = width // 64, width // 256, 4096
    llama.HEAD, llama.LONGEST = 64, max(llama.LONGEST, PAST + MOST_TOKENS)
    return llama


def feeds(llama):
    rng = np.random.default_rng(0)

    def feed(tokens, past):
        found = {"tokens": rng.integers(0, llama.VOCABULARY, (1, tokens))}
        cache = (1, llama.KV_HEADS, past, llama.HEAD)
        for layer in range(llama.LAYERS):
            found |= {f"past_{part}{layer}": rng.standard_normal(cache).astype("float32") for part in ("key", "value")}
        return found

    return {"decode": feed(1, PAST), "prompt": feed(PROMPT, 0)}


def ours(contender, path, given, threads):
    import relaxide as tvm
    from relaxide import relax
    from relaxide.relax.frontend.onnx import from_onnx

    import onnx

    tvm.runtime.set_num_threads(threads)
    mod = from_onnx(onnx.load(path))
    if PASSES[contender]:
        mod = relax.transform.NarrowWeights(*PASSES[contender])(mod)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    args = {what: [tvm.runtime.tensor(array) for array in feed.values()] for what, feed in given.items()}

    def run(what):
        tokens, *caches = args[what]
        _, *longer = vm["main"](tokens, *caches)
        if what == "decode":
            args[what] = [tokens, *longer]

    return run


def theirs(contender, path, given, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    narrow = path.with_suffix(f".{contender.split()[-1]}.onnx")
    if contender.endswith("int8") and not narrow.exists():
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(str(path), str(narrow))
    if contender.endswith("int4") and not narrow.exists():
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(onnx.load(path), block_size=32, is_symmetric=True, accuracy_level=4)
        quantizer.process()
        onnx.save(quantizer.model.model, narrow)
    session = onnxruntime.InferenceSession(str(narrow if narrow.exists() else path), options, providers=["CPUExecutionProvider"])
    values = {what: {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()} for what, feed in given.items()}
    names = [output.name for output in session.get_outputs()]

    def run(what):
        results = session.run_with_ort_values(names, values[what])
        if what == "decode":
            values[what] |= {f"past_{name}": longer for name, longer in zip(names[1:], results[1:])}
        return results[0]

    return run


def gguf_of(path, llama, kind):
    """The network's weights as a GGUF file beside it."""
    import gguf
    import onnx
    from onnx import numpy_helper

    out = path.with_suffix(f".{kind}.gguf")
    if out.exists():
        return out
    weights = [numpy_helper.to_array(w) for w in onnx.load(path).graph.initializer]
    # Behind the two tables of angles: the vocabulary's table, then those of each layer in the order in which they are made.
    matrices = iter([w for w in weights if w.ndim == 2 and w.dtype == np.float32][2:])
    scales = iter([w for w in weights if w.shape == (llama.WIDTH,) and w.dtype == np.float32])
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(llama.WIDTH)
    writer.add_feed_forward_length(llama.HIDDEN)
    writer.add_block_count(llama.LAYERS)
    writer.add_head_count(llama.HEADS)
    writer.add_head_count_kv(llama.KV_HEADS)
    writer.add_rope_dimension_count(llama.HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(llama.VOCABULARY)
    writer.add_tokenizer_model("no_vocab")

    def matrix(name, values):
        narrow = getattr(gguf.GGMLQuantizationType, kind.upper())
        values = np.ascontiguousarray(values)
        writer.add_tensor(name, values if kind == "f32" else gguf.quants.quantize(values, narrow), raw_dtype=narrow)

    def turned(values):
        """Rows of a head as llama.cpp rotates them: the two of a pair beside each other."""
        return values.reshape(-1, 2, llama.HEAD // 2, llama.WIDTH).swapaxes(1, 2).reshape(values.shape)

    matrix("token_embd.weight", next(matrices))
    for layer in range(llama.LAYERS):
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", next(scales))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            values = next(matrices).T
            matrix(f"blk.{layer}.{name}.weight", turned(values) if name in ("attn_q", "attn_k") else values)
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", next(scales))
        for name in ("ffn_gate", "ffn_up", "ffn_down"):
            matrix(f"blk.{layer}.{name}.weight", next(matrices).T)
    writer.add_tensor("output_norm.weight", next(scales))
    matrix("output.weight", next(matrices).T)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def llama_cpp(contender, path, given, threads):
    import llama_cpp as cpp

    llama, kind = sys.modules["llama"], contender.split()[-1]
    cpp.llama_backend_init()
    model = cpp.llama_model_load_from_file(str(gguf_of(path, llama, kind)).encode(), cpp.llama_model_default_params())
    options = cpp.llama_context_default_params()
    options.n_ctx, options.n_batch, options.n_ubatch = PAST + PROMPT + MOST_TOKENS, PROMPT, PROMPT
    options.n_threads = options.n_threads_batch = threads
    # The caches of the text that is decoded are apart from those of the prompts between its tokens.
    contexts = {what: cpp.llama_init_from_model(model, options) for what in ("decode", "prompt")}

    def decode(what, tokens, first):
        """Runs tokens from a place on; logits of all of them."""
        context = contexts[what]
        cpp.llama_memory_seq_rm(cpp.llama_get_memory(context), -1, first, -1)
        batch = cpp.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), first + i, 1, 1
            batch.seq_id[i][0] = 0
        status = cpp.llama_decode(context, batch)
        cpp.llama_batch_free(batch)
        if status:
            raise RuntimeError(f"llama_decode: {status}")
        logits = cpp.llama_get_logits(context)
        return np.ctypeslib.as_array(logits, (len(tokens), llama.VOCABULARY))

    prompt, token = given["prompt"]["tokens"][0], given["decode"]["tokens"][0]
    got = decode("prompt", prompt, 0).copy()
    expected = theirs("onnxruntime", path, given, threads)("prompt").numpy()[0]
    error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
    if not error < LLAMA_ERRORS[kind]:
        raise RuntimeError(f"logits differ from those of the ONNX file by {error:.1e} of what they are")
    place = 0
    while place < PAST:
        decode("decode", prompt[: PAST - place], place)
        place += min(PROMPT, PAST - place)

    def run(what):
        nonlocal place
        if what == "prompt":
            return decode("prompt", prompt, 0)
        place += 1
        return decode("decode", token, place - 1)

    return run


def reading():
    """What a read of memory takes."""
    import relaxide as tvm
    from relaxide import relax

    b = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((READ_BYTES // 4,), "float32"))
    with b.function("main", [x]):
        with b.dataflow():
            out = b.emit_output(b.emit(relax.op.max(x)))
        b.emit_func_output(out)
    run = relax.VirtualMachine(tvm.compile(b.get(), "llvm"), tvm.cpu())["main"]
    memory = tvm.runtime.tensor(np.ones(READ_BYTES // 4, "float32"))
    return lambda what: run(memory)


def runner(contender, path, arguments, threads):
    if contender == "read":
        return reading()
    given = feeds(sized(arguments.width, arguments.layers))
    peers = {"onnxruntime": theirs, "llama.cpp": llama_cpp}
    return peers.get(contender.split()[0], ours)(contender, path, given, threads)


def measure(arguments, path, threads):
    command = [__file__, "--width", str(arguments.width), "--layers", str(arguments.layers), "--past", str(PAST), "--serve"]
    names = ["read", *(arguments.only.split(",") if arguments.only else BITS)]
    entries = [Contender(name, [*command, f"{name};{path};{threads}"]) for name in names]
    for entry in entries:
        for what in ("decode", "prompt"):
            if not entry.refused:
                entry.run(what)
        entry.times.clear()
    for _ in range(arguments.turns):
        for entry in (entry for entry in entries if not entry.refused):
            entry.run("decode")
            if entry.name != "read":
                entry.run("prompt")
    rate = READ_BYTES / entries[0].median("decode") / 1e6
    print(f"\n{threads} thread(s), {PAST} tokens before; memory is read at {rate:.1f} GB/s; {arguments.count / 1e6:.0f} million weights")
    print("| weights | decode, tokens/s | weights read, GB/s | of the memory's rate | prompt, tokens/s |\n| --- | --- | --- | --- | --- |")
    for entry in entries[1:]:
        if entry.refused:
            print(f"| {entry.name} | {entry.refused} | | | |")
            continue
        decode, prompt = entry.median("decode"), entry.median("prompt")
        own = arguments.count * BITS[entry.name] / 8 / decode / 1e6
        print(f"| {entry.name} | {1e3 / decode:.1f} | {own:.1f} | {own / rate:.2f} | {PROMPT * 1e3 / prompt:.0f} |", flush=True)
    for entry in entries:
        entry.close()


def main():
    global PAST
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--past", type=int, default=PAST, help="how long the caches are that the first token is behind")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--only", help="contenders, comma-separated")
    parser.add_argument("--folder", type=pathlib.Path, help="where the network's files are kept")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    PAST = arguments.past
    if not 0 < arguments.turns < MOST_TOKENS:
        parser.error(f"--turns is a number below {MOST_TOKENS}: each is a token behind the one before")
    if arguments.serve:
        contender, path, threads = arguments.serve.split(";")
        return serve(lambda: runner(contender, pathlib.Path(path), arguments, int(threads)), int(threads))
    with tempfile.TemporaryDirectory() as made:
        import onnx

        folder = arguments.folder or pathlib.Path(made)
        long = "" if PAST == PROMPT else f"_{PAST}"
        path = folder / f"decoder_{arguments.width}_{arguments.layers}{long}.onnx"
        if not path.exists():
            onnx.save(sized(arguments.width, arguments.layers).build(), path)
        weights = onnx.load(path).graph.initializer
        # What a token reads: all matrices but the table of the vocabulary, which is the first of them.
        matrices = [np.prod(w.dims) for w in weights if len(w.dims) == 2 and min(w.dims) >= 64 and w.dims[0] != 256]
        arguments.count = int(sum(matrices) - 4096 * arguments.width)
        for threads in arguments.threads.split(","):
            measure(arguments, path, int(threads))


if __name__ == "__main__":
    main()
