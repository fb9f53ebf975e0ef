package relaxide;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Values of Java as those of the library, and back. */
final class Values {
    private static final int NONE = 0;
    private static final int INT = 1;
    private static final int FLOAT = 2;
    private static final int STR = 3;
    private static final int SHAPE = 4;
    private static final int TENSOR = 5;
    private static final int TUPLE = 6;

    private Values() {}

    /** A new value. */
    static long make(Object value, String what) {
        if (value instanceof Tensor) return ofOwner((Tensor) value, Native::valueTensor);
        if (value instanceof Value) return ofOwner((Value) value, Values::copy);
        if (value instanceof Float || value instanceof Double) return Native.valueFloat(((Number) value).doubleValue());
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return Native.valueInt(((Number) value).longValue());
        }
        if (value instanceof Boolean) return Native.valueInt((Boolean) value ? 1 : 0);
        if (value instanceof String) return Native.valueStr(Text.of((String) value, what));
        if (value instanceof long[]) return Native.valueShape((long[]) value);
        if (value instanceof Object[]) return tuple(Arrays.asList((Object[]) value), what);
        if (value instanceof List) return tuple((List<?>) value, what);
        throw new RelaxideException.TypeError(what + " is " + (value == null ? "null" : "a " + value.getClass().getName())
                + ": tensors, numbers, truth values, texts, shapes (long[]) and lists of these are values");
    }

    private static long ofOwner(Owner owner, java.util.function.LongUnaryOperator make) {
        long address = owner.acquire();
        try {
            return make.applyAsLong(address);
        } finally {
            owner.release();
        }
    }

    private static long tuple(List<?> fields, String what) {
        return with(fields, what + ", field", Native::valueTuple);
    }

    /** Another handle of the same value. */
    private static long copy(long value) {
        long tuple = Native.valueTuple(new long[] {value});
        try {
            return Native.valueField(tuple, 0);
        } finally {
            Native.valueFree(tuple);
        }
    }

    /** What becomes of values while they live. */
    interface Use {
        long of(long[] handles);
    }

    static long with(List<?> values, String what, Use use) {
        long[] handles = new long[values.size()];
        try {
            for (int i = 0; i < handles.length; ++i) handles[i] = make(values.get(i), what + " " + i);
            return use.of(handles);
        } finally {
            for (long handle : handles) Native.valueFree(handle);
        }
    }

    /** Reads a value and frees it. */
    static Object take(long handle) {
        try {
            return read(handle);
        } finally {
            Native.valueFree(handle);
        }
    }

    static Object read(long handle) {
        switch (Native.valueKind(handle)) {
            case NONE:
                return null;
            case INT:
                return Native.valueAsInt(handle);
            case FLOAT:
                return Native.valueAsFloat(handle);
            case STR:
                return Text.of(Native.valueAsStr(handle));
            case SHAPE:
                return Native.valueAsShape(handle);
            case TENSOR:
                return Tensor.take(Native.valueAsTensor(handle));
            case TUPLE:
                return fields(handle);
            default:
                return new Value(copy(handle));
        }
    }

    private static List<Object> fields(long handle) {
        long size = Native.valueTupleSize(handle);
        List<Object> fields = new ArrayList<>();
        for (long i = 0; i < size; ++i) fields.add(take(Native.valueField(handle, i)));
        return Collections.unmodifiableList(fields);
    }

    /** Closes what has to be closed, in tuples too. */
    static void close(Object value) {
        if (value instanceof Owner) ((Owner) value).close();
        else if (value instanceof List) ((List<?>) value).forEach(Values::close);
        else if (value instanceof Object[]) Arrays.asList((Object[]) value).forEach(Values::close);
    }
}
