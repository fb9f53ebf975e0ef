// Models that `relaxide compile --target wasm` has made, in browsers and in Node.
//
// source.js       where the bytes of modules and weights come from
// memory.js       the C interface of the runtime inside of a module: texts, errors, results that are written to addresses
// tensor.js       tensors, which are views of the module's memory
// model.js        functions, their arguments and results
// worker.js       models in workers: the same calls, answered later
// worker-host.js  what runs in the worker

import { Runtime } from "./memory.js";
import { Model } from "./model.js";
import { compiled, fill } from "./source.js";

export { RelaxideError } from "./memory.js";
export { Model } from "./model.js";
export { Tensor } from "./tensor.js";

/** Loads a model: from its bytes, a URL or path, a response, or a compiled module. Weights that are in a file of their own are loaded from
 * the module's folder, or from where `weights` says. */
export async function load(source, options = {}) {
  const { module, place } = await compiled(source, options);
  const runtime = new Runtime(await WebAssembly.instantiate(module, {}));
  const apart = runtime.weightsApart();
  if (apart !== undefined) {
    const { weights, onProgress } = options;
    await runtime.takeWeights(apart, (memory) => fill({ ...apart, source: weights, place, memory, onProgress }));
  } else if (options.weights !== undefined) {
    throw new TypeError("the model has its weights inside: `weights` is for those compiled with `--weights safetensors`");
  }
  return new Model(runtime);
}
