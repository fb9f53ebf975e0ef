"""Whether Relaxide gives what ONNX Runtime gives: `python compare.py FOLDER [PART OF A NAME]…` for the files of `write.py`.

Numbers are compared by their type and shape and up to rounding, texts and maps exactly. Where ONNX Runtime itself fails, nothing is
compared: an exporter wrote what nobody runs.
"""

import sys
import time

import case
import numpy as np
import onnx
import onnxruntime

from relaxide.onnx_backend import RelaxideBackend


def differs(wanted, got, tolerance):
    """What is wrong with a value; nothing if it is right."""
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return f"a list of {len(wanted)} is wanted, not {str(got)[:80]}"
        return next((f"[{i}]: {why}" for i, pair in enumerate(zip(wanted, got)) if (why := differs(*pair, tolerance))), "")
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or list(got) != list(wanted):
            return f"keys {list(wanted)} are wanted, not {str(got)[:80]}"
        return next((f"{key}: {why}" for key in wanted if (why := differs(np.float32(wanted[key]), np.float32(got[key]), tolerance))), "")
    wanted = np.asarray(wanted)
    if not isinstance(got, (np.ndarray, np.generic)):
        return f"an array is wanted, not {str(got)[:80]}"
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return f"{wanted.dtype}{list(wanted.shape)} is wanted, not {got.dtype}{list(got.shape)}"
    if wanted.dtype.kind in "OUbiu":
        right = (wanted == got).all() or wanted.dtype.kind in "iu" and tolerance > 1e-3 and np.abs(wanted.astype(int) - got.astype(int)).max() <= 1
    else:
        right = np.allclose(wanted, got, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(np.nan_to_num(wanted, posinf=0, neginf=0)).max(initial=0))), equal_nan=True)
    return "" if right else f"{wanted.ravel()[:6].tolist()} is wanted, not {got.ravel()[:6].tolist()}"


def problem(model, feeds, tolerance=1e-4):
    """What is wrong with a file; nothing if it is right, `None` where ONNX Runtime does not run it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # On processors without VNNI its products of weights in eight bits with a sign overflow otherwise.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        wanted = [session.run(None, feed) for feed in feeds]
    except Exception:
        return None
    try:
        program = RelaxideBackend.prepare(onnx.load_from_string(model))
        for feed, values in zip(feeds, wanted):
            got = program.run({name: feed[name] for name in program.inputs})
            for name, one, other in zip(session.get_outputs(), values, got, strict=True):
                if why := differs(one, other, tolerance):
                    return f"{name.name}: {why}"
    except Exception as error:
        return " ".join(str(error).split())[:400] or type(error).__name__
    return ""


def tolerance_of(name):
    """Quantized numbers may differ by a step."""
    return 2e-2 if "quantized" in name or "half" in name else 1e-4


def main(folder, parts):
    right, wrong, unknown = 0, 0, 0
    for name, model, feeds in case.load(folder):
        if parts and not any(part in name for part in parts):
            continue
        start = time.time()
        why = problem(model, feeds, tolerance_of(name))
        took = time.time() - start
        if took > 10:
            print(f"{name}: took {took:.0f} s")
        if why is None:
            unknown += 1
        elif why:
            wrong += 1
            print(f"{name}: {why}", flush=True)
        else:
            right += 1
    print(f"{right} right, {wrong} wrong, {unknown} that ONNX Runtime does not run")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], sys.argv[2:]) else 0)
