package relaxide;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/** A registered function. It stays registered until this is closed, also when this is collected. */
public final class Registration implements AutoCloseable {
    private final byte[] name;
    private final AtomicBoolean closed = new AtomicBoolean();

    Registration(String name, PackedFunction function) {
        this.name = Text.of(name, "name");
        Native.functionRegister(this.name, Objects.requireNonNull(function, "function"));
    }

    /** Takes the function out; models that were loaded before keep it. Closing again does nothing. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) Native.functionRemove(name);
    }
}
