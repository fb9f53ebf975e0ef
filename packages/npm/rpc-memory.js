// What a server keeps for a session: memory at addresses that it makes up, and objects behind handles.
//
// Addresses and handles are numbers of this session, never those of a machine: whatever a client says, it finds its own things or an error.

import { RelaxideError } from "./memory.js";

const ALIGNMENT = 64;

function missing(what) {
  return new RelaxideError("ValueError", what);
}

/** The memory and the objects of a session. */
export class Kept {
  #blocks = new Map();
  #next = 4096;
  #bytes = 0;
  #limit;
  #objects = new Map();
  #handles = new Map();
  #count = 0n;

  constructor(limit) {
    this.#limit = limit;
  }

  /** Makes a block, zeroed or of bytes that are given; its address. */
  allocate(size, bytes) {
    if (!Number.isSafeInteger(size) || size < 0 || this.#bytes + size > this.#limit) {
      throw new RelaxideError("MemoryError", `${size} bytes are wanted, and a session has ${this.#limit}, of which ${this.#bytes} are taken`);
    }
    const address = this.#next;
    this.#blocks.set(address, bytes ?? new Uint8Array(size));
    this.#bytes += size;
    // An address behind the end of a block is in no other.
    this.#next += Math.ceil((size + 1) / ALIGNMENT) * ALIGNMENT;
    return address;
  }

  /** Gives a block back. */
  release(address) {
    const block = this.#blocks.get(Number(address));
    if (block === undefined) throw missing(`no memory begins at ${address}`);
    this.#bytes -= block.length;
    this.#blocks.delete(Number(address));
  }

  /** So many bytes at an address and an offset. */
  at(address, offset, count) {
    const place = Number(address) + Number(offset);
    for (const [begin, block] of this.#blocks) {
      if (place < begin || place > begin + block.length) continue;
      if (place + count > begin + block.length) break;
      return block.subarray(place - begin, place - begin + count);
    }
    throw missing(`${count} bytes at ${address} + ${offset} are not within memory of this session`);
  }

  /** A handle of an object, counted once more. */
  handle(object) {
    let handle = this.#handles.get(object);
    if (handle === undefined) {
      handle = ++this.#count;
      this.#handles.set(object, handle);
      this.#objects.set(handle, { object, uses: 0 });
    }
    this.#objects.get(handle).uses += 1;
    return handle;
  }

  /** The object of a handle. */
  object(handle) {
    const entry = this.#objects.get(handle);
    if (entry === undefined) throw missing(`there is no object of the handle ${handle}`);
    return entry.object;
  }

  /** Gives a handle back; 0 is nothing. */
  free(handle) {
    if (handle === 0n) return;
    const entry = this.#objects.get(handle);
    if (entry === undefined) throw missing(`there is no object of the handle ${handle}`);
    entry.uses -= 1;
    if (entry.uses > 0) return;
    this.#objects.delete(handle);
    this.#handles.delete(entry.object);
    entry.object.end?.();
  }
}
