// Models in workers: the thread that calls stays free. `load` is that of index.js, and a model's calls are promises.
//
// Arrays are moved to the worker and back, not shared. What goes in is copied first, unless the caller gives it up (`transfer`).

import { RelaxideError } from "./memory.js";
import { Tensor } from "./tensor.js";

export { RelaxideError } from "./memory.js";

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;

/** Loads a model in a worker of its own. */
export async function load(source, { onProgress, weights } = {}) {
  const line = new Line(await started());
  try {
    const [from, beside] = await Promise.all([sent(source), sent(weights)]);
    const options = { weights: beside, isWatched: onProgress !== undefined };
    return new RemoteModel(line, await line.ask("load", [from, options], { onProgress }));
  } catch (error) {
    line.end();
    throw error;
  }
}

/** A tensor that has left the worker: its elements are in an array of its own. */
export class RemoteTensor {
  constructor(dtype, shape, data) {
    this.dtype = dtype;
    this.shape = shape;
    this.size = data.length;
    this.data = data;
  }

  toString() {
    return `Tensor(${this.dtype}, [${this.shape}])`;
  }
}

/** A model in a worker. Calls run one behind the other. */
export class RemoteModel {
  #line;

  /** For `load` alone. */
  constructor(line, functions) {
    this.#line = line;
    this.functions = functions;
  }

  /** The parameters of `main`. */
  get inputs() {
    return this.function("main").params;
  }

  /** The names of the results of `main`, as far as the file says them. */
  get outputs() {
    return this.function("main").outputs;
  }

  /** A function by its name. */
  function(name) {
    const found = this.functions.find((other) => other.name === name);
    if (found !== undefined) return found;
    const known = this.functions.map((other) => other.name).join(", ");
    throw new RelaxideError("ValueError", `the model has no function ${JSON.stringify(name)}: it has ${known}`);
  }

  /** Runs a function (`main`) on inputs by their names. With `transfer`, their arrays are the worker's from now on, and empty here. */
  async run(inputs, { function: name = "main", transfer = false } = {}) {
    const moved = [];
    const packed = Object.entries(inputs).map(([input, value]) => [input, pack(value, moved, transfer)]);
    const results = await this.#line.ask("run", [Object.fromEntries(packed), { function: name }], { moved });
    return Object.fromEntries(Object.entries(results).map(([of, value]) => [of, unpack(value)]));
  }

  /** Calls a function with values in the order of its parameters. */
  async call(name, ...args) {
    const moved = [];
    const packed = args.map((arg) => pack(arg, moved, false));
    return unpack(await this.#line.ask("call", [name, ...packed], { moved }));
  }

  /** Ends the worker, and with it the model and its memory. Calls that have no answer yet fail. */
  terminate() {
    this.#line.end();
  }
}

if (Symbol.dispose !== undefined) RemoteModel.prototype[Symbol.dispose] = RemoteModel.prototype.terminate;

/** Questions to a worker, and its answers. */
class Line {
  #worker;
  #asked = new Map();
  #next = 0;
  #ended;

  constructor(worker) {
    this.#worker = worker;
    worker.listen(
      (answer) => this.#answered(answer),
      (why) => this.#fail(new RelaxideError("RuntimeError", `the worker has ended: ${why}`)),
    );
  }

  ask(method, args, { moved = [], onProgress } = {}) {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#worker.post({ id, method, args }, moved);
      this.#asked.set(id, { resolve, reject, onProgress });
      this.#worker.hold(true);
    });
  }

  #answered({ id, progress, error, result }) {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    if (progress !== undefined) {
      asked.onProgress?.(...progress);
      return;
    }
    this.#asked.delete(id);
    if (this.#asked.size === 0) this.#worker.hold(false);
    if (error === undefined) asked.resolve(result);
    else asked.reject(thrown(error));
  }

  #fail(error) {
    this.#ended ??= error;
    this.#asked.forEach(({ reject }) => reject(this.#ended));
    this.#asked.clear();
  }

  end() {
    this.#fail(new RelaxideError("RuntimeError", "the model's worker was ended"));
    this.#worker.terminate();
  }
}

/** A worker, in browsers or in Node, where one that has nothing to do keeps no program running. */
async function started() {
  const script = new URL("./worker-host.js", import.meta.url);
  if (!isNode) {
    const worker = new Worker(script, { type: "module", name: "relaxide" });
    return {
      post: (message, moved) => worker.postMessage(message, moved),
      listen: (answered, ended) => {
        worker.onmessage = ({ data }) => answered(data);
        worker.onerror = (event) => ended(event.message ?? `${script} cannot be loaded`);
      },
      hold: () => {},
      terminate: () => worker.terminate(),
    };
  }
  const { Worker: Thread } = await import("node:worker_threads");
  const worker = new Thread(script, { name: "relaxide" });
  worker.unref();
  return {
    post: (message, moved) => worker.postMessage(message, moved),
    listen: (answered, ended) => {
      worker.on("message", answered);
      worker.on("error", (error) => ended(error.message));
      worker.on("exit", (code) => ended(`its status is ${code}`));
    },
    hold: (isHeld) => (isHeld ? worker.ref() : worker.unref()),
    terminate: () => worker.terminate(),
  };
}

/** A source in a form that a worker can be sent. What is relative is so to the page, and not to the worker. */
async function sent(source) {
  if (source instanceof URL) return source.href;
  if (typeof source === "string" && !isNode) return new URL(source, document.baseURI).href;
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`cannot load ${source.url}: the server answers ${source.status} ${source.statusText}`);
    return source.arrayBuffer();
  }
  return source;
}

/** A value for the worker. Its arrays are entered into `moved`. */
function pack(value, moved, isGivenUp) {
  if (Array.isArray(value)) return value.map((field) => pack(field, moved, isGivenUp));
  if (ArrayBuffer.isView(value)) return move(value, moved, isGivenUp);
  if (value instanceof Tensor) return { dtype: value.dtype, shape: [...value.shape], data: move(value.data, moved, false) };
  if (value === null || typeof value !== "object" || value.data === undefined) return value;
  const { dtype, shape, data } = value;
  return { dtype, shape, data: ArrayBuffer.isView(data) ? move(data, moved, isGivenUp) : data };
}

// An array takes its whole buffer along, so that a view of a larger one is copied in any case.
function move(array, moved, isGivenUp) {
  const isWhole = array.byteLength === array.buffer.byteLength && array.buffer instanceof ArrayBuffer;
  const own = isGivenUp && isWhole ? array : array.slice();
  if (!moved.includes(own.buffer)) moved.push(own.buffer);
  return own;
}

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  return value?.isTensor ? new RemoteTensor(value.dtype, value.shape, value.data) : value;
}

/** The error that was thrown in the worker. */
function thrown({ name, kind, message }) {
  if (kind !== undefined) return new RelaxideError(kind, message);
  const type = { TypeError, RangeError, SyntaxError }[name] ?? Error;
  const error = new type(message);
  error.name = name;
  return error;
}
