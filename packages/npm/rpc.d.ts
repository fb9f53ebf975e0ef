import type { DType, Tensor, TypedArray, Value } from "./index.js";
export { RelaxideError } from "./index.js";

/** An element type as packets have it. */
export class DataType {
  constructor(code: number, bits: number, lanes?: number);
  static parse(name: string): DataType;
  readonly code: number;
  readonly bits: number;
  readonly lanes: number;
  get size(): number;
}

/** A device: its kind (1: the processor) and its number. */
export class Device {
  constructor(kind: number, id: number);
  readonly kind: number;
  readonly id: number;
}

/** A tensor in the server's memory. */
export class RemoteTensor {
  private constructor();
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Its elements. */
  toArray(): Promise<TypedArray>;
  /** Gives its memory back; without it, that is done when nobody refers to the tensor any more. */
  dispose(): void;
}

/** An object of the server. */
export class RemoteObject {
  protected constructor();
  dispose(): void;
}

/** What crosses: whole numbers are integers, `{ float }` is a float. */
export type Argument =
  | RemoteTensor | RemoteObject | number | bigint | boolean | string | null | Uint8Array | DataType | Device | { float: number };

/** What comes back. */
export type Result = RemoteTensor | RemoteObject | number | bigint | boolean | string | null | Uint8Array | DataType | Device;

/** A function of the server. */
export class RemoteFunction extends RemoteObject {
  call(...args: Argument[]): Promise<Result>;
}

/** A module of the server. */
export class RemoteModule extends RemoteObject {
  function(name: string): Promise<RemoteFunction>;
  call(name: string, ...args: Argument[]): Promise<Result>;
}

/** A session with a server. Calls are answered in their order. */
export class Session {
  private constructor();
  /** A function of the server by its name. */
  function(name: string): Promise<RemoteFunction>;
  /** A tensor on the server, with what `data` holds, or with what its memory holds. */
  tensor(dtype: DType, shape: readonly number[], data?: TypedArray | ArrayLike<number>): Promise<RemoteTensor>;
  /** A tensor of an array's own element type. */
  from(array: TypedArray, shape?: readonly number[]): Promise<RemoteTensor>;
  upload(name: string, bytes: Uint8Array): Promise<void>;
  download(name: string): Promise<Uint8Array>;
  loadModule(name: string): Promise<RemoteModule>;
  /** Loads a compiled model, ready to be called. */
  loadModel(name: string): Promise<RemoteModule>;
  close(): void;
}

interface LineOptions {
  /** The key under which the proxy leads both ends to each other. */
  key?: string;
  /** What makes connections, where the engine has no `WebSocket`. */
  WebSocket?: new (url: string) => any;
  /** Bytes of a packet at most. */
  maxPacket?: number;
}

/** Connects to the server of a key behind a proxy (`ws://HOST:PORT/ws`). */
export function connect(url: string, options?: LineOptions & { timeout?: number }): Promise<Session>;

/** A tensor that a client names; `data` is a copy. */
export interface ArgumentTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

export interface ServeOptions extends LineOptions {
  /** Functions that clients may call. */
  functions?: Record<string, (...args: any[]) => Served | Promise<Served>>;
  /** Bytes that the tensors of a session may take. */
  memory?: number;
  /** Milliseconds behind a failure until it is tried again. */
  pause?: number;
  /** Is told the client's key when a session begins. */
  onSession?: (key: string) => void;
  /** Is told why a session or a connection failed. */
  onError?: (error: Error) => void;
}

/** What a function of a server may return. */
export type Served = Value | ArgumentTensor | Tensor | Uint8Array | boolean | { float: number } | void | Served[];

/** Serves behind a proxy, session after session, until `stop` is called. */
export function serve(url: string, options?: ServeOptions): { stop(): Promise<void>; readonly ended: Promise<void> };
