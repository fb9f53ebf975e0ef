package relaxide;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Loads the native libraries: the runtime, then what connects it with Java. They are in the jar, from where they are written to a
 * private temporary folder and removed again once they are loaded. With the property {@code relaxide.library.path} the runtime is
 * taken from that folder, and the other library too if it is there.
 */
final class Library {
    private static final String RUNTIME = "librelaxide_runtime.so";
    private static final String BRIDGE = "librelaxide_java.so";
    private static final String PROPERTY = "relaxide.library.path";

    private Library() {}

    static void load() {
        String folder = System.getProperty(PROPERTY);
        if (folder == null) {
            extract(RUNTIME, BRIDGE);
            return;
        }
        Path runtime = Path.of(folder, RUNTIME).toAbsolutePath();
        if (!Files.isRegularFile(runtime)) {
            throw new UnsatisfiedLinkError(PROPERTY + " is " + folder + ", which has no " + RUNTIME);
        }
        System.load(runtime.toString());
        Path bridge = runtime.resolveSibling(BRIDGE);
        if (Files.isRegularFile(bridge)) System.load(bridge.toString());
        else extract(BRIDGE);
    }

    /** The folder of the jar for this machine. */
    private static String platform() {
        String arch = System.getProperty("os.arch");
        if (arch.equals("amd64")) arch = "x86_64";
        return System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-" + arch;
    }

    private static void extract(String... names) {
        try {
            Path folder = Files.createTempDirectory("relaxide-");
            try {
                for (String name : names) loadFrom(folder, name);
            } finally {
                for (String name : names) Files.deleteIfExists(folder.resolve(name));
                Files.delete(folder);
            }
        } catch (IOException error) {
            throw failure("cannot write the native library to a temporary folder", error);
        }
    }

    private static void loadFrom(Path folder, String name) throws IOException {
        String resource = "/native/" + platform() + "/" + name;
        Path file = folder.resolve(name);
        try (InputStream stream = Library.class.getResourceAsStream(resource)) {
            if (stream == null) {
                throw new UnsatisfiedLinkError("the jar has no " + resource.substring(1) + ": make one on such a machine, or for it (scripts/java --also), or set "
                        + PROPERTY + " to a folder with " + RUNTIME + " and " + BRIDGE);
            }
            Files.copy(stream, file);
        }
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError error) {
            throw failure("cannot load the native library", error);
        }
    }

    private static UnsatisfiedLinkError failure(String what, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(what + ": " + cause.getMessage()
                + "; java.io.tmpdir names another temporary folder, " + PROPERTY + " one that has the libraries");
        error.initCause(cause);
        return error;
    }
}
