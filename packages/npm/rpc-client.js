// A session with a server of TVM's protocol: its functions, files, modules and tensors.
//
// One question is asked at a time, in the order of the calls. What the server keeps for this side is given back by `dispose`, or when
// nobody refers to it any more.

import { RelaxideError } from "./memory.js";
import { Line } from "./rpc-line.js";
import { CODE, DataType, Device, Handle, KIND, Raw, Reader, TensorView, VERSION, Writer, wrong } from "./rpc-wire.js";
import { ARRAYS, dtypeOf } from "./tensor.js";

/** How many bytes a copy has at most: one packet, so that others are not kept waiting. */
const PIECE = 1 << 22;
const CPU = new Device(1, 0);

/** Connects to the server of a key behind a proxy (`ws://HOST:PORT/ws`). */
export async function connect(url, { key = "", timeout, ...options } = {}) {
  const limit = timeout === undefined ? "" : ` -timeout=${timeout}`;
  const { line } = await Line.open(url, `client:${key}${limit}`, options);
  const session = new Session(line);
  try {
    await session.ask(new Writer(CODE.init).block(new TextEncoder().encode(VERSION)).values([]));
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
}

// What nobody disposes of goes when nobody refers to it any more.
const forgotten = new FinalizationRegistry(({ session, handle }) => session.free(handle));

/** A session. */
export class Session {
  #line;
  #last = Promise.resolve();

  /** For `connect` alone. */
  constructor(line) {
    this.#line = line;
  }

  /** For this package alone: sends a packet and gives the reader of the answer behind its code. */
  ask(packet) {
    const answer = this.#last.then(async () => {
      this.#line.send(packet.end());
      const reader = new Reader(await this.#line.packet());
      const code = reader.i32("a code");
      if (code === CODE.exception) throw thrown(reader.values()[0]);
      if (code !== CODE.result && code !== CODE.copyAck) {
        this.#line.close();
        throw wrong(code === CODE.shutdown ? "the server has ended the session" : `an answer of code ${code}`);
      }
      return { code, reader };
    });
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #system(code, ...args) {
    const { reader } = await this.ask(new Writer(code).values(args));
    const values = reader.values();
    reader.end();
    if (values.length !== 1) throw wrong(`${values.length} values answer a question`);
    return values[0];
  }

  /** A function of the server by its name. */
  async function(name) {
    const found = await this.#system(CODE.global, new Raw(name));
    if (!(found instanceof Handle)) throw wrong("what is no handle stands for a function");
    if (found.handle === 0n) throw new RelaxideError("AttributeError", `the server has no function ${JSON.stringify(name)}`);
    return new RemoteFunction(this, found.handle);
  }

  /** For this package alone: calls a function. */
  async call(handle, args) {
    const values = args.map((arg) => this.#value(arg));
    const { reader } = await this.ask(new Writer(CODE.call).u64(handle).values(values));
    const found = reader.values();
    reader.end();
    return this.#result(found);
  }

  #value(arg) {
    if (arg instanceof RemoteTensor) return arg.viewFor(this);
    if (arg instanceof Remote) return new Handle(arg.kind, arg.handleFor(this));
    if (typeof arg === "string") return new Raw(arg);
    return arg;
  }

  #result([kind, value, handle]) {
    if (value instanceof Handle && value.handle === 0n) return null;
    if (value instanceof Handle) {
      if (kind === KIND.function) return new RemoteFunction(this, value.handle);
      if (kind === KIND.module) return new RemoteModule(this, value.handle);
      return kind === KIND.pointer ? value.handle : new RemoteObject(this, value.handle);
    }
    if (kind === KIND.tensor) {
      if (!(value instanceof TensorView && handle instanceof Handle)) throw wrong("a tensor without its memory or its handle");
      return new RemoteTensor(this, value, { handle: handle.handle });
    }
    if (value instanceof TensorView) throw wrong("a tensor that nobody owns");
    return value ?? null;
  }

  /** Gives a handle back. */
  free(handle) {
    if (this.#line.isOpen) this.#system(CODE.free, new Handle(KIND.pointer, handle)).catch(() => {});
  }

  /** A tensor on the server, with what `data` holds. */
  async tensor(dtype, shape, data) {
    const type = DataType.parse(dtype);
    const view = new TensorView(0n, CPU, type, [...shape]);
    const made = ArrayBuffer.isView(data) && data.constructor === ARRAYS[dtype] ? data : data && ARRAYS[dtype].from(data);
    const bytes = made && new Uint8Array(made.buffer, made.byteOffset, made.byteLength);
    if (bytes !== undefined && bytes.length !== view.bytes) {
      throw new RelaxideError("ValueError", `${made.length} elements are given for the shape [${shape}] of ${dtype}`);
    }
    const place = await this.#system(CODE.alloc, CPU, view.bytes, 64, type);
    if (!(place instanceof Handle)) throw wrong("memory without an address");
    view.data = place.handle;
    const tensor = new RemoteTensor(this, view, { data: place.handle });
    if (bytes !== undefined) await this.#write(view, bytes);
    return tensor;
  }

  /** A tensor of an array's own element type. */
  from(array, shape = [array.length]) {
    return this.tensor(dtypeOf(array), shape, array);
  }

  async #write(view, bytes) {
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE);
      const part = new TensorView(view.data, view.device, view.dtype, view.shape, view.byteOffset + BigInt(at));
      await this.ask(new Writer(CODE.copyTo).view(part).block(piece));
    }
  }

  /** For this package alone: the bytes of a tensor. */
  async read(view) {
    const bytes = new Uint8Array(view.bytes);
    for (let at = 0; at < bytes.length; at += PIECE) {
      const count = Math.min(PIECE, bytes.length - at);
      const part = new TensorView(view.data, view.device, view.dtype, view.shape, view.byteOffset + BigInt(at));
      const { code, reader } = await this.ask(new Writer(CODE.copyFrom).view(part).u64(count));
      if (code !== CODE.copyAck || reader.left !== count) throw wrong(`${reader.left} bytes come for ${count}`);
      bytes.set(reader.raw(count, "a copy"), at);
    }
    return bytes;
  }

  /** For this package alone: gives memory back that was asked for. */
  freeData(data) {
    if (this.#line.isOpen) this.#system(CODE.freeData, CPU, new Handle(KIND.pointer, data)).catch(() => {});
  }

  /** Puts a file into the folder of the session. */
  async upload(name, bytes) {
    await (await this.function("tvm.rpc.server.upload")).call(name, bytes);
  }

  /** A file of the session's folder. */
  async download(name) {
    return (await this.function("tvm.rpc.server.download")).call(name);
  }

  /** Loads a library of the session's folder. */
  async loadModule(name) {
    return (await this.function("tvm.rpc.server.load_module")).call(name);
  }

  /** Loads a compiled model of the session's folder, ready to be called: `await model.call("main", tensor)`. */
  async loadModel(name) {
    const library = await this.loadModule(name);
    const model = await (await library.function("vm_load_executable")).call();
    // The processor, with memory that is kept between calls.
    await (await model.function("vm_initialization")).call(1, 0, 2);
    return model;
  }

  /** Ends the session. */
  close() {
    if (this.#line.isOpen) {
      this.#line.send(new Writer(CODE.shutdown).end());
      this.#line.close();
    }
  }
}

/** What the server keeps for this side. */
class Remote {
  #session;
  #handle;

  constructor(session, handle, kind) {
    this.#session = session;
    this.#handle = handle;
    this.kind = kind;
    forgotten.register(this, { session, handle }, this);
  }

  /** For this package alone. */
  handleFor(session) {
    if (this.#handle === undefined) throw new RelaxideError("ValueError", "it was disposed of");
    if (session !== this.#session) throw new RelaxideError("ValueError", "it is another session's");
    return this.#handle;
  }

  get session() {
    return this.#session;
  }

  /** Gives it back. */
  dispose() {
    if (this.#handle === undefined) return;
    forgotten.unregister(this);
    this.#session.free(this.#handle);
    this.#handle = undefined;
  }
}

/** A function of the server. */
export class RemoteFunction extends Remote {
  constructor(session, handle) {
    super(session, handle, KIND.function);
  }

  /** Calls it. Whole numbers are integers; `{ float: 1 }` is a float. */
  call(...args) {
    return this.session.call(this.handleFor(this.session), args);
  }
}

/** An object of the server. */
export class RemoteObject extends Remote {
  constructor(session, handle) {
    super(session, handle, KIND.object);
  }
}

/** A module of the server. */
export class RemoteModule extends Remote {
  #functions = new Map();

  constructor(session, handle) {
    super(session, handle, KIND.module);
  }

  /** A function of it by its name. */
  async function(name) {
    if (!this.#functions.has(name)) {
      const ask = await this.session.function("tvm.rpc.server.ModuleGetFunction");
      const found = await ask.call(this, name, true);
      ask.dispose();
      if (!(found instanceof RemoteFunction)) throw new RelaxideError("AttributeError", `the module has no function ${JSON.stringify(name)}`);
      this.#functions.set(name, found);
    }
    return this.#functions.get(name);
  }

  /** Calls a function of it. */
  async call(name, ...args) {
    return (await this.function(name)).call(...args);
  }
}

/** A tensor in the server's memory. */
export class RemoteTensor {
  #session;
  #view;
  #owned;

  constructor(session, view, owned) {
    this.#session = session;
    this.#view = view;
    this.#owned = owned;
    this.dtype = String(view.dtype);
    this.shape = Object.freeze([...view.shape]);
    if (owned.handle !== undefined) forgotten.register(this, { session, handle: owned.handle }, this);
    else abandoned.register(this, { session, data: owned.data }, this);
  }

  /** For this package alone. */
  viewFor(session) {
    if (this.#owned === undefined) throw new RelaxideError("ValueError", "the tensor was disposed of");
    if (session !== this.#session) throw new RelaxideError("ValueError", "the tensor is another session's");
    return this.#view;
  }

  /** Its elements. */
  async toArray() {
    const type = ARRAYS[this.dtype];
    if (type === undefined) throw new RelaxideError("TypeError", `there is no array of ${this.dtype}`);
    return new type((await this.#session.read(this.viewFor(this.#session))).buffer);
  }

  /** Gives its memory back. */
  dispose() {
    if (this.#owned === undefined) return;
    const { handle, data } = this.#owned;
    this.#owned = undefined;
    (handle === undefined ? abandoned : forgotten).unregister(this);
    if (handle === undefined) this.#session.freeData(data);
    else this.#session.free(handle);
  }
}

const abandoned = new FinalizationRegistry(({ session, data }) => session.freeData(data));

/** The error that a server tells. Ours say its kind in front of the message, TVM's nothing. */
function thrown(message) {
  const text = String(message);
  const [, kind, rest] = /^([A-Z]\w*(?:Error|Exception)): ([^]*)$/.exec(text) ?? [];
  return new RelaxideError(kind ?? "RPCError", rest ?? text);
}
