// Reading a line: which way up it is, and which characters are on it, as examples/ocr/recognition.py does.

import { planes } from "./picture.js";

const HEIGHT = 48;
/** The orientation network's fixed width. */
const ORIENTATION_WIDTH = 192;
/** Confidence from which a line is turned around. */
export const TURN_THRESHOLD = 0.9;

/** A line for the orientation network: scaled to its height, cut or filled with grey to its width. */
export function orientationInput(line) {
  const width = Math.min(ORIENTATION_WIDTH, Math.max(1, Math.round((line.width * HEIGHT) / line.height)));
  return { dtype: "float32", shape: [1, 3, HEIGHT, ORIENTATION_WIDTH], data: planes(line, width, HEIGHT, ORIENTATION_WIDTH) };
}

/** A line for the recognition network, as wide as it is: every line has a shape of its own. */
export function recognitionInput(line) {
  const width = Math.max(HEIGHT / 2, Math.round((line.width * HEIGHT) / line.height));
  return { dtype: "float32", shape: [1, 3, HEIGHT, width], data: planes(line, width, HEIGHT) };
}

/** Text and confidence: the best class of each step, repetitions merged, "no character" (the first class) dropped (CTC). */
export function decode({ shape, data }, characters) {
  const [, steps, classes] = shape;
  let [text, sum, count, last] = ["", 0, 0, -1];
  for (let step = 0; step < steps; ++step) {
    const row = data.subarray(step * classes, (step + 1) * classes);
    let best = 0;
    for (let i = 1; i < classes; ++i) if (row[i] > row[best]) best = i;
    if (best !== last && best !== 0) {
      text += characters[best];
      sum += row[best];
      ++count;
    }
    last = best;
  }
  return { text, confidence: count === 0 ? 0 : sum / count };
}
