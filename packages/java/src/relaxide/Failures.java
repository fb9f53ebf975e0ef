package relaxide;

/** Errors on their way between Java and C. */
final class Failures {
    /** What a registered function threw, until the call that it fails throws in the same thread. */
    private static final ThreadLocal<Throwable> THROWN = new ThreadLocal<>();

    private Failures() {}

    /** Makes what a registered function threw the last error. */
    static void report(Throwable thrown) {
        String message = message(thrown).replace("\0", "");
        Native.errorSet(Text.of(kind(thrown), "kind"), Text.of(message, "message"));
        THROWN.set(thrown);
    }

    static RelaxideException exception(String kind, String message) {
        Throwable thrown = THROWN.get();
        THROWN.remove();
        boolean caused = thrown != null && message.contains(message(thrown));
        return RelaxideException.of(kind, message, caused ? thrown : null);
    }

    private static String message(Throwable thrown) {
        String message = thrown instanceof RelaxideException ? thrown.getMessage() : thrown.toString();
        return message == null ? thrown.getClass().getName() : message;
    }

    private static String kind(Throwable thrown) {
        if (thrown instanceof RelaxideException) return ((RelaxideException) thrown).kind();
        if (thrown instanceof IndexOutOfBoundsException) return "IndexError";
        if (thrown instanceof IllegalArgumentException) return "ValueError";
        if (thrown instanceof ClassCastException) return "TypeError";
        if (thrown instanceof UnsupportedOperationException) return "NotImplementedError";
        if (thrown instanceof OutOfMemoryError) return "MemoryError";
        if (thrown instanceof java.io.IOException) return "OSError";
        return "RuntimeError";
    }
}
