// The C interface of the runtime: every function returns 0 or leaves an error, and writes results to addresses.

/** What a model or the runtime says is wrong. `kind` is what the error is called there, such as `ValueError`. */
export class RelaxideError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "RelaxideError";
    this.kind = kind;
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** How many bytes arguments may take that are passed by their addresses: shapes, texts and places for results. */
const SCRATCH = 4096;

/** An instance of a module. */
export class Runtime {
  #scratch;
  #used = 0;
  #view;
  #broken;

  constructor(instance) {
    this.exports = instance.exports;
    if (this.exports.relaxide_model_linked === undefined) {
      throw new TypeError("this WebAssembly module is no model: compile one with `relaxide compile MODEL --target wasm`");
    }
    this.#scratch = this.exports.relaxide_memory_new(SCRATCH);
  }

  /** The module's memory. It moves when it grows, so nobody keeps this. */
  get buffer() {
    return this.exports.memory.buffer;
  }

  get view() {
    if (this.#view?.buffer !== this.buffer) this.#view = new DataView(this.buffer);
    return this.#view;
  }

  /** Calls a function of the interface; an error is thrown. */
  call(name, ...args) {
    if (this.#broken) throw this.#broken;
    let code;
    try {
      code = this.exports[`relaxide_${name}`](...args);
    } catch (trap) {
      throw this.#breaks(trap);
    }
    if (code !== 0) {
      throw new RelaxideError(this.text(this.exports.relaxide_error_kind()), this.text(this.exports.relaxide_error_message()));
    }
  }

  /** Gives a handle back, unless the instance has ended. */
  free(name, handle) {
    if (!this.#broken) this.exports[`relaxide_${name}_free`](handle);
  }

  // Nothing unwinds in a module: what a trap leaves behind is of no use any more.
  #breaks(trap) {
    const at = this.exports.relaxide_panic_message();
    const said = at === 0 ? String(trap.message ?? trap) : this.text(at);
    const kind = trap instanceof RangeError ? "RecursionError" : "InternalError";
    this.#broken = new RelaxideError(kind, `the model has ended and must be loaded again: ${said}`);
    this.#broken.cause = trap;
    return this.#broken;
  }

  /** The name and size of the file that the weights are in; nothing if they are in the module. */
  weightsApart() {
    if (this.exports.relaxide_weights_file === undefined) return undefined;
    return this.within(() => {
      const [file, bytes] = [this.place(4), this.place(8)];
      this.call("weights_file", file, bytes);
      const at = this.view.getUint32(file, true);
      return at === 0 ? undefined : { name: this.text(at), size: Number(this.view.getBigUint64(bytes, true)) };
    });
  }

  /** Has the weights written into memory of the module, and gives them to the program. */
  async takeWeights({ name, size }, write) {
    const at = this.exports.relaxide_memory_new(size) >>> 0;
    if (at === 0) throw new RelaxideError("MemoryError", `there is no memory for the ${size} bytes of the weights ${name}`);
    try {
      await write((offset, length) => new Uint8Array(this.buffer, at + offset, length));
    } catch (error) {
      this.exports.relaxide_memory_free(at, size);
      throw error;
    }
    this.call("weights_take", at, size);
  }

  /** Does something with places in memory that are free again behind it. */
  within(body) {
    const before = this.#used;
    try {
      return body();
    } finally {
      this.#used = before;
    }
  }

  /** A place of that many bytes; within `within`. */
  place(bytes) {
    const at = this.#scratch + this.#used;
    this.#used += (bytes + 7) & ~7;
    if (this.#used > SCRATCH) throw new RelaxideError("ValueError", `arguments of a call take more than ${SCRATCH} bytes`);
    return at;
  }

  /** A text as C has it; within `within`. */
  cText(text) {
    const bytes = encoder.encode(text);
    const at = this.place(bytes.length + 1);
    const memory = new Uint8Array(this.buffer);
    memory.set(bytes, at);
    memory[at + bytes.length] = 0;
    return at;
  }

  /** Numbers of 64 bits; within `within`. */
  integers(values) {
    const at = this.place(8 * values.length);
    values.forEach((value, i) => this.view.setBigInt64(at + 8 * i, BigInt(value), true));
    return at;
  }

  /** Addresses; within `within`. */
  addresses(values) {
    const at = this.place(4 * values.length);
    values.forEach((value, i) => this.view.setUint32(at + 4 * i, value, true));
    return at;
  }

  /** What a function writes to its last argument, an address. */
  result(name, ...args) {
    return this.within(() => {
      const at = this.place(8);
      this.call(name, ...args, at);
      return this.view.getUint32(at, true);
    });
  }

  /** The text at an address. */
  text(at) {
    const memory = new Uint8Array(this.buffer);
    const end = memory.indexOf(0, at);
    return decoder.decode(memory.subarray(at, end));
  }

  /** So many dimensions at an address. */
  dims(at, count) {
    return Array.from({ length: count }, (_, i) => Number(this.view.getBigInt64(at + 8 * i, true)));
  }
}
