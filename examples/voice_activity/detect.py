"""Finds speech in a recording with silero-vad, compiled to one file: branches, LSTMs, and state from call to call.

usage: detect.py [--build DIRECTORY] [RECORDING.wav]

The recording has one channel of 16 bits, 8000 or 16000 samples a second.
"""

import argparse
import importlib.util
import pathlib
import sys
import time
import wave

import numpy as np

import relaxide as tvm

HERE = pathlib.Path(__file__).resolve().parent
#: Samples of a frame and those before it that the network sees again, by samples a second.
FRAMES = {8000: (256, 32), 16000: (512, 64)}
#: Probability from which a frame counts as speech.
LIKELY = 0.5
#: Frames of silence that end a piece of speech.
PAUSE = 10


def network_file():
    """The network in the package silero-vad, which is found and not imported: it wants PyTorch."""
    spec = importlib.util.find_spec("silero_vad")
    if spec is None:
        sys.exit("the network comes with a package: pip install --no-deps silero-vad")
    return pathlib.Path(spec.submodule_search_locations[0]) / "data" / "silero_vad.onnx"


def compiled(build):
    """The network as a library, made where it is not there yet."""
    path = build / "silero_vad.so"
    if not path.exists():
        build.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        module = tvm.relax.frontend.onnx.from_onnx(network_file())
        tvm.compile(module, target="llvm").export_library(str(path))
        size, seconds = path.stat().st_size / 1e6, time.perf_counter() - start
        print(f"compiled silero_vad.onnx to {path.name}: {size:.1f} MB in {seconds:.1f} s")
    return tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())["main"]


def read(path):
    """Samples between -1 and 1, and how many there are in a second."""
    with wave.open(str(path)) as recording:
        rate = recording.getframerate()
        if recording.getnchannels() != 1 or recording.getsampwidth() != 2 or rate not in FRAMES:
            sys.exit(f"{path}: expected one channel of 16 bits at 8000 or 16000 samples a second")
        return np.frombuffer(recording.readframes(recording.getnframes()), "<i2").astype("float32") / 32768, rate


def probabilities(network, samples, rate):
    """How likely each frame is speech. The network's state goes from one call to the next."""
    length, before = FRAMES[rate]
    state, padded = tvm.runtime.tensor(np.zeros((2, 1, 128), "float32")), np.pad(samples, (before, 0))
    hertz, likely = tvm.runtime.tensor(np.array(rate, "int64")), []
    for start in range(0, len(samples) - length + 1, length):
        frame = tvm.runtime.tensor(padded[None, start : start + before + length])
        probability, state = network(frame, state, hertz)
        likely.append(float(probability.numpy()[0, 0]))
    return likely


def pieces(likely):
    """First and last frame of each piece of speech."""
    speech = [i for i, p in enumerate(likely) if p >= LIKELY]
    found = []
    for i in speech:
        if found and i - found[-1][1] <= PAUSE:
            found[-1][1] = i
        else:
            found.append([i, i])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", nargs="?", type=pathlib.Path, default=HERE / "speech.wav")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "voice_activity")
    args = parser.parse_args()
    network = compiled(args.build)
    samples, rate = read(args.recording)
    start = time.perf_counter()
    likely = probabilities(network, samples, rate)
    seconds, each = len(samples) / rate, FRAMES[rate][0] / rate
    print(f"{seconds:.1f} s of sound in {(time.perf_counter() - start) * 1e3:.0f} ms")
    for first, last in pieces(likely):
        print(f"speech from {first * each:.1f} to {(last + 1) * each:.1f} s")


if __name__ == "__main__":
    main()
