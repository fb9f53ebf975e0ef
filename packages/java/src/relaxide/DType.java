package relaxide;

/** The type of a tensor's elements: a family of numbers, the bits of one, and how many make an element. */
public final class DType {
    /** Truth values, a byte each. */
    public static final DType BOOL = new DType(6, 8, 1);
    /** Integers of 8 bits. */
    public static final DType INT8 = new DType(0, 8, 1);
    /** Integers of 16 bits. */
    public static final DType INT16 = new DType(0, 16, 1);
    /** Integers of 32 bits. */
    public static final DType INT32 = new DType(0, 32, 1);
    /** Integers of 64 bits. */
    public static final DType INT64 = new DType(0, 64, 1);
    /** Integers of 8 bits without a sign. */
    public static final DType UINT8 = new DType(1, 8, 1);
    /** Numbers of 16 bits by IEEE 754. */
    public static final DType FLOAT16 = new DType(2, 16, 1);
    /** The upper half of a {@link #FLOAT32}. */
    public static final DType BFLOAT16 = new DType(4, 16, 1);
    /** Numbers of 32 bits by IEEE 754. */
    public static final DType FLOAT32 = new DType(2, 32, 1);
    /** Numbers of 64 bits by IEEE 754. */
    public static final DType FLOAT64 = new DType(2, 64, 1);

    private final int code;
    private final int bits;
    private final int lanes;

    private DType(int code, int bits, int lanes) {
        this.code = code;
        this.bits = bits;
        this.lanes = lanes;
    }

    /**
     * The type of a name.
     *
     * @param name such as {@code float32}, {@code int8}, {@code bool} or {@code float8_e4m3fn}
     * @return the type
     * @throws RelaxideException if there is no such type
     */
    public static DType of(String name) {
        return unpack(Native.dtypeParse(Text.of(name, "the name of a type")));
    }

    static DType unpack(int packed) {
        return new DType(packed & 0xff, packed >>> 8 & 0xff, packed >>> 16);
    }

    int pack() {
        return code | bits << 8 | lanes << 16;
    }

    /**
     * The bits of an element.
     *
     * @return the bits of all its lanes
     */
    public int bits() {
        return bits * lanes;
    }

    /** The bytes of a compact tensor; an error if their number is beyond 64 bits. */
    long bytes(long[] shape) {
        try {
            long elements = 1;
            for (long dim : shape) {
                if (dim < 0) throw new RelaxideException.ValueError("a dimension of " + dim + " is negative");
                elements = Math.multiplyExact(elements, dim);
            }
            return Math.addExact(Math.multiplyExact(elements, bits()), 7) / 8;
        } catch (ArithmeticException error) {
            throw new RelaxideException.ValueError("a tensor of shape " + java.util.Arrays.toString(shape) + " is more than memory holds");
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DType && ((DType) other).pack() == pack();
    }

    @Override
    public int hashCode() {
        return pack();
    }

    /** The name, such as {@code float32}. */
    @Override
    public String toString() {
        return Text.of(Native.dtypeName(pack()));
    }
}
