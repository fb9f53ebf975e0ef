package relaxide;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** A function of a model. */
public final class ModelFunction {
    private final Model model;
    private final String name;
    private final byte[] nativeName;
    private final List<Param> params;
    private final List<String> outputs;

    private ModelFunction(Model model, byte[] nativeName, List<Param> params, List<String> outputs) {
        this.model = model;
        this.name = Text.of(Arrays.copyOf(nativeName, nativeName.length - 1));
        this.nativeName = nativeName;
        this.params = Collections.unmodifiableList(params);
        this.outputs = Collections.unmodifiableList(outputs);
    }

    static ModelFunction read(Model model, long address, long index) {
        byte[] text = Native.modelFunctionName(address, index);
        byte[] name = Arrays.copyOf(text, text.length + 1);
        List<Param> params = new ArrayList<>();
        long count = Native.modelFunctionNumParams(address, index);
        for (long i = 0; i < count; ++i) params.add(Param.read(Native.modelParam(address, name, i)));
        List<String> outputs = new ArrayList<>();
        long named = Native.modelNumOutputNames(address, name);
        for (long i = 0; i < named; ++i) outputs.add(Text.of(Native.modelOutputName(address, name, i)));
        return new ModelFunction(model, name, params, outputs);
    }

    /**
     * The name.
     *
     * @return such as {@code main}
     */
    public String name() {
        return name;
    }

    /**
     * The parameters.
     *
     * @return in order
     */
    public List<Param> params() {
        return params;
    }

    /**
     * The names of the results.
     *
     * @return in order; empty where the file has none
     */
    public List<String> outputs() {
        return outputs;
    }

    /**
     * Calls the function with any values.
     *
     * <table><caption>Values</caption>
     * <tr><th>given</th><th>in the program</th><th>returned as</th></tr>
     * <tr><td>{@link Tensor}</td><td>tensor</td><td>{@link Tensor}, to be closed</td></tr>
     * <tr><td>integers, {@link Boolean}</td><td>integer</td><td>{@link Long}</td></tr>
     * <tr><td>{@link Float}, {@link Double}</td><td>number</td><td>{@link Double}</td></tr>
     * <tr><td>{@link String}</td><td>text</td><td>{@link String}</td></tr>
     * <tr><td>{@code long[]}</td><td>shape</td><td>{@code long[]}</td></tr>
     * <tr><td>{@link List}, {@code Object[]}</td><td>tuple</td><td>{@link List}</td></tr>
     * <tr><td>{@link Value}</td><td>anything else</td><td>{@link Value}, to be closed</td></tr>
     * <tr><td></td><td>none</td><td>null</td></tr>
     * </table>
     *
     * @param args a value for each parameter
     * @return the result
     * @throws RelaxideException.ValueError if the number of arguments, or a shape, does not fit
     * @throws RelaxideException.TypeError if a kind or the type of elements does not fit
     * @throws RelaxideException if the function fails, with the exception of a registered function as its cause
     * @throws IllegalStateException if the model or a tensor is closed
     */
    public Object call(Object... args) {
        long address = model.acquire();
        try {
            return Values.take(Values.with(Arrays.asList(args), "argument", handles -> Native.modelCall(address, nativeName, handles)));
        } finally {
            model.release();
        }
    }

    /**
     * Calls the function with values by the names of its parameters.
     *
     * @param args a value for each parameter
     * @return the result, as {@link #call(Object...)}
     * @throws RelaxideException.ValueError if one is missing, or there is no such parameter
     */
    public Object call(Map<String, ?> args) {
        return call(inOrder(args));
    }

    private Object[] inOrder(Map<String, ?> args) {
        List<String> names = params.stream().map(Param::name).collect(Collectors.toList());
        for (String given : args.keySet()) {
            if (!names.contains(given)) throw noSuch("has no parameter " + given, names);
        }
        for (String wanted : names) {
            if (!args.containsKey(wanted)) throw noSuch("wants " + wanted + ", which is not given", names);
        }
        return names.stream().map(args::get).toArray();
    }

    private RelaxideException noSuch(String what, List<String> names) {
        return new RelaxideException.ValueError(name + " " + what + ": its parameters are " + String.join(", ", names));
    }

    /**
     * Runs a function of tensors that returns one, or a tuple of them.
     *
     * @param inputs a tensor for each parameter
     * @return the results, which may be closed together
     * @throws RelaxideException.TypeError if it returns something else; {@link #call(Object...)} takes all
     * @throws RelaxideException as {@link #call(Object...)}
     */
    public Results run(Tensor... inputs) {
        return results(call((Object[]) inputs));
    }

    /**
     * Runs a function of tensors by the names of its parameters.
     *
     * @param inputs a tensor for each parameter
     * @return the results, as {@link #run(Tensor...)}
     * @throws RelaxideException.ValueError if one is missing, or there is no such parameter
     */
    public Results run(Map<String, Tensor> inputs) {
        return results(call(inOrder(inputs)));
    }

    private Results results(Object result) {
        List<?> all = result instanceof List ? (List<?>) result : Collections.singletonList(result);
        for (Object one : all) {
            if (one instanceof Tensor) continue;
            Values.close(result);
            throw new RelaxideException.TypeError(name + " returns " + (one == null ? "nothing" : "a " + one.getClass().getSimpleName())
                    + " besides tensors, which run() does not take: call() does");
        }
        return new Results(all.stream().map(one -> (Tensor) one).toArray(Tensor[]::new), outputs);
    }

    /** The name and the parameters. */
    @Override
    public String toString() {
        return name + params.stream().map(Param::toString).collect(Collectors.joining(", ", "(", ")"));
    }
}
