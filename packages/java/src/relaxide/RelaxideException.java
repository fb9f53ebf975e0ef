package relaxide;

/**
 * What the library refused, and why: the message is the C library's. Its subclasses are the kinds that programs tell apart; {@link
 * #kind()} says all. A model stays usable after each of them.
 */
public class RelaxideException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The name of the kind, such as {@code ValueError}. */
    private final String kind;

    RelaxideException(String kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /**
     * The kind under the name that all languages have.
     *
     * @return such as {@code ValueError} or {@code FileNotFoundError}
     */
    public String kind() {
        return kind;
    }

    /** A value of the right type that does not fit: a shape, a length, a name, a number of arguments. */
    public static final class ValueError extends RelaxideException {
        private static final long serialVersionUID = 1;

        ValueError(String kind, String message, Throwable cause) {
            super(kind, message, cause);
        }

        ValueError(String message) {
            this("ValueError", message, null);
        }
    }

    /** A value of the wrong type: a kind, or the type of a tensor's elements. */
    public static final class TypeError extends RelaxideException {
        private static final long serialVersionUID = 1;

        TypeError(String kind, String message, Throwable cause) {
            super(kind, message, cause);
        }

        TypeError(String message) {
            this("TypeError", message, null);
        }
    }

    /** A position outside of a sequence or a tensor. */
    public static final class IndexError extends RelaxideException {
        private static final long serialVersionUID = 1;

        IndexError(String kind, String message, Throwable cause) {
            super(kind, message, cause);
        }
    }

    /** A file that is not there or cannot be read. */
    public static final class OSError extends RelaxideException {
        private static final long serialVersionUID = 1;

        OSError(String kind, String message, Throwable cause) {
            super(kind, message, cause);
        }
    }

    /** Memory outside of Java's heap that could not be had. */
    public static final class MemoryError extends RelaxideException {
        private static final long serialVersionUID = 1;

        MemoryError(String kind, String message, Throwable cause) {
            super(kind, message, cause);
        }
    }

    static RelaxideException of(String kind, String message, Throwable cause) {
        switch (kind) {
            case "ValueError":
            case "ShapeError":
            case "ShapeGuardError":
            case "ArityError":
                return new ValueError(kind, message, cause);
            case "TypeError":
                return new TypeError(kind, message, cause);
            case "IndexError":
                return new IndexError(kind, message, cause);
            case "OSError":
            case "FileNotFoundError":
            case "PermissionError":
            case "IsADirectoryError":
                return new OSError(kind, message, cause);
            case "MemoryError":
                return new MemoryError(kind, message, cause);
            default:
                return new RelaxideException(kind, message, cause);
        }
    }
}
