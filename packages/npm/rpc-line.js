// A WebSocket as a stream of packets, and what is said before the first one.

import { RelaxideError } from "./memory.js";
import { MAGIC, REFUSED, wrong } from "./rpc-wire.js";

const MAX_KEY = 4096;
/** Proxies take frames up to a few megabytes; where a frame ends means nothing. */
const FRAME = 1 << 20;
/** How much may wait for its reader. */
export const MAX_PACKET = 1 << 28;

/** A connection. */
export class Line {
  #socket;
  #pieces = [];
  #held = 0;
  #first = 0;
  #wake;
  #error;
  #limit;

  constructor(socket, limit) {
    this.#socket = socket;
    this.#limit = limit;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#heard(data);
    socket.onclose = ({ code }) => this.#fail(new RelaxideError("ConnectionError", `the connection was closed (code ${code})`));
    socket.onerror = (event) => this.#fail(new RelaxideError("ConnectionError", event.message || "the connection failed"));
  }

  /** Connects, says the key, and waits for the other end. Gives the line and the other's key. */
  static async open(url, key, { WebSocket: Socket = globalThis.WebSocket, maxPacket = MAX_PACKET, onLine } = {}) {
    if (Socket === undefined) {
      throw new RelaxideError("NotImplementedError", "this engine has no WebSocket (Node has one since 22): pass one as { WebSocket }");
    }
    const line = new Line(new Socket(url), maxPacket);
    onLine?.(line);
    try {
      await line.#opened(url);
      const bytes = new TextEncoder().encode(key);
      const hello = new Uint8Array(8 + bytes.length);
      new DataView(hello.buffer).setInt32(0, MAGIC, true);
      new DataView(hello.buffer).setInt32(4, bytes.length, true);
      hello.set(bytes, 8);
      line.send(hello);
      return { line, other: await line.#greeted(key) };
    } catch (error) {
      line.close();
      throw error;
    }
  }

  #opened(url) {
    return new Promise((resolve, reject) => {
      this.#socket.onopen = () => resolve();
      this.#wake = () => reject(new RelaxideError("ConnectionError", `cannot connect to ${url}: ${this.#error.message}`));
      if (this.#error) this.#wake();
    });
  }

  async #greeted(key) {
    const word = async () => new DataView((await this.read(4)).buffer).getInt32(0, true);
    const code = await word();
    if (REFUSED[code]) throw new RelaxideError("ConnectionError", `${JSON.stringify(key)}: it ${REFUSED[code]}`);
    if (code !== MAGIC) throw wrong(`a greeting of ${code}`);
    const length = await word();
    if (length < 0 || length > MAX_KEY) throw wrong(`a key of ${length} bytes`);
    return new TextDecoder().decode(await this.read(length));
  }

  #heard(data) {
    if (this.#error) return;
    if (!(data instanceof ArrayBuffer)) {
      this.#fail(wrong("text came, and frames here are binary"));
      this.#socket.close();
      return;
    }
    this.#held += data.byteLength;
    if (this.#held > 2 * this.#limit + MAX_KEY) {
      this.#fail(wrong(`more than ${2 * this.#limit} bytes wait to be read`));
      this.#socket.close();
      return;
    }
    this.#pieces.push(new Uint8Array(data));
    this.#wake?.();
  }

  #fail(error) {
    this.#error ??= error;
    this.#wake?.();
  }

  /** Exactly so many bytes, in an array of their own. One reader at a time. */
  async read(count) {
    while (this.#held < count) {
      if (this.#error) throw this.#error;
      await new Promise((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; ) {
      const piece = this.#pieces[0];
      const part = piece.subarray(this.#first, this.#first + count - at);
      bytes.set(part, at);
      at += part.length;
      this.#first += part.length;
      if (this.#first === piece.length) {
        this.#pieces.shift();
        this.#first = 0;
      }
    }
    this.#held -= count;
    return bytes;
  }

  /** A packet behind its length. Empty ones are passed over. */
  async packet() {
    for (;;) {
      const length = new DataView((await this.read(8)).buffer).getBigUint64(0, true);
      if (length > BigInt(this.#limit)) throw wrong(`a packet of ${length} bytes; at most ${this.#limit} are taken`);
      if (length >= 4n) return this.read(Number(length));
      if (length > 0n) throw wrong(`a packet of ${length} bytes`);
    }
  }

  /** Whether the line is open. */
  get isOpen() {
    return this.#error === undefined;
  }

  send(bytes) {
    if (this.#error) throw this.#error;
    for (let at = 0; at < bytes.length; at += FRAME) this.#socket.send(bytes.subarray(at, at + FRAME));
  }

  close() {
    this.#fail(new RelaxideError("ConnectionError", "the connection was closed here"));
    this.#socket.close();
  }
}
