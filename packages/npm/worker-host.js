// What runs in a worker: a model, which worker.js asks from the other side.

import { load, RelaxideError, Tensor } from "./index.js";

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;

let port;
let model;

const METHODS = {
  async load(id, source, { weights, isWatched }) {
    const onProgress = isWatched ? (...progress) => port.postMessage({ id, progress }) : undefined;
    model = await load(source, { weights, onProgress });
    return model.functions;
  },
  run(id, inputs, options) {
    return model.run(inputs, options);
  },
  call(id, name, ...args) {
    return model.call(name, ...args);
  },
};

/** A result for the other side: tensors as arrays of their own, which move there. */
function pack(value, moved) {
  if (value instanceof Tensor) {
    const data = value.toArray();
    value.dispose();
    moved.push(data.buffer);
    return { isTensor: true, dtype: value.dtype, shape: value.shape, data };
  }
  return Array.isArray(value) ? value.map((field) => pack(field, moved)) : value;
}

async function answer({ id, method, args }) {
  const moved = [];
  try {
    const result = await METHODS[method](id, ...args);
    // Results of `run` are by name.
    const packed = method === "run" ? Object.fromEntries(Object.entries(result).map(([of, value]) => [of, pack(value, moved)])) : pack(result, moved);
    port.postMessage({ id, result: packed }, moved);
  } catch (error) {
    const kind = error instanceof RelaxideError ? error.kind : undefined;
    port.postMessage({ id, error: { name: error.name, kind, message: error.message } });
  }
}

// One behind the other, in the order that they were asked.
let last = Promise.resolve();
const hear = (question) => (last = last.then(() => answer(question)));

// Browsers lose what is said before the script has run to its end, so nothing is awaited here; Node keeps it.
if (isNode) {
  import("node:worker_threads").then(({ parentPort }) => {
    port = parentPort;
    port.on("message", hear);
  });
} else {
  port = self;
  self.onmessage = ({ data }) => hear(data);
}
