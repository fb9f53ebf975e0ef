/**
 * Runs models that Relaxide or TVM compiled to shared libraries.
 *
 * <p>{@link relaxide.Model} loads a file and calls its functions, {@link relaxide.Tensor} holds arrays, {@link
 * relaxide.PackedFunction} is a Java function that models call. Failures are {@link relaxide.RelaxideException}s with the kinds and
 * messages of the C library. What has memory outside of Java's heap is {@link java.lang.AutoCloseable}; what is not closed is freed
 * when it is collected. Everything may be used from several threads; who writes to a tensor's elements must be alone with it.
 */
package relaxide;
