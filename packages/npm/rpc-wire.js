// The bytes of TVM's remote calls: packets, and the values in them. All numbers are little endian.
//
// A packet is its length in eight bytes, a code in four, and what the code has. Values are an index of their kind in four bytes and what the
// kind has. What a peer says is checked against the bytes that came before anything is made of it.

import { RelaxideError } from "./memory.js";

/** What stands in front of the first key, and what refuses one. */
export const MAGIC = 0xff271;
export const REFUSED = { 0xff272: "is there already", 0xff273: "is not there, or nobody came for it in time" };

/** The version that both ends must name. */
export const VERSION = "0.8.0";

/** The codes of packets, and of system calls behind them. */
export const CODE = {
  shutdown: 1, init: 2, call: 3, result: 4, exception: 5, copyFrom: 6, copyTo: 7, copyAck: 8, global: 9, free: 10, setDevice: 11, attribute: 12,
  alloc: 13, freeData: 14, sync: 15, copyAmong: 16, allocScope: 17, newStream: 18, freeStream: 19, setStream: 20, stream: 21,
};

/** The indices of kinds. */
export const KIND = {
  none: 0, int: 1, bool: 2, float: 3, pointer: 4, dtype: 5, device: 6, tensorView: 7, rawText: 8, rawBytes: 9, smallText: 11, smallBytes: 12,
  text: 65, bytes: 66, function: 68, tensor: 70, array: 71, module: 73, object: 115,
};

const MAX_VALUES = 1 << 16;
const MAX_RANK = 64;
const CODES = { int: 0, uint: 1, float: 2, bfloat: 4, bool: 6 };

/** An element type: `float32`, for example. */
export class DataType {
  constructor(code, bits, lanes = 1) {
    Object.assign(this, { code, bits, lanes });
  }

  static parse(name) {
    if (name === "bool") return new DataType(CODES.bool, 8);
    const [, word, bits] = /^([a-z]+)(\d+)$/.exec(name) ?? [];
    if (CODES[word] === undefined) throw new RelaxideError("TypeError", `unknown element type ${JSON.stringify(name)}`);
    return new DataType(CODES[word], Number(bits));
  }

  get size() {
    return Math.ceil((this.bits * this.lanes) / 8);
  }

  toString() {
    const word = Object.keys(CODES).find((name) => CODES[name] === this.code) ?? `code${this.code}_`;
    return (word === "bool" ? word : `${word}${this.bits}`) + (this.lanes === 1 ? "" : `x${this.lanes}`);
  }
}

/** A device: its kind (1: the processor) and its number. */
export class Device {
  constructor(kind, id) {
    Object.assign(this, { kind, id });
  }
}

/** A handle of an object that the other end keeps, with its kind. */
export class Handle {
  constructor(kind, handle) {
    Object.assign(this, { kind, handle });
  }
}

/** A tensor as packets describe it. */
export class TensorView {
  constructor(data, device, dtype, shape, byteOffset = 0n) {
    Object.assign(this, { data, device, dtype, shape, byteOffset });
  }

  get bytes() {
    return this.shape.reduce((product, dim) => product * dim, 1) * this.dtype.size;
  }
}

/** A text or bytes as calls have them, and not as objects. */
export class Raw {
  constructor(value) {
    this.value = value;
  }
}

export function wrong(what) {
  return new RelaxideError("ConnectionError", `the other end breaks the protocol: ${what}`);
}

/** Writes a packet. */
export class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 8;

  constructor(code) {
    this.i32(code);
  }

  #grow(count) {
    const begin = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length));
      larger.set(this.#bytes);
      [this.#bytes, this.#view] = [larger, new DataView(larger.buffer)];
    }
    return begin;
  }

  i32(value) {
    const at = this.#grow(4);
    this.#view.setInt32(at, value, true);
    return this;
  }

  u64(value) {
    const at = this.#grow(8);
    this.#view.setBigUint64(at, BigInt.asUintN(64, BigInt(value)), true);
    return this;
  }

  f64(value) {
    const at = this.#grow(8);
    this.#view.setFloat64(at, value, true);
    return this;
  }

  raw(bytes) {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  block(bytes) {
    return this.u64(bytes.length).raw(bytes);
  }

  dtype({ code, bits, lanes }) {
    return this.raw([code, bits, lanes & 255, lanes >> 8]);
  }

  view({ data, device, dtype, shape, byteOffset }) {
    this.u64(data).i32(device.kind).i32(device.id).i32(shape.length).dtype(dtype);
    shape.forEach((dim) => this.u64(dim));
    return this.u64(byteOffset);
  }

  values(list) {
    this.i32(list.length);
    list.forEach((value) => this.value(value));
    return this;
  }

  value(value) {
    if (value === null || value === undefined) return this.i32(KIND.none);
    if (typeof value === "boolean") return this.i32(KIND.bool).u64(value ? 1 : 0);
    if (typeof value === "bigint" || Number.isSafeInteger(value)) return this.i32(KIND.int).u64(value);
    if (typeof value === "number") return this.i32(KIND.float).f64(value);
    if (typeof value === "string") return this.i32(KIND.text).i32(KIND.text).block(new TextEncoder().encode(value));
    if (value instanceof Uint8Array) return this.i32(KIND.bytes).i32(KIND.bytes).block(value);
    if (value instanceof DataType) return this.i32(KIND.dtype).dtype(value).i32(0);
    if (value instanceof Device) return this.i32(KIND.device).i32(value.kind).i32(value.id);
    if (value instanceof TensorView) return this.i32(KIND.tensorView).view(value);
    if (value instanceof Raw) {
      const isText = typeof value.value === "string";
      return this.i32(isText ? KIND.rawText : KIND.rawBytes).block(isText ? new TextEncoder().encode(value.value) : value.value);
    }
    if (value instanceof Handle) {
      this.i32(value.kind);
      return (value.kind === KIND.object ? this.i32(KIND.object) : this).u64(value.handle);
    }
    if (typeof value === "object" && typeof value.float === "number") return this.i32(KIND.float).f64(value.float);
    throw new RelaxideError("TypeError", `${value?.constructor?.name ?? typeof value} has no form in a remote call`);
  }

  /** The packet, with its length in front. */
  end() {
    this.#view.setBigUint64(0, BigInt(this.#length - 8), true);
    return this.#bytes.subarray(0, this.#length);
  }
}

/** Reads a packet behind its length. */
export class Reader {
  #bytes;
  #view;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #take(count, what) {
    if (count > this.left) throw wrong(`${what} ends behind its packet`);
    this.#at += count;
    return this.#at - count;
  }

  get left() {
    return this.#bytes.length - this.#at;
  }

  i32(what) {
    return this.#view.getInt32(this.#take(4, what), true);
  }

  u64(what) {
    return this.#view.getBigUint64(this.#take(8, what), true);
  }

  raw(count, what) {
    const at = this.#take(count, what);
    return this.#bytes.subarray(at, at + count);
  }

  block(what) {
    const length = this.u64(what);
    if (length > BigInt(this.left)) throw wrong(`${what} of ${length} bytes ends behind its packet`);
    return this.raw(Number(length), what);
  }

  text(what) {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(this.block(what));
    } catch (error) {
      throw error instanceof RelaxideError ? error : wrong(`${what} is not UTF-8`);
    }
  }

  integer(what) {
    return narrow(this.#view.getBigInt64(this.#take(8, what), true));
  }

  dtype(what) {
    const [code, bits, low, high] = this.raw(4, what);
    return new DataType(code, bits, low | (high << 8));
  }

  view() {
    const data = this.u64("an address");
    const device = new Device(this.i32("a device"), this.i32("a device"));
    const rank = this.i32("a rank");
    if (rank < 0 || rank > MAX_RANK) throw wrong(`a tensor of ${rank} dimensions`);
    const dtype = this.dtype("an element type");
    const shape = Array.from({ length: rank }, () => this.integer("a dimension"));
    if (!shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) throw wrong(`a tensor of shape [${shape}]`);
    const view = new TensorView(data, device, dtype, shape, this.u64("an offset"));
    if (!Number.isSafeInteger(view.bytes)) throw wrong(`a tensor of shape [${shape}] is larger than memory`);
    return view;
  }

  values() {
    const count = this.i32("a number of values");
    if (count < 0 || count > MAX_VALUES) throw wrong(`${count} values`);
    const list = [];
    for (let i = 0; i < count; i++) list.push(this.value());
    return list;
  }

  value() {
    const kind = this.i32("the kind of a value");
    switch (kind) {
      case KIND.none:
        return null;
      case KIND.int:
        return this.integer("an integer");
      case KIND.bool:
        return this.u64("a bool") !== 0n;
      case KIND.float:
        return this.#view.getFloat64(this.#take(8, "a float"), true);
      case KIND.dtype: {
        const dtype = this.dtype("an element type");
        this.i32("an element type");
        return dtype;
      }
      case KIND.device:
        return new Device(this.i32("a device"), this.i32("a device"));
      case KIND.tensorView:
        return this.view();
      case KIND.rawText:
        return this.text("a text");
      case KIND.rawBytes:
        return this.block("bytes").slice();
      case KIND.pointer:
      case KIND.function:
      case KIND.module:
        return new Handle(kind, this.u64("a handle"));
      case KIND.smallText:
      case KIND.text:
      case KIND.smallBytes:
      case KIND.bytes:
      case KIND.object: {
        const inner = this.i32("the kind of an object");
        if (inner === KIND.text) return this.text("a text");
        if (inner === KIND.bytes) return this.block("bytes").slice();
        if (inner === KIND.object) return new Handle(kind, this.u64("a handle"));
        throw wrong(`an object of kind ${inner}`);
      }
      default:
        throw wrong(`a value of kind ${kind}`);
    }
  }

  /** Fails if anything is left. */
  end() {
    if (this.left > 0) throw wrong(`${this.left} bytes stand behind a packet's end`);
  }
}

/** An integer as a number, or as what it is where numbers do not hold it. */
function narrow(value) {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
