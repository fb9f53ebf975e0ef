// What clients find in a model that was loaded for them: its functions, those of the virtual machine around it, and a clock.

import { RelaxideError } from "./memory.js";
import { Tensor } from "./tensor.js";

/** Functions of a virtual machine that have no meaning for a model in a module. */
const ABSENT = ["invoke_closure", "save_function", "set_instrument"];

/** A function of a module; null if it has none of that name. */
export function moduleFunction(from, name) {
  if (!from?.isModule) throw new RelaxideError("TypeError", "a module is expected");
  const { model } = from;
  if (ABSENT.includes(name)) {
    return () => {
      throw new RelaxideError("NotImplementedError", `${name} is not there for models in WebAssembly`);
    };
  }
  const machine = MACHINE[name];
  if (machine !== undefined) return (...args) => machine(from, ...args);
  return model.functions.some((own) => own.name === name) ? (...args) => called(model, name, args) : null;
}

/** A model's function, with tensors as clients send them. */
function called(model, name, args) {
  const made = [];
  try {
    const values = args.map((arg) => {
      if (arg?.data === undefined) return arg;
      made.push(model.tensor(arg.dtype, arg.shape, arg.data));
      return made.at(-1);
    });
    return model.call(name, ...values);
  } finally {
    made.forEach((tensor) => tensor.dispose());
  }
}

/** What `relax.VirtualMachine` asks of the other side. */
const MACHINE = {
  vm_load_executable: (from) => from,
  vm_initialization: () => null,
  // Tensors are copied: a client may write to its own meanwhile.
  set_input: (from, name, ...args) => void from.inputs.set(name, args.map((arg) => (arg?.data === undefined ? arg : { dtype: arg.dtype, shape: arg.shape, data: arg.data }))),
  invoke_stateful: (from, name) => {
    const inputs = from.inputs.get(name);
    if (inputs === undefined) throw new RelaxideError("ValueError", `No set_input() call has been made for ${name}`);
    from.results.set(name, kept(called(from.model, name, inputs)));
    return null;
  },
  get_output_arity: (from, name, ...at) => {
    const result = resultAt(from, name, at);
    return Array.isArray(result) ? result.length : -1;
  },
  get_output: (from, name, ...at) => resultAt(from, name, at),
  get_function_arity: ({ model }, name) => model.function(name).params.length,
  get_function_param_name: ({ model }, name, i) => {
    const param = model.function(name).params[i];
    if (param === undefined) throw new RelaxideError("IndexError", `${name} has no parameter ${i}`);
    return param.name;
  },
};

function resultAt({ results }, name, at) {
  if (!results.has(name)) throw new RelaxideError("ValueError", `No invoke_stateful() call has been made for ${name}`);
  return at.reduce((result, i) => {
    if (!Array.isArray(result) || result[i] === undefined) throw new RelaxideError("IndexError", `a result of ${name} has no field ${i}`);
    return result[i];
  }, results.get(name));
}

/** A result that stays where it is asked for more than once. */
function kept(result) {
  if (Array.isArray(result)) return result.map(kept);
  if (!(result instanceof Tensor)) return result;
  const copy = { dtype: result.dtype, shape: [...result.shape], data: result.toArray() };
  result.dispose();
  return copy;
}

/** TVM's time evaluator: a function that calls another again and again and gives seconds for a call, as bytes of doubles. */
export function timer(measured, name, [number, repeat, minRepeat, zeroLimit, cooldown, untilCooldown]) {
  if (typeof measured !== "function") throw new RelaxideError("ValueError", `Cannot find ${name}`);
  return async (...args) => {
    const once = async () => dispose(await measured(...args));
    await once();
    const seconds = new Float64Array(repeat);
    let count = Math.max(1, number);
    for (let i = 0; i < repeat; i++) {
      let [took, zeros] = [0, 0];
      for (let isFirst = true; isFirst || (took < minRepeat && zeros < zeroLimit); isFirst = false) {
        if (!isFirst) count = Math.max(Math.ceil((count * minRepeat) / Math.max(took, 1e-3)), Math.ceil(count * 1.618));
        const begin = performance.now();
        for (let k = 0; k < count; k++) await once();
        took = performance.now() - begin;
        zeros += took === 0 ? 1 : 0;
      }
      seconds[i] = took / 1000 / count;
      if (cooldown > 0 && (i + 1) % untilCooldown === 0) await new Promise((resolve) => setTimeout(resolve, cooldown));
    }
    return new Uint8Array(seconds.buffer);
  };
}

function dispose(result) {
  if (Array.isArray(result)) result.forEach(dispose);
  else if (result instanceof Tensor) result.dispose();
}
