// Runs what a test asks for, one JSON document on standard input, and answers with one. Tests of tests/wasm are the other side.
import { readFileSync } from "node:fs";
import { load, RelaxideError } from "../../packages/npm/index.js";

const ARRAYS = { bool: Uint8Array, float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array };

/** The elements of an array that a test sends. */
function elements({ dtype, data }) {
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  return new ARRAYS[dtype](bytes.buffer);
}

function answer(tensor) {
  const view = tensor.data;
  const data = Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");
  return { dtype: tensor.dtype, shape: tensor.shape, data };
}

/** What a call gives, or the error that it ends with. */
function attempt(body) {
  try {
    return body();
  } catch (error) {
    return { error: error instanceof RelaxideError ? error.kind : error.constructor.name, message: error.message };
  }
}

function run(model, sent) {
  const inputs = Object.entries(sent).map(([name, { dtype, shape, data }]) => [name, { dtype, shape, data: elements({ dtype, data }) }]);
  const results = model.run(Object.fromEntries(inputs));
  const answers = Object.fromEntries(Object.entries(results).map(([name, tensor]) => [name, answer(tensor)]));
  Object.values(results).forEach((tensor) => tensor.dispose());
  return answers;
}

const answers = [];
for (const { model: path, calls } of JSON.parse(readFileSync(0))) {
  const model = await load(path);
  answers.push({ functions: model.functions, calls: calls.map((sent) => attempt(() => run(model, sent))) });
}
process.stdout.write(JSON.stringify(answers));
