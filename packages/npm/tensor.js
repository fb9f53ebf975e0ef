// Tensors in a model's memory.

import { RelaxideError } from "./memory.js";

const Float16 = globalThis.Float16Array ?? Uint16Array;

/** The arrays that views are made of. Half-precision numbers are their bits where there is no array of them. */
export const ARRAYS = {
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Float16,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

/** The names of element types by code and bits. */
const NAMES = { 0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool" };

/** The name of the element type at an address; null for one that is not known. */
export function dtypeAt(view, at) {
  const [code, bits, lanes] = [view.getUint8(at), view.getUint8(at + 1), view.getUint16(at + 2, true)];
  const name = NAMES[code];
  if (name === undefined || bits === 0 || lanes !== 1) return null;
  return name === "bool" ? name : `${name}${bits}`;
}

/** The element type of an array. */
export function dtypeOf(array) {
  const found = Object.entries(ARRAYS).find(([, type]) => array instanceof type && type !== Uint8Array);
  if (found !== undefined) return found[0];
  return array instanceof Uint8Array || array instanceof Uint8ClampedArray ? "uint8" : undefined;
}

/** Where the parts of a tensor's description are. */
const INFO = { data: 0, shape: 4, ndim: 12, dtype: 16, size: 28, bytes: 36 };

// What nobody disposes of goes when nobody refers to it any more.
const forgotten = new FinalizationRegistry(({ runtime, handle }) => runtime.free("tensor", handle));

/** A tensor. It lies in the memory of the model that made it. */
export class Tensor {
  #runtime;
  #handle;
  #at;
  #view;

  /** For the model alone: takes a handle over. */
  constructor(runtime, handle) {
    this.#runtime = runtime;
    this.#handle = handle;
    runtime.within(() => {
      const info = runtime.place(INFO.bytes);
      runtime.call("tensor_describe", handle, info);
      const word = (part) => runtime.view.getUint32(info + part, true);
      this.dtype = dtypeAt(runtime.view, info + INFO.dtype);
      this.shape = Object.freeze(runtime.dims(word(INFO.shape), word(INFO.ndim)));
      this.size = word(INFO.size);
      this.#at = word(INFO.data);
    });
    forgotten.register(this, { runtime, handle }, this);
  }

  /** Makes a tensor, with what `data` holds, or with zeros. */
  static make(runtime, dtype, shape, data) {
    if (ARRAYS[dtype] === undefined) {
      throw new RelaxideError("TypeError", `unknown element type ${JSON.stringify(dtype)}: known are ${Object.keys(ARRAYS).join(", ")}`);
    }
    const isShape = Array.isArray(shape) && shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0);
    if (!isShape) throw new RelaxideError("ValueError", `a shape is an array of whole numbers, not ${JSON.stringify(shape)}`);
    const size = shape.reduce((product, dim) => product * dim, 1);
    if (data !== undefined && data.length !== size) {
      throw new RelaxideError("ValueError", `${data.length} elements are given for the shape [${shape}], which has ${size}`);
    }
    const handle = runtime.within(() => {
      const type = runtime.place(4);
      runtime.call("dtype_parse", runtime.cText(dtype), type);
      return runtime.result("tensor_new", runtime.integers(shape), shape.length, type);
    });
    const tensor = new Tensor(runtime, handle);
    try {
      if (data !== undefined) tensor.data.set(data);
    } catch (error) {
      tensor.dispose();
      throw error;
    }
    return tensor;
  }

  /** The elements, in the model's memory: what is written here is in the tensor. The memory moves when it grows, and the array is
   * then empty: ask for it anew behind each call of the model. */
  get data() {
    if (this.#handle === undefined) throw new RelaxideError("ValueError", "the tensor was disposed of");
    const type = ARRAYS[this.dtype];
    if (type === undefined) throw new RelaxideError("TypeError", "there is no array of the tensor's element type");
    if (this.#view?.buffer !== this.#runtime.buffer) this.#view = new type(this.#runtime.buffer, this.#at, this.size);
    return this.#view;
  }

  /** A copy of the elements, which stays. */
  toArray() {
    return this.data.slice();
  }

  /** Gives the memory back. */
  dispose() {
    if (this.#handle === undefined) return;
    forgotten.unregister(this);
    this.#runtime.free("tensor", this.#handle);
    this.#handle = undefined;
    this.#view = undefined;
  }

  /** For the model alone: the handle, if the tensor is one of its own. */
  handleFor(runtime) {
    if (this.#handle === undefined) throw new RelaxideError("ValueError", "the tensor was disposed of");
    if (this.#runtime !== runtime) {
      throw new RelaxideError("ValueError", "the tensor lies in the memory of another model: make it with this model's `tensor`");
    }
    return this.#handle;
  }

  toString() {
    return `Tensor(${this.dtype}, [${this.shape}])`;
  }
}

if (Symbol.dispose !== undefined) Tensor.prototype[Symbol.dispose] = Tensor.prototype.dispose;
