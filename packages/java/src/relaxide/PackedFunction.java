package relaxide;

/**
 * A function that models call by its name ({@code R.call_packed}, {@code R.call_dps_packed}). It runs in the thread that calls the
 * model, and in several at once if several call it.
 */
@FunctionalInterface
public interface PackedFunction {
    /**
     * Computes.
     *
     * @param args the values, of the types that {@link ModelFunction#call(Object...)} returns. Tensors among them are closed when the
     *     function returns; what it keeps, it has by {@link Tensor#share()}. The tensors that {@code R.call_dps_packed} gives to be
     *     written are the last ones.
     * @return a value that {@link ModelFunction#call(Object...)} takes, or null for none. A tensor stays the function's: to close it, or
     *     to leave it to the collector
     * @throws Exception makes the model's call fail, with this exception as the cause
     */
    Object call(Object... args) throws Exception;

    /**
     * Enters a function under a name for all models that are loaded from then on.
     *
     * @param name by which programs call it
     * @param function the function
     * @return closing it takes the function out again; models that were loaded before keep it
     * @throws RelaxideException if the name is taken
     */
    static Registration register(String name, PackedFunction function) {
        return new Registration(name, function);
    }
}
