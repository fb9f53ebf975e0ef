// Models that `relaxide compile --target wasm` has made, in browsers and in Node.
//
// source.js    where the module's bytes come from
// memory.js    the C interface of the runtime inside of it: texts, errors, results that are written to addresses
// tensor.js    tensors, which are views of the module's memory
// model.js     functions, their arguments and results

import { Runtime } from "./memory.js";
import { Model } from "./model.js";
import { compiled } from "./source.js";

export { RelaxideError } from "./memory.js";
export { Model } from "./model.js";
export { Tensor } from "./tensor.js";

/** Loads a model: from its bytes, a URL or path, a response, or a compiled module. */
export async function load(source, options = {}) {
  const module = await compiled(source, options);
  return new Model(new Runtime(await WebAssembly.instantiate(module, {})));
}
