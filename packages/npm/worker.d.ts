import type { DType, FunctionInfo, LoadOptions, Parameter, Tensor, TensorLike, TypedArray } from "./index.js";
export { RelaxideError } from "./index.js";

/** A tensor that has left the worker: its elements are in an array of its own. */
export class RemoteTensor implements TensorLike {
  private constructor();
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The number of elements. */
  readonly size: number;
  readonly data: TypedArray;
}

/** What a function takes: a bare array has the shape that the model says. Tensors of other models are copied. */
export type RemoteInput = TypedArray | TensorLike | Tensor | number | bigint | boolean | string | RemoteInput[];

/** What a function gives. */
export type RemoteValue = RemoteTensor | number | bigint | string | { shape: number[] } | null | RemoteValue[];

/** A model in a worker. Calls run one behind the other; errors are those of `Model`, by the same kinds. */
export class RemoteModel {
  private constructor();
  readonly functions: readonly FunctionInfo[];
  /** The parameters of `main`. */
  get inputs(): readonly Parameter[];
  /** The names of the results of `main`. */
  get outputs(): readonly string[];
  /** A function by its name. */
  function(name: string): FunctionInfo;
  /** Runs a function (`main`) on inputs by their names. With `transfer`, their arrays are the worker's from now on, and empty here;
   * without, they are copied. */
  run(inputs: Record<string, RemoteInput>, options?: { function?: string; transfer?: boolean }): Promise<Record<string, RemoteTensor>>;
  /** Calls a function with values in the order of its parameters. */
  call(name: string, ...args: RemoteInput[]): Promise<RemoteValue>;
  /** Ends the worker, and with it the model and its memory. Calls that have no answer yet fail. */
  terminate(): void;
}

/** Loads a model in a worker of its own. */
export function load(source: string | URL | BufferSource | Response | WebAssembly.Module, options?: LoadOptions): Promise<RemoteModel>;
