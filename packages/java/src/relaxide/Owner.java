package relaxide;

import java.lang.ref.Cleaner;

/** An object that owns a native handle until it is closed or collected. */
abstract class Owner implements AutoCloseable {
    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    private final String what;
    private volatile boolean closed;

    Owner(Handle handle, String what) {
        this.handle = handle;
        this.what = what;
        this.cleanable = Handle.CLEANER.register(this, handle);
    }

    /** The handle's address, valid until {@link #release}. */
    final long acquire() {
        if (closed) throw Handle.closed(what);
        return handle.acquire(what);
    }

    final void release() {
        handle.release();
    }

    /** The handle with one holder more, who releases it. */
    final Handle hold() {
        acquire();
        return handle;
    }

    /** Gives the memory back; calls that run, and buffers over it, keep it until they are done. Closing again does nothing. */
    @Override
    public final void close() {
        closed = true;
        cleanable.clean();
    }
}
