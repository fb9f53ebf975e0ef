package relaxide;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;

/**
 * A native handle that several hold: the object that owns it, buffers over its memory, and each call that uses it. Who releases it
 * last frees it, so an object that is closed during a call in another thread lives until that call ends.
 */
final class Handle implements Runnable {
    /** Frees what was not closed, in a thread of its own. */
    static final Cleaner CLEANER = Cleaner.create();

    private final long address;
    private final LongConsumer free;
    private final AtomicInteger holders = new AtomicInteger(1);

    Handle(long address, LongConsumer free) {
        this.address = address;
        this.free = free;
    }

    /** The address, which is valid until {@link #release}. */
    long acquire(String what) {
        for (int now = holders.get(); now > 0; now = holders.get()) {
            if (holders.compareAndSet(now, now + 1)) return address;
        }
        throw closed(what);
    }

    static IllegalStateException closed(String what) {
        return new IllegalStateException("the " + what + " is closed");
    }

    void release() {
        if (holders.decrementAndGet() == 0) free.accept(address);
    }

    /** The owner is gone. */
    @Override
    public void run() {
        release();
    }
}
