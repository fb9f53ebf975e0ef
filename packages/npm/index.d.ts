/** Names of element types. */
export type DType =
  | "bool" | "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64"
  | "float16" | "bfloat16" | "float32" | "float64";

/** The arrays that hold elements. Numbers of 16 bits with a point are their bits in a `Uint16Array`; `float16` is a `Float16Array` where
 * the engine has it. */
export type TypedArray =
  | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array | Float32Array | Float64Array;

/** What a model or the runtime says is wrong. */
export class RelaxideError extends Error {
  constructor(kind: string, message: string);
  /** What the error is called there, such as `ValueError` or `TypeError`. */
  readonly kind: string;
}

/** A tensor in the memory of the model that made it. */
export class Tensor {
  private constructor();
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The number of elements. */
  readonly size: number;
  /** The elements, in the model's memory: no copy. The memory moves when it grows, and the array is then empty: ask for it anew behind
   * each call of the model. */
  get data(): TypedArray;
  /** A copy of the elements, which stays. */
  toArray(): TypedArray;
  /** Gives the memory back; without it, that is done when nobody refers to the tensor any more. */
  dispose(): void;
}

/** Numbers with a shape, which are copied into the model's memory. The element type is that of the array, if none is said. */
export interface TensorLike {
  data: TypedArray | ArrayLike<number>;
  dtype?: DType;
  shape?: readonly number[];
}

/** What a function takes: a bare array has the shape that the model says. */
export type Input = Tensor | TypedArray | TensorLike | number | bigint | boolean | string | Input[];

/** What a function gives. */
export type Value = Tensor | number | bigint | string | { shape: number[] } | null | Value[];

export interface Parameter {
  readonly name: string;
  /** The type as TVMScript, empty if it is not known. */
  readonly annotation: string;
  /** The element type of a tensor; null if it is not known. */
  readonly dtype: DType | null;
  /** The dimensions of a tensor, null for those that each call may choose; null if their number is not known. */
  readonly shape: readonly (number | null)[] | null;
}

export interface FunctionInfo {
  readonly name: string;
  readonly params: readonly Parameter[];
  /** The names of results, if the file says them. */
  readonly outputs: readonly string[];
}

/** A model, ready to run. */
export class Model {
  private constructor();
  readonly functions: readonly FunctionInfo[];
  /** The parameters of `main`. */
  get inputs(): readonly Parameter[];
  /** The names of the results of `main`. */
  get outputs(): readonly string[];
  /** A function by its name. */
  function(name: string): FunctionInfo;
  /** A tensor in the model's memory, with what `data` holds, or with zeros. */
  tensor(dtype: DType, shape: readonly number[], data?: TypedArray | ArrayLike<number>): Tensor;
  /** Runs a function (`main`) on inputs by their names, and gives its tensors by theirs. */
  run(inputs: Record<string, Input>, options?: { function?: string }): Record<string, Tensor>;
  /** Calls a function with values in the order of its parameters. */
  call(name: string, ...args: Input[]): Value;
}

export interface LoadOptions {
  /** Is told how many bytes of the module are there, and of how many, if that is known; then the same of weights in a file of their own. */
  onProgress?: (loaded: number, total: number | undefined, part: "module" | "weights") => void;
  /** Where the weights are of a model that was compiled with `--weights safetensors`: beside the module, if nothing is said. They are
   * written into the model's memory as they arrive. */
  weights?: string | URL | BufferSource | Response;
}

/** Loads a model: from its bytes, a URL or (in Node) a path, a response, or a compiled module. */
export function load(
  source: string | URL | BufferSource | Response | WebAssembly.Module,
  options?: LoadOptions,
): Promise<Model>;
