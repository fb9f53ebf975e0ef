// Reads the text in pictures, in a worker. The page sends pixels, and is told what was found as it is found.

import { load } from "./relaxide/index.js";
import { quads, toInput } from "./detection.js";
import { decode, orientationInput, recognitionInput, TURN_THRESHOLD } from "./recognition.js";
import { crop, turned } from "./picture.js";

const say = (is, about = {}) => postMessage({ is, ...about });

/** Loads all networks at once. The sizes of their files are known beforehand, so that progress is of all together. */
async function networks() {
  const { networks, characters } = await (await fetch("models/models.json")).json();
  const loaded = {};
  const total = networks.reduce((sum, { bytes }) => sum + bytes, 0);
  const heard = (part, bytes) => {
    loaded[part] = bytes;
    say("progress", { loaded: Math.min(total, Object.values(loaded).reduce((sum, some) => sum + some, 0)), total });
  };
  const models = networks.map(async ({ name }) => {
    const onProgress = (bytes, _, part) => heard(`${name} ${part}`, bytes);
    return [name, await load(`models/${name}.wasm`, { onProgress })];
  });
  return { ...Object.fromEntries(await Promise.all(models)), characters };
}

/** The one result of a network, copied out of its memory. */
function run(model, input) {
  const [tensor] = Object.values(model.run({ [model.inputs[0].name]: input }));
  const result = { shape: tensor.shape, data: tensor.toArray() };
  tensor.dispose();
  return result;
}

const loading = networks();
loading.then(
  () => say("ready"),
  (error) => say("failed", { message: `The networks were not loaded: ${error.message}` }),
);

/** The picture that was asked for last. */
let wanted = 0;

async function read({ picture, data, width, height }) {
  const { detection, orientation, recognition, characters } = await loading;
  // Of several pictures that were chosen meanwhile, the last counts.
  if (picture !== wanted) return;
  const begin = performance.now();
  const pixels = { data, width, height };
  const found = quads(run(detection, toInput(pixels)), pixels);
  say("quads", { picture, quads: found, milliseconds: performance.now() - begin });
  for (const [index, quad] of found.entries()) {
    // Messages are heard in between: another picture may have been chosen.
    await new Promise((resume) => setTimeout(resume));
    if (picture !== wanted) return;
    let line = crop(pixels, quad);
    const [, upsideDown] = run(orientation, orientationInput(line)).data;
    if (upsideDown > TURN_THRESHOLD) line = turned(line, 2);
    const { text, confidence } = decode(run(recognition, recognitionInput(line)), characters);
    const isSure = confidence > 0.5;
    say("line", { picture, index, text: isSure ? text : "", confidence });
  }
  say("done", { picture, milliseconds: performance.now() - begin });
}

onmessage = ({ data }) => {
  wanted = data.picture;
  read(data).catch((error) => say("failed", { picture: data.picture, message: `The picture was not read: ${error.message}` }));
};
