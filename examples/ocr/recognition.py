"""Reading a line: which way up it is, and which characters are on it."""

import cv2
import numpy as np

HEIGHT = 48
#: The orientation network's fixed width.
ORIENTATION_WIDTH = 192
#: Confidence from which a line is turned around.
TURN_THRESHOLD = 0.9


def _resized(line, width):
    pixels = cv2.resize(line, (width, HEIGHT)).astype("float32")
    return (pixels / 127.5 - 1).transpose(2, 0, 1)[None]


def orientation_input(line):
    """A line for the orientation network: scaled to its height, cut or filled with grey to its width."""
    width = min(ORIENTATION_WIDTH, max(1, round(line.shape[1] * HEIGHT / line.shape[0])))
    out = np.zeros((1, 3, HEIGHT, ORIENTATION_WIDTH), "float32")
    out[..., :width] = _resized(line, width)
    return out


def upright(line, probabilities):
    """The line, turned around if the orientation network is sure that it is upside down."""
    return np.rot90(line, 2) if probabilities[0, 1] > TURN_THRESHOLD else line


def recognition_input(line):
    """A line for the recognition network, as wide as it is: every line has a shape of its own."""
    width = max(HEIGHT // 2, round(line.shape[1] * HEIGHT / line.shape[0]))
    return np.ascontiguousarray(_resized(np.ascontiguousarray(line), width))


def alphabet(model):
    """The characters that the recognition network knows, from the notes in its file; the first class is "no character"."""
    notes = {entry.key: entry.value for entry in model.metadata_props}
    return ["", *notes["character"].splitlines(), " "]


def decode(probabilities, characters):
    """Text and confidence: the best class of each step, repetitions merged, "no character" dropped (CTC)."""
    best, confidence = probabilities[0].argmax(axis=1), probabilities[0].max(axis=1)
    starts = np.flatnonzero(np.diff(best, prepend=-1))
    kept = [i for i in starts if best[i] != 0]
    text = "".join(characters[best[i]] for i in kept)
    return text, float(confidence[kept].mean()) if kept else 0.0
