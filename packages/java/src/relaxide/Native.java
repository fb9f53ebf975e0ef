package relaxide;

import java.nio.ByteBuffer;

/**
 * The functions of {@code relaxide.h}, as they are: handles are addresses, text is UTF-8 with a NUL, failures are thrown. The file
 * {@code native/relaxide_java.c} implements them, against the header that javac makes of this class.
 */
final class Native {
    static {
        Library.load();
    }

    /** What {@link #enter} returns for a failure; no handle is this address. */
    static final long FAILED = -1;

    private Native() {}

    static native byte[] version();

    static native void setNumThreads(int count);

    static native void releaseCachedMemory();

    static native void errorSet(byte[] kind, byte[] message);

    /** The type as code, bits (from bit 8) and lanes (from bit 16). */
    static native int dtypeParse(byte[] name);

    static native byte[] dtypeName(int dtype);

    static native long tensorNew(long[] shape, int dtype);

    /** The tensor keeps the buffer. */
    static native long tensorBorrow(ByteBuffer data, long[] shape, int dtype);

    /** Address, type, type of the device, elements, bytes, rank, then dimensions and strides. */
    static native long[] tensorDescribe(long tensor);

    static native void tensorFree(long tensor);

    static native long bufferAddress(ByteBuffer buffer);

    static native ByteBuffer bufferAt(long address, long bytes);

    /** Copies bytes into an array of numbers or truth values. */
    static native void copyOut(long address, Object array, long bytes);

    /** Copies bytes out of an array of numbers or truth values. */
    static native void copyIn(long address, Object array, long bytes);

    static native long valueInt(long value);

    static native long valueFloat(double value);

    static native long valueStr(byte[] text);

    static native long valueShape(long[] dims);

    static native long valueTensor(long tensor);

    static native long valueTuple(long[] fields);

    static native int valueKind(long value);

    static native long valueAsInt(long value);

    static native double valueAsFloat(long value);

    static native byte[] valueAsStr(long value);

    static native long[] valueAsShape(long value);

    static native long valueAsTensor(long value);

    static native long valueTupleSize(long value);

    static native long valueField(long value, long index);

    static native void valueFree(long value);

    static native long modelLoad(byte[] path);

    static native long modelLoadWithWeights(byte[] path, byte[] weights);

    static native void modelFree(long model);

    static native long modelNumFunctions(long model);

    static native byte[] modelFunctionName(long model, long index);

    static native long modelFunctionNumParams(long model, long index);

    /** Name and annotation (bytes), type, rank and dimensions (numbers). */
    static native Object[] modelParam(long model, byte[] function, long index);

    static native long modelNumOutputNames(long model, byte[] function);

    static native byte[] modelOutputName(long model, byte[] function, long index);

    static native long modelCall(long model, byte[] function, long[] args);

    static native void functionRegister(byte[] name, PackedFunction function);

    static native void functionRemove(byte[] name);

    /** Runs a registered function: its result as a value (0 for none), or {@link #FAILED} with the last error set. Called from C. */
    static long enter(PackedFunction function, long[] args) {
        Object[] values = new Object[args.length];
        try {
            for (int i = 0; i < args.length; ++i) values[i] = Values.read(args[i]);
            Object result = function.call(values);
            return result == null ? 0 : Values.make(result, "the result of a registered function");
        } catch (Throwable thrown) {
            Failures.report(thrown);
            return FAILED;
        } finally {
            Values.close(values);
        }
    }

    /** The exception for the last error. Called from C. */
    static Throwable failure(byte[] kind, byte[] message) {
        return Failures.exception(Text.of(kind), Text.of(message));
    }
}
