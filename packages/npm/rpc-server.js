// A server of TVM's protocol in a browser or in Node: clients reach it through a proxy, send it models, and call and time them here.
//
// Models are those of `relaxide compile --target wasm`. Whoever reaches the proxy under the server's key may run code in the sandbox of
// WebAssembly, call the functions that the page offers, and nothing else.

import { load, RelaxideError, Tensor } from "./index.js";
import { Line } from "./rpc-line.js";
import { Kept } from "./rpc-memory.js";
import { moduleFunction, timer } from "./rpc-models.js";
import { ARRAYS } from "./tensor.js";
import { CODE, DataType, Device, Handle, KIND, Raw, Reader, TensorView, VERSION, Writer } from "./rpc-wire.js";

const CPU = new Device(1, 0);

/** A function that clients may call. */
class Callable {
  constructor(name, body) {
    Object.assign(this, { kind: KIND.function, name, body });
  }
}

/** Something that clients may name: a model, a list of results. */
class Thing {
  constructor(kind, value) {
    Object.assign(this, { kind, value });
  }
}

/** A tensor that a client names. It is the client's: what is kept longer than the call is copied. */
class Argument {
  #bytes;

  constructor({ dtype, shape }, bytes) {
    Object.assign(this, { dtype: String(dtype), shape });
    this.#bytes = bytes;
  }

  /** A copy of the elements, which begins where its elements may. */
  get data() {
    const type = ARRAYS[this.dtype];
    if (type === undefined) throw new RelaxideError("TypeError", `there are no tensors of ${this.dtype} here`);
    return new type(this.#bytes.slice().buffer);
  }
}

/** A tensor that was returned: its memory ends with it. */
class Returned {
  constructor(kept, address) {
    Object.assign(this, { kind: KIND.tensor, end: () => kept.release(address) });
  }
}

/** Serves behind a proxy, session after session, until `stop` is called. */
export function serve(url, { key = "", functions = {}, memory = 1 << 30, pause = 1000, onSession, onError, ...options } = {}) {
  let [isOver, current, wake] = [false, undefined, undefined];
  const onLine = (line) => {
    current = line;
    if (isOver) line.close();
  };
  const run = async () => {
    while (!isOver) {
      try {
        const { line, other } = await Line.open(url, `server:${key}`, { ...options, onLine });
        onSession?.(other);
        await new Hosted(line, functions, memory).run();
      } catch (error) {
        if (isOver) return;
        onError?.(error);
        await new Promise((resolve) => {
          const waiting = setTimeout(resolve, pause);
          wake = () => (clearTimeout(waiting), resolve());
        });
      }
    }
  };
  const ended = run();
  const stop = () => {
    isOver = true;
    current?.close();
    wake?.();
    return ended;
  };
  return { stop, ended };
}

/** One session. */
class Hosted {
  #line;
  #kept;
  #files = new Map();
  #globals;
  #isReady = false;

  constructor(line, functions, memory) {
    this.#line = line;
    this.#kept = new Kept(memory);
    this.#globals = new Map();
    Object.entries({ ...this.#builtins(), ...functions }).forEach(([name, body]) => this.#offer(name, body));
  }

  /** Enters a function that the client finds by its name. */
  #offer(name, body) {
    this.#globals.set(name, new Callable(name, body));
  }

  async run() {
    try {
      for (;;) {
        const reader = new Reader(await this.#next());
        const code = reader.i32("a code");
        if (code === CODE.shutdown) return;
        this.#line.send(await this.#answer(code, reader));
      }
    } finally {
      this.#line.close();
    }
  }

  /** The next packet. An end between packets is none of anybody's fault. */
  async #next() {
    try {
      return await this.#line.packet();
    } catch (error) {
      if (!this.#line.isOpen && error.kind === "ConnectionError") return new Uint8Array(new Int32Array([CODE.shutdown]).buffer);
      throw error;
    }
  }

  async #answer(code, reader) {
    try {
      if (code === CODE.copyFrom) return this.#copyFrom(reader);
      return (await this.#packet(code, reader)).end();
    } catch (error) {
      // What cannot be read cannot be answered: the rest of the stream has no meaning.
      if (error.kind === "ConnectionError") throw error;
      return new Writer(CODE.exception).values([new Raw(told(error))]).end();
    }
  }

  async #packet(code, reader) {
    const result = (...values) => new Writer(CODE.result).values(values);
    if (code === CODE.init) {
      const version = reader.text("a version");
      const constructor = reader.values();
      if (version !== VERSION) throw new RelaxideError("RPCError", `the client speaks version ${version}, this server ${VERSION}`);
      reader.end();
      if (constructor.length > 0) this.#offer("ffi.SystemLib", await linked(constructor));
      this.#isReady = true;
      return result(null);
    }
    if (!this.#isReady) throw new RelaxideError("RPCError", "a session begins with its version");
    if (code === CODE.copyTo) {
      const view = reader.view();
      const bytes = reader.block("a copy");
      reader.end();
      this.#kept.at(view.data, view.byteOffset, bytes.length).set(bytes);
      return result(null);
    }
    if (code === CODE.call) {
      const [handle, values] = [reader.u64("a handle"), reader.values()];
      reader.end();
      const [callable, args] = [this.#kept.object(handle), values.map((value) => this.#taken(value))];
      if (!(callable instanceof Callable)) throw new RelaxideError("TypeError", "what is called is no function");
      return result(...this.#given(await callable.body.apply(this, args)));
    }
    const args = reader.values();
    reader.end();
    return result(this.#system(code, args));
  }

  #system(code, args) {
    const kept = this.#kept;
    const handle = (i) => (args[i] instanceof Handle ? args[i].handle : 0n);
    const pointer = (value) => new Handle(KIND.pointer, BigInt(value));
    switch (code) {
      case CODE.global: {
        const found = this.#globals.get(args[0]);
        return pointer(found === undefined ? 0n : kept.handle(found));
      }
      case CODE.free:
        kept.free(handle(0));
        return null;
      case CODE.alloc:
        return pointer(kept.allocate(Number(args[1])));
      case CODE.allocScope:
        return pointer(kept.allocate(this.#view(args[0]).bytes));
      case CODE.freeData:
        kept.release(handle(1));
        return null;
      case CODE.attribute:
        return args[1] === 0 ? Number(args[0]?.kind === CPU.kind) : null;
      case CODE.copyAmong: {
        const [from, to] = [this.#view(args[0]), this.#view(args[1])];
        if (from.bytes !== to.bytes) throw new RelaxideError("ValueError", `${from.bytes} bytes are copied to ${to.bytes}`);
        kept.at(to.data, to.byteOffset, to.bytes).set(kept.at(from.data, from.byteOffset, from.bytes));
        return null;
      }
      case CODE.newStream:
      case CODE.stream:
        return pointer(0n);
      case CODE.setDevice:
      case CODE.sync:
      case CODE.freeStream:
      case CODE.setStream:
        return null;
      default:
        throw new RelaxideError("RPCError", `there is no request of code ${code}`);
    }
  }

  #view(value) {
    if (value instanceof TensorView) return value;
    throw new RelaxideError("TypeError", "a tensor is expected");
  }

  #copyFrom(reader) {
    const view = reader.view();
    const count = reader.u64("a number of bytes");
    if (count > BigInt(Number.MAX_SAFE_INTEGER)) throw new RelaxideError("ValueError", `${count} bytes are wanted`);
    const bytes = this.#kept.at(view.data, view.byteOffset, Number(count));
    return new Writer(CODE.copyAck).raw(bytes).end();
  }

  /** What an argument is here. */
  #taken(value) {
    if (value instanceof TensorView) return new Argument(value, this.#kept.at(value.data, value.byteOffset, value.bytes));
    if (!(value instanceof Handle) || value.kind === KIND.pointer) return value;
    const object = this.#kept.object(value.handle);
    if (object instanceof Thing) return object.value;
    return object instanceof Callable ? object.body : object;
  }

  /** A result, with its kind in front. */
  #given(value) {
    if (value instanceof Tensor || (value?.data !== undefined && value.dtype !== undefined)) {
      const data = value.data;
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
      const address = this.#kept.allocate(bytes.length, bytes);
      const view = new TensorView(BigInt(address), CPU, DataType.parse(value.dtype), [...value.shape]);
      if (value instanceof Tensor) value.dispose();
      return [KIND.tensor, view, new Handle(KIND.pointer, this.#kept.handle(new Returned(this.#kept, address)))];
    }
    const object = (kind, made) => [kind, new Handle(KIND.pointer, this.#kept.handle(made))];
    if (value === null || value === undefined) return [KIND.none, null];
    if (typeof value === "boolean") return [KIND.bool, value];
    if (typeof value === "bigint" || Number.isSafeInteger(value)) return [KIND.int, value];
    if (typeof value === "number") return [KIND.float, value];
    if (typeof value?.float === "number") return [KIND.float, value];
    if (typeof value === "string") return [KIND.text, new Raw(value)];
    if (value instanceof Uint8Array) return [KIND.bytes, new Raw(value)];
    if (typeof value === "function") return object(KIND.function, new Callable("", value));
    if (Array.isArray(value)) return object(KIND.array, new Thing(KIND.array, value));
    if (value?.isModule) return object(KIND.module, new Thing(KIND.module, value));
    throw new RelaxideError("TypeError", `a result of ${value.constructor?.name ?? typeof value} has no form in a remote call`);
  }

  #builtins() {
    const files = this.#files;
    const file = (name) => {
      const bytes = files.get(name);
      if (bytes === undefined) throw new RelaxideError("OSError", `Cannot open ${name}`);
      return bytes;
    };
    const module = async (name) => moduleOf(await load(file(name), weightsOf(name, files)));
    return {
      "tvm.rpc.server.upload": (name, bytes) => void files.set(name, bytes),
      "tvm.rpc.server.download": file,
      "tvm.rpc.server.remove": (name) => void files.delete(name),
      "tvm.rpc.server.listdir": () => [...files.keys()].map((name) => `${name},`).join(""),
      "tvm.rpc.server.load_module": module,
      "tvm.rpc.server.ModuleGetFunction": (from, name) => moduleFunction(from, name),
      "runtime.RPCTimeEvaluator": (from, name, _kind, _id, ...how) => timer(from === null ? this.#globals.get(name)?.body : moduleFunction(from, name), name, how),
      "ffi.ArraySize": (list) => list.length,
      "ffi.ArrayGetItem": (list, i) => list[i],
      "testing.echo": (value) => value,
    };
  }
}

/** What clients have as a module. */
function moduleOf(model) {
  return { isModule: true, model, inputs: new Map(), results: new Map() };
}

/** The library of a session that is made around a module, as `rpc.WasmSession` with the module's bytes asks for. */
async function linked([name, ...args]) {
  const fail = (message) => new RelaxideError("RPCError", message);
  if (name !== "rpc.WasmSession") throw fail(`there is no session constructor ${JSON.stringify(name)} here, but "rpc.WasmSession"`);
  const [bytes] = args;
  if (args.length !== 1 || !(bytes instanceof Uint8Array)) throw fail("rpc.WasmSession is made of the bytes of a module, and nothing else");
  if (!WebAssembly.validate(bytes)) throw fail(`rpc.WasmSession: ${bytes.length} bytes are no module of WebAssembly that runs here`);
  const compiled = await WebAssembly.compile(bytes);
  if (!WebAssembly.Module.exports(compiled).some((own) => own.name === "relaxide_model_linked")) {
    throw fail("rpc.WasmSession: the module has another runtime inside; compile the program with the target `wasm`");
  }
  const module = moduleOf(await load(compiled));
  return (prefix = "") => {
    if (prefix === "") return module;
    throw new RelaxideError("ValueError", `the library of this session has no prefix ${JSON.stringify(prefix)}: it is one module`);
  };
}

/** Weights that were sent beside a model. */
function weightsOf(name, files) {
  const weights = files.get(name.replace(/\.[^.]*$/, ".safetensors"));
  return weights === undefined ? {} : { weights };
}

/** What a client is told of an error. */
function told(error) {
  return `${error.kind ?? error.name ?? "Error"}: ${error.message ?? error}`;
}
