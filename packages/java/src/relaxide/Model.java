package relaxide;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A compiled model, ready to run on the processor. Several threads may call it at once.
 *
 * <pre>{@code
 * try (Model model = Model.load("model.so");
 *         Tensor image = Tensor.zeros(DType.FLOAT32, 1, 3, 32, 32);
 *         Results results = model.run(image)) {
 *     float[] scores = results.get(0).floats();
 * }
 * }</pre>
 */
public final class Model extends Owner {
    private final List<ModelFunction> functions;

    private Model(long address) {
        super(new Handle(address, Native::modelFree), "model");
        List<ModelFunction> found = new ArrayList<>();
        for (long i = 0; i < Native.modelNumFunctions(address); ++i) found.add(ModelFunction.read(this, address, i));
        functions = Collections.unmodifiableList(found);
    }

    /**
     * Loads a shared library that Relaxide or TVM exported. Its code runs with all rights of the process.
     *
     * @param path the file
     * @return the model
     * @throws RelaxideException.OSError if the file is not there or cannot be read
     * @throws RelaxideException if it holds no model, is made for another processor, or calls functions that are not registered
     */
    public static Model load(String path) {
        return new Model(Native.modelLoad(Text.of(path, "path")));
    }

    /**
     * Loads a shared library as {@link #load(String)}.
     *
     * @param path the file
     * @return the model
     */
    public static Model load(Path path) {
        return load(path.toString());
    }

    /**
     * Loads a model whose weights are in a file of their own, which is not the one beside the library.
     *
     * @param path the file
     * @param weights the file with the weights (safetensors)
     * @return the model
     */
    public static Model load(Path path, Path weights) {
        return new Model(Native.modelLoadWithWeights(Text.of(path.toString(), "path"), Text.of(weights.toString(), "weights")));
    }

    /**
     * The functions of the model.
     *
     * @return in the file's order
     */
    public List<ModelFunction> functions() {
        return functions;
    }

    /**
     * A function.
     *
     * @param name its name
     * @return the function, which is usable as long as the model is open
     * @throws RelaxideException.ValueError if the model has none of that name
     */
    public ModelFunction function(String name) {
        for (ModelFunction function : functions) {
            if (function.name().equals(name)) return function;
        }
        String known = functions.stream().map(ModelFunction::name).collect(Collectors.joining(", "));
        throw new RelaxideException.ValueError("the model has no function " + name + ": it has " + known);
    }

    /**
     * Runs {@code main} on inputs in order.
     *
     * @param inputs a tensor for each parameter
     * @return its results
     * @see ModelFunction#run(Tensor...)
     */
    public Results run(Tensor... inputs) {
        return function("main").run(inputs);
    }

    /**
     * Runs {@code main} on inputs by their names.
     *
     * @param inputs a tensor for each parameter
     * @return its results
     * @see ModelFunction#run(Map)
     */
    public Results run(Map<String, Tensor> inputs) {
        return function("main").run(inputs);
    }
}
