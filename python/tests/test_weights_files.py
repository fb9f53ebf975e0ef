"""Files of weights by name: safetensors and GGUF."""

import struct

import numpy as np
import pytest

import relaxide as tvm


def _gguf(tensors, alignment=32):
    """A GGUF file of arrays: float32 and float16 as they are, and blocks as ``(type, lengths, bytes)``."""
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2)
    header += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    header += text("general.alignment") + struct.pack("<II", 4, alignment)
    data = b""
    for name, value in tensors.items():
        if isinstance(value, np.ndarray):
            value = ({"float32": 0, "float16": 1}[str(value.dtype)], value.shape, value.tobytes())
        kind, shape, content = value
        header += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += content + bytes(-len(content) % alignment)
    return header + bytes(-len(header) % alignment) + data


def _q4_0(w):
    """Blocks of 32 numbers as GGUF's Q4_0 has them, and the numbers that they stand for."""
    blocks = w.reshape(-1, 32)
    furthest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    scale = (furthest / -8).astype("float16")
    steps = np.clip(np.round(blocks / scale.astype("float32")) + 8, 0, 15).astype("uint8")
    packed = steps[:, :16] | steps[:, 16:] << 4
    content = b"".join(s.tobytes() + p.tobytes() for s, p in zip(scale, packed))
    return content, ((steps.astype("float32") - 8) * scale.astype("float32")).reshape(w.shape)


@pytest.mark.parametrize("alignment", [32, 64])
def test_gguf_files_are_read(tmp_path, alignment):
    rng = np.random.default_rng(0)
    plain, half = rng.standard_normal((3, 5)).astype("float32"), rng.standard_normal(7).astype("float16")
    content, expected = _q4_0(rng.standard_normal((6, 64)).astype("float32"))
    path = tmp_path / "model.gguf"
    path.write_bytes(_gguf({"blk.0.w": plain, "half": half, "packed": (2, (6, 64), content)}, alignment))
    found = tvm.runtime.load_weights(path)
    assert set(found.keys()) == {"blk.0.w", "half", "packed"}
    np.testing.assert_array_equal(found["blk.0.w"].numpy(), plain)
    np.testing.assert_array_equal(found["half"].numpy(), half)
    np.testing.assert_array_equal(found["packed"].numpy(), expected)


def test_safetensors_are_read(tmp_path):
    header = b'{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
    w = np.arange(6, dtype="float32").reshape(2, 3)
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + w.tobytes())
    np.testing.assert_array_equal(tvm.runtime.load_weights(path)["w"].numpy(), w)


def test_errors_name_tensor_offset_and_size(tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(_gguf({"w": np.zeros((4, 16), "float32")})[:-32])
    with pytest.raises(ValueError, match=r'tensor "w" of type float32 and shape \[4, 16\] takes 256 bytes from offset 0 of the data, which has 224'):
        tvm.runtime.load_weights(path)
    with pytest.raises(OSError, match="none.gguf"):
        tvm.runtime.load_weights(tmp_path / "none.gguf")


def test_blocks_of_a_gguf_file_stay_as_they_are_in_blocks_of_the_program(tmp_path):
    """Q4_0 is what ``NarrowWeights(int4)`` makes: narrowing loses nothing more."""
    from relaxide import relax

    content, w = _q4_0(np.random.default_rng(1).standard_normal((96, 64)).astype("float32"))
    path = tmp_path / "model.gguf"
    path.write_bytes(_gguf({"w": (2, (96, 64), content)}))
    b = relax.BlockBuilder()
    i = relax.Var("i", relax.TensorType((96,), "int64"))
    with b.function("main", [i]):
        with b.dataflow():
            out = b.emit_output(b.emit(relax.op.take(relax.const(tvm.runtime.load_weights(path)["w"]), i, axis=0)))
        b.emit_func_output(out)
    narrow = relax.transform.NarrowWeights("int4")(b.get())
    run = relax.VirtualMachine(tvm.compile(narrow, "llvm"), tvm.cpu())["main"]
    np.testing.assert_array_equal(run(tvm.runtime.tensor(np.arange(96))).numpy(), w)
