// Runs `main` of a model that was compiled with `--target wasm`, on random inputs:
//
//     relaxide compile model.onnx --target wasm
//     node examples/node/run.mjs model.wasm batch=4
//
// Dimensions that the model leaves open are 1, unless NAME=LENGTH says how long the inputs' dimension of that name is.
import { load } from "../../packages/npm/index.js";

const [path, ...lengths] = process.argv.slice(2);
if (path === undefined) {
  console.error("usage: node run.mjs MODEL.wasm [DIMENSION=LENGTH …]");
  process.exit(2);
}
const known = Object.fromEntries(lengths.map((text) => text.split("=")));

/** The names of a tensor's dimensions, out of its type as TVMScript. */
const names = (annotation) => annotation.match(/Tensor\(\(([^)]*)\)/)?.[1].split(",").map((dim) => dim.trim().replaceAll('"', "")) ?? [];

const model = await load(path);
const inputs = {};
for (const { name, annotation, dtype, shape } of model.inputs) {
  const whole = shape.map((dim, i) => dim ?? Number(known[names(annotation)[i]] ?? 1));
  inputs[name] = model.tensor(dtype, whole);
  const { data } = inputs[name];
  for (let i = 0; i < data.length; ++i) data[i] = dtype.startsWith("float") ? Math.random() : data[i];
  console.log(`${name}: ${dtype} [${whole}]`);
}

model.run(inputs);
const begin = performance.now();
const results = model.run(inputs);
const milliseconds = performance.now() - begin;
for (const [name, tensor] of Object.entries(results)) {
  console.log(`${name} = ${tensor.dtype} [${tensor.shape}]: ${tensor.data.slice(0, 5)}${tensor.size > 5 ? ", …" : ""}`);
}
console.log(`in ${milliseconds.toFixed(2)} ms`);
