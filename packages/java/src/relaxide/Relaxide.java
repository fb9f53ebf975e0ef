package relaxide;

/** The library as a whole. */
public final class Relaxide {
    private Relaxide() {}

    /**
     * The version of the native library.
     *
     * @return {@code major.minor.patch}
     */
    public static String version() {
        return Text.of(Native.version());
    }

    /**
     * Sets how many threads kernels use, the calling one among them.
     *
     * @param count at least 1
     * @throws RelaxideException.ValueError if it is less
     */
    public static void setNumThreads(int count) {
        Native.setNumThreads(count);
    }

    /** Gives the memory to the system that is kept for later calls. */
    public static void releaseCachedMemory() {
        Native.releaseCachedMemory();
    }
}
