// Times one network in both engines, in turns, and compares what they compute with what was computed natively. Runs in Node and in pages:
// `read` is how files are read there.

const ARRAYS = { float32: Float32Array, int64: BigInt64Array };

/** The arrays that a description names. */
export async function arrays(described, read) {
  const made = Object.entries(described).map(async ([name, { file, dtype, shape }]) => {
    const bytes = await read(file);
    return [name, { dtype, shape, data: new ARRAYS[dtype](bytes.buffer, bytes.byteOffset, bytes.byteLength / ARRAYS[dtype].BYTES_PER_ELEMENT) }];
  });
  return Object.fromEntries(await Promise.all(made));
}

/** How far results are from what is expected, beyond a share of it as large as the tolerance; the least tolerance that holds. */
export function distance(found, expected) {
  let most = 0;
  for (const [name, { data }] of Object.entries(expected)) {
    if (found[name].length !== data.length) return Infinity;
    for (let i = 0; i < data.length; ++i) {
      const far = Math.abs(Number(found[name][i]) - Number(data[i])) / (1 + Math.abs(Number(data[i])));
      most = Number.isNaN(far) ? Infinity : Math.max(most, far);
    }
  }
  return most;
}

const ENGINES = {
  /** What runs a module of ours. */
  async relaxide({ load }, name, inputs, read) {
    const model = await load(await read(`${name}.wasm`));
    return () => {
      const results = model.run(inputs);
      const copies = Object.entries(results).map(([of, tensor]) => [of, tensor.toArray()]);
      Object.values(results).forEach((tensor) => tensor.dispose());
      return Object.fromEntries(copies);
    };
  },
  /** What runs the ONNX file. */
  async onnxruntime(ort, name, inputs, read) {
    const session = await ort.InferenceSession.create(await read(`${name}.onnx`), { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
    return async () => {
      const feeds = Object.entries(inputs).map(([of, { dtype, shape, data }]) => [of, new ort.Tensor(dtype, data, shape)]);
      const results = await session.run(Object.fromEntries(feeds));
      return Object.fromEntries(Object.entries(results).map(([of, tensor]) => [of, tensor.data]));
    };
  },
};

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

/** How long one turn takes at least, in milliseconds: clocks of browsers are coarse. */
const TURN = 20;

/** Medians in milliseconds by a clock, and how far results are from the native ones. */
export async function measure(engines, described, read, { rounds, seconds, clock = () => performance.now() }) {
  const inputs = await arrays(described.inputs, read);
  const expected = await arrays(described.outputs, read);
  const entries = [];
  for (const [name, library] of Object.entries(engines)) {
    const begin = performance.now();
    const run = await ENGINES[name](library, described.name, inputs, read);
    const found = await run();
    entries.push({ name, run, times: [], distance: distance(found, expected), ready: performance.now() - begin });
  }
  // Engines compile functions anew that are called often: that shall be over.
  for (const entry of rounds > 0 ? entries : []) {
    const begin = performance.now();
    let calls = 0;
    for (; calls < 10 || performance.now() < begin + 500; ++calls) await entry.run();
    entry.repeats = Math.max(1, Math.round((TURN * calls) / (performance.now() - begin)));
  }
  const end = performance.now() + 1000 * seconds;
  for (let turn = 0; turn < rounds && (turn < 7 || performance.now() < end); ++turn) {
    for (const { run, times, repeats } of entries) {
      const begin = clock();
      for (let i = 0; i < repeats; ++i) await run();
      times.push((clock() - begin) / repeats);
    }
  }
  return Object.fromEntries(entries.map(({ name, times, distance, ready }) => [name, { ms: median(times), distance, ready }]));
}
