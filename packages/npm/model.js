// Models: what they have, and calling it.

import { RelaxideError } from "./memory.js";
import { Tensor, dtypeAt, dtypeOf } from "./tensor.js";

/** The numbers of kinds of values. */
const KIND = { none: 0, int: 1, float: 2, str: 3, shape: 4, tensor: 5, tuple: 6 };

/** Where the parts of descriptions are. */
const PARAM = { name: 0, annotation: 4, dtype: 8, ndim: 12, dims: 16, bytes: 20 };

/** A model, ready to run. One call runs at a time. */
export class Model {
  #runtime;
  #handle;

  /** For `load` alone. */
  constructor(runtime) {
    this.#runtime = runtime;
    this.#handle = runtime.within(() => runtime.result("model_linked", runtime.cText("")));
    const count = runtime.result("model_num_functions", this.#handle);
    this.functions = Object.freeze(Array.from({ length: count }, (_, i) => this.#describe(i)));
  }

  #describe(index) {
    const runtime = this.#runtime;
    return runtime.within(() => {
      const info = runtime.place(8);
      runtime.call("model_function", this.#handle, index, info);
      const [at, count] = [runtime.view.getUint32(info, true), runtime.view.getUint32(info + 4, true)];
      const outputs = runtime.result("model_num_output_names", this.#handle, at);
      return Object.freeze({
        name: runtime.text(at),
        params: Array.from({ length: count }, (_, i) => this.#param(at, i)),
        outputs: Array.from({ length: outputs }, (_, i) => runtime.text(runtime.result("model_output_name", this.#handle, at, i))),
      });
    });
  }

  #param(of, index) {
    const runtime = this.#runtime;
    return runtime.within(() => {
      const info = runtime.place(PARAM.bytes);
      runtime.call("model_param", this.#handle, of, index, info);
      const word = (part) => runtime.view.getUint32(info + part, true);
      const rank = runtime.view.getInt32(info + PARAM.ndim, true);
      return Object.freeze({
        name: runtime.text(word(PARAM.name)),
        annotation: runtime.text(word(PARAM.annotation)),
        dtype: dtypeAt(runtime.view, info + PARAM.dtype),
        shape: rank < 0 ? null : runtime.dims(word(PARAM.dims), rank).map((dim) => (dim < 0 ? null : dim)),
      });
    });
  }

  /** The parameters of `main`. */
  get inputs() {
    return this.function("main").params;
  }

  /** The names of the results of `main`, as far as the file says them. */
  get outputs() {
    return this.function("main").outputs;
  }

  /** A function by its name. */
  function(name) {
    const found = this.functions.find((other) => other.name === name);
    if (found !== undefined) return found;
    const known = this.functions.map((other) => other.name).join(", ");
    throw new RelaxideError("ValueError", `the model has no function ${JSON.stringify(name)}: it has ${known}`);
  }

  /** A tensor in the model's memory, with what `data` holds, or with zeros. */
  tensor(dtype, shape, data) {
    return Tensor.make(this.#runtime, dtype, shape, data);
  }

  /** Runs a function (`main`) on inputs by their names, and gives its tensors by theirs. */
  run(inputs, { function: name = "main" } = {}) {
    const { params, outputs } = this.function(name);
    const unknown = Object.keys(inputs).find((input) => !params.some((param) => param.name === input));
    const known = params.map((param) => param.name).join(", ");
    if (unknown !== undefined) throw new RelaxideError("ValueError", `unknown input ${JSON.stringify(unknown)}: ${name} has ${known}`);
    const missing = params.find((param) => !Object.hasOwn(inputs, param.name));
    if (missing !== undefined) throw new RelaxideError("ValueError", `the input ${JSON.stringify(missing.name)} is missing: ${name} has ${known}`);
    const result = this.call(name, ...params.map((param) => inputs[param.name]));
    const tensors = [result].flat(Infinity);
    const named = outputs.length === tensors.length ? outputs : tensors.map((_, i) => `output${i}`);
    return Object.fromEntries(tensors.map((tensor, i) => [named[i], tensor]));
  }

  /** Calls a function with values in the order of its parameters: tensors, typed arrays where the parameter's shape is known,
   * `{ dtype, shape, data }`, numbers, texts, or arrays of these for tuples. The result is a tensor, an array of results, a number
   * (a bigint beyond what numbers hold), a text, a shape as `{ shape }`, or null. */
  call(name, ...args) {
    const runtime = this.#runtime;
    const { params } = this.function(name);
    // What is made for this call alone.
    const [values, tensors] = [[], []];
    try {
      args.forEach((arg, i) => values.push(this.#value(arg, params[i], tensors, values)));
      const result = runtime.within(() => {
        const [at, list] = [runtime.cText(name), runtime.addresses(values)];
        return runtime.result("model_call", this.#handle, at, list, values.length);
      });
      return this.#taken(result);
    } finally {
      values.forEach((value) => runtime.free("value", value));
      tensors.forEach((tensor) => tensor.dispose());
    }
  }

  /** A value for the model. Tensors that are made for it are put where they are disposed of. */
  #value(arg, param, tensors) {
    const runtime = this.#runtime;
    const name = param === undefined ? "an argument" : `the input ${JSON.stringify(param.name)}`;
    if (typeof arg === "bigint" || Number.isSafeInteger(arg)) return runtime.result("value_int", BigInt.asIntN(64, BigInt(arg)));
    if (typeof arg === "boolean") return runtime.result("value_int", BigInt(arg));
    if (typeof arg === "number") return runtime.result("value_float", arg);
    if (typeof arg === "string") return runtime.within(() => runtime.result("value_str", runtime.cText(arg)));
    if (Array.isArray(arg)) {
      const fields = [];
      try {
        arg.forEach((field) => fields.push(this.#value(field, undefined, tensors)));
        return runtime.within(() => runtime.result("value_tuple", runtime.addresses(fields), fields.length));
      } finally {
        fields.forEach((field) => runtime.free("value", field));
      }
    }
    return runtime.result("value_tensor", this.#tensor(arg, param, name, tensors).handleFor(runtime));
  }

  #tensor(arg, param, name, tensors) {
    if (arg instanceof Tensor) return arg;
    const isView = ArrayBuffer.isView(arg);
    const data = isView ? arg : arg?.data;
    const dtype = arg?.dtype ?? this.#suited(data, param);
    const shape = isView ? param?.shape : (arg?.shape ?? param?.shape);
    if (data === undefined || dtype === undefined) {
      throw new RelaxideError("TypeError", `${name} is ${describe(arg)}: a tensor, a typed array, or { dtype, shape, data } is expected`);
    }
    if (shape == null || shape.includes(null)) {
      throw new RelaxideError("ValueError", `${name} needs a shape, as the model leaves it open: give { shape, data }, or a tensor`);
    }
    const made = this.tensor(dtype, shape, data);
    tensors.push(made);
    return made;
  }

  /** The element type that an array stands for: the parameter's, where it is one of several for that array. */
  #suited(data, param) {
    const own = data === undefined ? undefined : dtypeOf(data);
    const others = { uint8: ["bool"], uint16: ["float16", "bfloat16"], float16: ["float16"] };
    return others[own]?.includes(param?.dtype) ? param.dtype : own;
  }

  /** What a value of the model is here; the value is given back. */
  #taken(value) {
    const runtime = this.#runtime;
    try {
      switch (runtime.result("value_kind", value)) {
        case KIND.none:
          return null;
        case KIND.int:
          return this.#number("value_as_int", value, (at) => runtime.view.getBigInt64(at, true));
        case KIND.float:
          return this.#number("value_as_float", value, (at) => runtime.view.getFloat64(at, true));
        case KIND.str:
          return runtime.text(runtime.result("value_as_str", value));
        case KIND.shape:
          return this.#shape(value);
        case KIND.tensor:
          return new Tensor(runtime, runtime.result("value_as_tensor", value));
        case KIND.tuple: {
          const size = runtime.result("value_tuple_size", value);
          return Array.from({ length: size }, (_, i) => this.#taken(runtime.result("value_field", value, i)));
        }
        default:
          throw new RelaxideError("TypeError", "the model returns a value that has no form in JavaScript");
      }
    } finally {
      runtime.free("value", value);
    }
  }

  #number(name, value, read) {
    const runtime = this.#runtime;
    return runtime.within(() => {
      const at = runtime.place(8);
      runtime.call(name, value, at);
      const found = read(at);
      return typeof found === "bigint" && Number.isSafeInteger(Number(found)) ? Number(found) : found;
    });
  }

  #shape(value) {
    const runtime = this.#runtime;
    return runtime.within(() => {
      const [dims, ndim] = [runtime.place(4), runtime.place(4)];
      runtime.call("value_as_shape", value, dims, ndim);
      return { shape: runtime.dims(runtime.view.getUint32(dims, true), runtime.view.getUint32(ndim, true)) };
    });
  }
}

function describe(arg) {
  if (arg === null || arg === undefined) return String(arg);
  return typeof arg === "object" ? (arg.constructor?.name ?? "an object") : typeof arg;
}
