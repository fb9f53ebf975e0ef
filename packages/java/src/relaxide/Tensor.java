package relaxide;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * A compact array of numbers in memory outside of Java's heap, row by row, in the machine's byte order.
 *
 * <p>It is closed, or freed when it is collected. Its buffers stay valid after it is closed. Several threads may read it at once.
 */
public final class Tensor extends Owner {
    /** Kernels expect addresses that are multiples of it, in bytes. */
    public static final int ALIGNMENT = 64;

    private final boolean shared;
    private volatile Layout layout;

    /** What does not change. */
    private static final class Layout {
        final long address;
        final DType dtype;
        final long size;
        final long bytes;
        final long[] shape;

        Layout(long[] described) {
            address = described[0];
            dtype = DType.unpack((int) described[1]);
            size = described[3];
            bytes = described[4];
            int rank = (int) described[5];
            shape = Arrays.copyOfRange(described, 6, 6 + rank);
            long[] strides = Arrays.copyOfRange(described, 6 + rank, 6 + 2 * rank);
            if (described[2] != 1) throw new RelaxideException.ValueError("the tensor is not in the memory of the processor");
            if (!compact(shape, strides)) {
                throw new RelaxideException.ValueError("the elements do not follow each other: strides of " + Arrays.toString(strides)
                        + " and a shape of " + Arrays.toString(shape));
            }
        }

        private static boolean compact(long[] shape, long[] strides) {
            long expected = 1;
            boolean compact = true;
            for (int i = shape.length - 1; i >= 0; --i) {
                if (shape[i] == 0) return true;
                compact &= shape[i] == 1 || strides[i] == expected;
                expected *= shape[i];
            }
            return compact;
        }
    }

    private Tensor(Handle handle, boolean shared) {
        super(handle, "tensor");
        this.shared = shared;
    }

    private Tensor(long address, boolean shared) {
        this(new Handle(address, Native::tensorFree), shared);
    }

    /** Takes a handle over. */
    static Tensor take(long address) {
        return new Tensor(address, false);
    }

    /**
     * A tensor of zeros with memory of its own.
     *
     * @param dtype the type of its elements
     * @param shape its dimensions; none for a single element
     * @return the tensor
     * @throws RelaxideException.ValueError if a dimension is negative or the tensor is more than memory holds
     */
    public static Tensor zeros(DType dtype, long... shape) {
        dtype.bytes(shape);
        return take(Native.tensorNew(shape, dtype.pack()));
    }

    /**
     * A tensor over the bytes of a buffer from its position to its limit. Bytes of a direct buffer that begin at a multiple of {@link
     * #ALIGNMENT} and may be written are shared: the tensor keeps the buffer, and each sees what is written to the other. All others are
     * copied; {@link #isShared()} says what was done.
     *
     * @param data the elements in the machine's byte order, as many bytes as the shape has
     * @param dtype their type
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the bytes are not as many as the shape has
     */
    public static Tensor of(ByteBuffer data, DType dtype, long... shape) {
        ByteBuffer bytes = data.slice();
        check(bytes.remaining(), dtype.bytes(shape), "bytes", dtype, shape);
        boolean aligned = bytes.isDirect() && Native.bufferAddress(bytes) % ALIGNMENT == 0;
        if (aligned && !bytes.isReadOnly() && bytes.hasRemaining()) {
            return new Tensor(Native.tensorBorrow(bytes, shape, dtype.pack()), true);
        }
        Tensor tensor = zeros(dtype, shape);
        tensor.buffer().put(bytes);
        return tensor;
    }

    /**
     * Memory that {@link #of(ByteBuffer, DType, long...)} shares.
     *
     * @param bytes how many
     * @return a direct buffer in the machine's byte order, at a multiple of {@link #ALIGNMENT}
     */
    public static ByteBuffer alignedBuffer(int bytes) {
        ByteBuffer room = ByteBuffer.allocateDirect(Math.addExact(bytes, ALIGNMENT - 1));
        int first = room.alignmentOffset(0, ALIGNMENT);
        return room.position(first == 0 ? 0 : ALIGNMENT - first).limit(room.position() + bytes).slice().order(ByteOrder.nativeOrder());
    }

    /**
     * A copy of numbers, as {@link DType#FLOAT32}.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the numbers are not as many as the shape has
     */
    public static Tensor of(float[] values, long... shape) {
        return copy(values, values.length, DType.FLOAT32, shape);
    }

    /**
     * A copy of numbers, as {@link DType#FLOAT64}.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the numbers are not as many as the shape has
     */
    public static Tensor of(double[] values, long... shape) {
        return copy(values, values.length, DType.FLOAT64, shape);
    }

    /**
     * A copy of integers, as {@link DType#INT64}.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the integers are not as many as the shape has
     */
    public static Tensor of(long[] values, long... shape) {
        return copy(values, values.length, DType.INT64, shape);
    }

    /**
     * A copy of integers, as {@link DType#INT32}.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the integers are not as many as the shape has
     */
    public static Tensor of(int[] values, long... shape) {
        return copy(values, values.length, DType.INT32, shape);
    }

    /**
     * A copy of integers, as {@link DType#INT8}. For {@link DType#UINT8} give a buffer.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the integers are not as many as the shape has
     */
    public static Tensor of(byte[] values, long... shape) {
        return copy(values, values.length, DType.INT8, shape);
    }

    /**
     * A copy of truth values, as {@link DType#BOOL}.
     *
     * @param values as many as the shape has
     * @param shape the dimensions
     * @return the tensor
     * @throws RelaxideException.ValueError if the values are not as many as the shape has
     */
    public static Tensor of(boolean[] values, long... shape) {
        return copy(values, values.length, DType.BOOL, shape);
    }

    private static Tensor copy(Object array, long length, DType dtype, long[] shape) {
        long bytes = dtype.bytes(shape);
        check(length * dtype.bits() / 8, bytes, "bytes", dtype, shape);
        Tensor tensor = zeros(dtype, shape);
        Native.copyIn(tensor.layout().address, array, bytes);
        return tensor;
    }

    /**
     * Writes all elements of a {@link DType#FLOAT32}. For other types, {@link #buffer()} may be written to.
     *
     * @param values as many as the tensor has
     * @throws RelaxideException.TypeError if the elements are of another type
     * @throws RelaxideException.ValueError if the numbers are not as many
     */
    public void put(float[] values) {
        if (length("put", DType.FLOAT32) != values.length) {
            throw new RelaxideException.ValueError(values.length + " elements are given, and the tensor has " + size());
        }
        Layout known = layout();
        acquire();
        try {
            Native.copyIn(known.address, values, known.bytes);
        } finally {
            release();
        }
    }

    private static void check(long given, long expected, String what, DType dtype, long[] shape) {
        if (given != expected) {
            throw new RelaxideException.ValueError(given + " " + what + " are given, and " + dtype + " of shape " + Arrays.toString(shape)
                    + " has " + expected);
        }
    }

    private Layout layout() {
        Layout known = layout;
        if (known != null) return known;
        long address = acquire();
        try {
            return layout = new Layout(Native.tensorDescribe(address));
        } finally {
            release();
        }
    }

    /**
     * The type of the elements.
     *
     * @return the type
     */
    public DType dtype() {
        return layout().dtype;
    }

    /**
     * The dimensions.
     *
     * @return a copy; empty for a single element
     */
    public long[] shape() {
        return layout().shape.clone();
    }

    /**
     * The number of elements.
     *
     * @return the product of the dimensions
     */
    public long size() {
        return layout().size;
    }

    /**
     * The memory that the elements take.
     *
     * @return bytes
     */
    public long byteSize() {
        return layout().bytes;
    }

    /**
     * Whether the elements are in a buffer of the caller's, and not in memory of the tensor's own.
     *
     * @return true if {@link #of(ByteBuffer, DType, long...)} copied nothing
     */
    public boolean isShared() {
        return shared;
    }

    /**
     * The elements, without a copy: what is written to the buffer is written to the tensor. The buffer keeps the memory, also after the
     * tensor is closed.
     *
     * @return a direct buffer in the machine's byte order
     * @throws RelaxideException.ValueError if the tensor has more bytes than a buffer holds (2 GiB)
     * @throws IllegalStateException if the tensor is closed
     */
    public ByteBuffer buffer() {
        long bytes = layout().bytes;
        if (bytes > Integer.MAX_VALUE) {
            throw new RelaxideException.ValueError("the tensor has " + bytes + " bytes, and a buffer holds " + Integer.MAX_VALUE
                    + ": take it in parts, with buffer(first, bytes)");
        }
        return buffer(0, (int) bytes);
    }

    /**
     * A part of the elements, without a copy.
     *
     * @param first the first byte
     * @param bytes how many bytes
     * @return a direct buffer in the machine's byte order
     * @throws IndexOutOfBoundsException if they are not inside of the tensor
     * @throws IllegalStateException if the tensor is closed
     */
    public ByteBuffer buffer(long first, int bytes) {
        Layout known = layout();
        if (first < 0 || bytes < 0 || first > known.bytes - bytes) {
            throw new IndexOutOfBoundsException(bytes + " bytes from " + first + " are not inside of " + known.bytes);
        }
        if (bytes == 0) return ByteBuffer.allocateDirect(0).order(ByteOrder.nativeOrder());
        Handle held = hold();
        boolean kept = false;
        try {
            ByteBuffer buffer = Native.bufferAt(known.address + first, bytes);
            Handle.CLEANER.register(buffer, held);
            kept = true;
            return buffer.order(ByteOrder.nativeOrder());
        } finally {
            if (!kept) held.release();
        }
    }

    /**
     * A copy of the elements.
     *
     * @return the numbers of a {@link DType#FLOAT32}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public float[] floats() {
        float[] array = new float[length("floats", DType.FLOAT32)];
        return copyTo(array);
    }

    /**
     * A copy of the elements.
     *
     * @return the numbers of a {@link DType#FLOAT64}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public double[] doubles() {
        double[] array = new double[length("doubles", DType.FLOAT64)];
        return copyTo(array);
    }

    /**
     * A copy of the elements.
     *
     * @return the integers of a {@link DType#INT64}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public long[] longs() {
        long[] array = new long[length("longs", DType.INT64)];
        return copyTo(array);
    }

    /**
     * A copy of the elements.
     *
     * @return the integers of a {@link DType#INT32}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public int[] ints() {
        int[] array = new int[length("ints", DType.INT32)];
        return copyTo(array);
    }

    /**
     * A copy of the elements.
     *
     * @return the integers of a {@link DType#INT8}, or the bytes of a {@link DType#UINT8}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public byte[] bytes() {
        byte[] array = new byte[length("bytes", DType.INT8, DType.UINT8)];
        return copyTo(array);
    }

    /**
     * A copy of the elements.
     *
     * @return the truth values of a {@link DType#BOOL}
     * @throws RelaxideException.TypeError if the elements are of another type
     */
    public boolean[] booleans() {
        boolean[] array = new boolean[length("booleans", DType.BOOL)];
        return copyTo(array);
    }

    private int length(String what, DType... types) {
        Layout known = layout();
        if (!Arrays.asList(types).contains(known.dtype)) {
            throw new RelaxideException.TypeError(what + "() is for " + types[0] + " and the elements are " + known.dtype
                    + ": buffer() has the bytes of every type");
        }
        if (known.size > Integer.MAX_VALUE - 8) {
            throw new RelaxideException.ValueError(known.size + " elements are more than an array holds: take them in parts, with buffer(first, bytes)");
        }
        return (int) known.size;
    }

    private <T> T copyTo(T array) {
        Layout known = layout();
        acquire();
        try {
            Native.copyOut(known.address, array, known.bytes);
        } finally {
            release();
        }
        return array;
    }

    /**
     * Another tensor over the same memory, to be closed on its own: what a registered function keeps of its arguments.
     *
     * @return the tensor
     * @throws IllegalStateException if this one is closed
     */
    public Tensor share() {
        return new Tensor(hold(), shared);
    }

    /** The type and the dimensions. */
    @Override
    public String toString() {
        return "Tensor(" + dtype() + ", " + Arrays.toString(layout().shape) + ")";
    }
}
