package relaxide;

/** A parameter of a model's function. */
public final class Param {
    private final String name;
    private final String annotation;
    private final DType dtype;
    private final long[] shape;

    Param(String name, String annotation, DType dtype, long[] shape) {
        this.name = name;
        this.annotation = annotation;
        this.dtype = dtype;
        this.shape = shape;
    }

    static Param read(Object[] described) {
        long[] numbers = (long[]) described[2];
        DType dtype = DType.unpack((int) numbers[0]);
        long[] shape = numbers[1] < 0 ? null : java.util.Arrays.copyOfRange(numbers, 2, numbers.length);
        return new Param(Text.of((byte[]) described[0]), Text.of((byte[]) described[1]), dtype.bits() == 0 ? null : dtype, shape);
    }

    /**
     * The name.
     *
     * @return as the model has it
     */
    public String name() {
        return name;
    }

    /**
     * The type as TVMScript.
     *
     * @return such as {@code R.Tensor((n, 3), dtype="float32")}; empty if it is not known
     */
    public String annotation() {
        return annotation;
    }

    /**
     * The type of a tensor's elements.
     *
     * @return null if it is not known
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * The dimensions of a tensor.
     *
     * @return -1 for those that each call may choose; null if their number is not known
     */
    public long[] shape() {
        return shape == null ? null : shape.clone();
    }

    /** The name and the type. */
    @Override
    public String toString() {
        return annotation.isEmpty() ? name : name + ": " + annotation;
    }
}
