import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import relaxide.DType;
import relaxide.Model;
import relaxide.ModelFunction;
import relaxide.PackedFunction;
import relaxide.Registration;
import relaxide.Relaxide;
import relaxide.RelaxideException;
import relaxide.Results;
import relaxide.Tensor;

/** What test_java.py runs: {@code Checks NAME FOLDER}, with the models and inputs in the folder. */
public class Checks {
    static Path folder;

    interface Check {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        folder = Path.of(args[1]);
        Map<String, Check> checks = Map.of("results", Checks::results, "inspect", Checks::inspect, "values", Checks::values, "errors",
                Checks::errors, "buffers", Checks::buffers, "closing", Checks::closing, "functions", Checks::functions, "growth",
                Checks::growth, "threads", Checks::threads);
        checks.get(args[0]).run();
        System.out.println("passed");
    }

    static void expect(boolean holds, Object... what) {
        if (!holds) throw new AssertionError(Arrays.deepToString(what));
    }

    /** The exception of that type that something throws. */
    static <T extends Throwable> T thrown(Class<T> type, Check check, String... words) {
        try {
            check.run();
        } catch (Throwable thrown) {
            expect(type.isInstance(thrown), type, thrown, String.valueOf(thrown.getCause()));
            for (String word : words) expect(thrown.getMessage().contains(word), word, thrown.getMessage());
            return type.cast(thrown);
        }
        throw new AssertionError("nothing was thrown, and " + type + " is expected");
    }

    static Model programs() throws Exception {
        register("test.java.echo", args -> args[0]);
        register("test.java.triple", Checks::triple);
        return Model.load(folder.resolve("programs.so"));
    }

    static void register(String name, PackedFunction function) {
        try {
            PackedFunction.register(name, function);
        } catch (RelaxideException taken) {
            expect(taken.getMessage().contains("already registered"), taken);
        }
    }

    /** Writes three times its input. */
    static Object triple(Object... args) {
        float[] x = ((Tensor) args[0]).floats();
        for (int i = 0; i < x.length; ++i) x[i] *= 3;
        ((Tensor) args[1]).put(x);
        return null;
    }

    static float[] read(String name) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(folder.resolve(name))).order(ByteOrder.nativeOrder());
        float[] numbers = new float[bytes.remaining() / 4];
        bytes.asFloatBuffer().get(numbers);
        return numbers;
    }

    static void write(String name, Tensor tensor) throws IOException {
        byte[] bytes = new byte[(int) tensor.byteSize()];
        tensor.buffer().get(bytes);
        Files.write(folder.resolve(name), bytes);
    }

    static void results() throws Exception {
        try (Model model = programs(); Tensor w = Tensor.of(read("w.bin"), 8, 4)) {
            for (int n : new int[] {1, 5, 33}) {
                try (Tensor x = Tensor.of(read("x" + n + ".bin"), n, 8); Results ys = model.run(x, w); Results same = model.run(Map.of("w", w, "x", x))) {
                    expect(ys.size() == 1 && Arrays.equals(ys.get(0).shape(), new long[] {n, 4}), ys);
                    expect(Arrays.equals(ys.get(0).floats(), same.get(0).floats()));
                    write("y" + n + ".bin", ys.get(0));
                }
            }
        }
        try (Model mlp = Model.load(folder.resolve("mlp.so").toString()); Tensor x = Tensor.of(read("image.bin"), 2, 64)) {
            try (Results results = mlp.run(Map.of("x", x))) {
                write("scores.bin", results.get("scores"));
                write("hidden.bin", results.get("h"));
                thrown(RelaxideException.ValueError.class, () -> results.get("scors"), "scors", "scores, h");
                thrown(IndexOutOfBoundsException.class, () -> results.get(2), "2");
            }
        }
    }

    static void inspect() throws Exception {
        try (Model model = programs()) {
            ModelFunction main = model.function("main");
            expect(main.toString().equals("main(x: R.Tensor((n, 8), dtype=\"float32\"), w: R.Tensor((8, 4), dtype=\"float32\"))"), main);
            expect(Arrays.equals(main.params().get(0).shape(), new long[] {-1, 8}));
            expect(main.params().get(1).dtype().equals(DType.FLOAT32) && main.params().get(1).name().equals("w"));
            expect(model.function("echo").params().get(0).shape() == null && model.function("echo").params().get(0).dtype() == null);
            expect(model.functions().size() == 5 && main.outputs().isEmpty(), model.functions());
            thrown(RelaxideException.ValueError.class, () -> model.function("mian"), "mian", "pair");
        }
        try (Model mlp = Model.load(folder.resolve("mlp.so"))) {
            expect(mlp.function("main").outputs().equals(List.of("scores", "h")), mlp.function("main").outputs());
        }
        expect(Relaxide.version().matches("\\d+\\.\\d+\\.\\d+"), Relaxide.version());
        expect(DType.of("float8_e4m3fn").toString().equals("float8_e4m3fn") && DType.of("float32").equals(DType.FLOAT32));
        expect(DType.BFLOAT16.toString().equals("bfloat16") && DType.of("float32x4").bits() == 128);
        thrown(RelaxideException.class, () -> DType.of("flaot32"), "flaot32");
    }

    static void values() throws Exception {
        try (Model model = programs(); Tensor x = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 3, 2)) {
            List<?> pair = (List<?>) model.function("pair").call(x);
            expect(Arrays.equals(((Tensor) pair.get(0)).floats(), new float[] {2, 4, 6, 8, 10, 12}));
            List<?> inner = (List<?>) pair.get(1);
            expect(Arrays.equals((long[]) inner.get(0), new long[] {3, 4}));
            expect(Arrays.equals(((Tensor) inner.get(1)).floats(), new float[] {1, 4, 9, 16, 25, 36}));
            thrown(RelaxideException.TypeError.class, () -> model.function("pair").run(x), "pair", "call()");

            List<?> same = (List<?>) model.function("same").call(7, new long[] {2, 9}, "Größe 🦀");
            expect(same.get(0).equals(7L) && Arrays.equals((long[]) same.get(1), new long[] {2, 9}) && same.get(2).equals("Größe 🦀"), same);
            ModelFunction echo = model.function("echo");
            expect(echo.call(Long.MIN_VALUE).equals(Long.MIN_VALUE) && echo.call(true).equals(1L) && echo.call(0.25f).equals(0.25));
            expect(echo.call(Map.of("x", "")).equals(""));
            long[] scalar = ((Tensor) echo.call(Tensor.of(new long[] {5}))).longs();
            expect(scalar.length == 1 && scalar[0] == 5);
            List<?> nested = (List<?>) echo.call(List.of(1, List.of(2.5, "three"), new Object[] {}));
            expect(nested.equals(List.of(1L, List.of(2.5, "three"), List.of())), nested);
            List<Long> many = LongStream.range(0, 40).boxed().collect(Collectors.toList());
            expect(echo.call(many).equals(many) && Arrays.equals((long[]) echo.call(new long[20]), new long[20]));
            thrown(RelaxideException.class, () -> echo.call(many.toArray()), "40");
            thrown(RelaxideException.TypeError.class, () -> echo.call(new StringBuilder()), "argument 0", "StringBuilder");
            thrown(RelaxideException.TypeError.class, () -> echo.call(Arrays.asList(1, null)), "field 1", "null");
            thrown(RelaxideException.ValueError.class, () -> echo.call("a\0b"), "NUL");
        }
    }

    static void errors() throws Exception {
        thrown(RelaxideException.OSError.class, () -> Model.load("no/such/model.so"), "no/such/model.so");
        thrown(RelaxideException.class, () -> Model.load(folder.resolve("x1.bin")), "x1.bin");
        try (Model model = programs(); Tensor x = Tensor.of(new float[8], 1, 8); Tensor w = Tensor.of(new float[32], 8, 4)) {
            thrown(RelaxideException.ValueError.class, () -> model.run(x, x), "w");
            thrown(RelaxideException.class, () -> model.run(x), "1", "2");
            RelaxideException dtype = thrown(RelaxideException.class, () -> model.run(x, Tensor.of(new double[32], 8, 4)), "float64");
            expect(!dtype.kind().isEmpty(), dtype);
            thrown(RelaxideException.ValueError.class, () -> model.run(Map.of("x", x, "v", w)), "no parameter v", "x, w");
            thrown(RelaxideException.ValueError.class, () -> model.run(Map.of("x", x)), "wants w");
            thrown(RelaxideException.class, () -> model.function("main").call(1, 2));
            expect(model.run(x, w).get(0).floats()[0] == 0.25f);
        }
        try (Model gather = Model.load(folder.resolve("gather.so")); Tensor x = Tensor.of(new float[] {1, 2, 3, 4}, 4)) {
            for (long hostile : new long[] {4, -5, 1L << 40, Long.MIN_VALUE}) {
                thrown(RelaxideException.IndexError.class, () -> gather.run(x, Tensor.of(new long[] {0, hostile}, 2)), "" + hostile);
                expect(gather.run(x, Tensor.of(new long[] {3, 0}, 2)).get(0).floats()[0] == 4);
            }
        }
        thrown(RelaxideException.ValueError.class, () -> Tensor.of(new float[5], 2, 3), "20", "[2, 3]", "24");
        thrown(RelaxideException.ValueError.class, () -> Tensor.zeros(DType.INT8, -1), "-1");
        thrown(RelaxideException.ValueError.class, () -> Tensor.zeros(DType.FLOAT32, 1L << 40, 1L << 40), "memory");
        thrown(RelaxideException.class, () -> Tensor.zeros(DType.INT8, 1L << 62));
        thrown(RelaxideException.TypeError.class, () -> Tensor.of(new int[] {1}, 1).floats(), "int32", "float32");
        thrown(RelaxideException.ValueError.class, () -> Relaxide.setNumThreads(0), "at least 1");
    }

    static void buffers() throws Exception {
        try (Model model = programs()) {
            ByteBuffer memory = Tensor.alignedBuffer(12);
            Tensor shared = Tensor.of(memory, DType.FLOAT32, 3);
            expect(shared.isShared());
            memory.putFloat(0, 7);
            expect(shared.floats()[0] == 7 && model.function("scaled").run(shared).get(0).floats()[0] == 21);
            shared.buffer().putFloat(4, 8);
            expect(memory.getFloat(4) == 8);

            ByteBuffer odd = ByteBuffer.allocateDirect(200).order(ByteOrder.nativeOrder());
            odd.position(odd.alignmentOffset(0, 64) == 0 ? 4 : 64 - odd.alignmentOffset(0, 64) + 4);
            odd.limit(odd.position() + 12).putFloat(odd.position(), 5);
            Tensor copied = Tensor.of(odd, DType.FLOAT32, 3);
            expect(!copied.isShared() && copied.floats()[0] == 5 && odd.remaining() == 12);
            expect(!Tensor.of(memory.asReadOnlyBuffer(), DType.FLOAT32, 3).isShared() && !Tensor.of(ByteBuffer.allocate(2), DType.UINT8, 2).isShared());
            thrown(RelaxideException.ValueError.class, () -> Tensor.of(memory, DType.FLOAT32, 4), "12", "16");

            // A tensor keeps the buffer that it lies in, and a buffer the memory of its tensor, when all else is gone.
            List<Tensor> kept = new ArrayList<>();
            List<java.nio.FloatBuffer> views = new ArrayList<>();
            for (int i = 0; i < 200; ++i) {
                ByteBuffer own = Tensor.alignedBuffer(1 << 16);
                own.asFloatBuffer().put(9, i);
                kept.add(Tensor.of(own, DType.FLOAT32, 1 << 14));
                Tensor result = (Tensor) model.function("echo").call(kept.get(i));
                Tensor made = Tensor.of(result.floats(), 1 << 14);
                views.add(made.buffer().asFloatBuffer());
                made.close();
                result.close();
                if (i % 50 == 0) System.gc();
            }
            System.gc();
            for (int i = 0; i < 200; ++i) expect(kept.get(i).floats()[9] == i && views.get(i).get(9) == i, i);
            expect(Tensor.zeros(DType.FLOAT32, 0, 3).buffer().capacity() == 0 && Tensor.of(new float[0], 0, 3).floats().length == 0);
            thrown(IndexOutOfBoundsException.class, () -> shared.buffer(8, 8), "12");
            expect(shared.buffer(4, 8).getFloat(0) == 8);
            expect(Arrays.equals(Tensor.of(new boolean[] {true, false}, 2).booleans(), new boolean[] {true, false}));
            expect(Tensor.of(new int[] {1, 2}, 1, 2).ints()[1] == 2 && Tensor.of(new byte[] {-1}, 1).bytes()[0] == -1);
        }
    }

    static void closing() throws Exception {
        Model model = programs();
        Tensor x = Tensor.of(new float[8], 1, 8);
        Tensor w = Tensor.of(new float[32], 8, 4);
        Results results = model.run(x, w);
        Tensor again = x.share();
        for (int i = 0; i < 2; ++i) x.close();
        thrown(IllegalStateException.class, () -> model.run(x, w), "tensor is closed");
        thrown(IllegalStateException.class, x::share, "closed");
        model.run(again, w).close();
        for (int i = 0; i < 2; ++i) model.close();
        thrown(IllegalStateException.class, () -> model.run(again, w), "model is closed");
        expect(results.get(0).floats().length == 4);
        for (int i = 0; i < 2; ++i) results.close();
        thrown(IllegalStateException.class, () -> results.get(0).buffer(), "closed");
    }

    static void functions() throws Exception {
        AtomicReference<PackedFunction> body = new AtomicReference<>(args -> args[0]);
        Registration echo = PackedFunction.register("test.java.echo", args -> body.get().call(args));
        thrown(RelaxideException.class, () -> Model.load(folder.resolve("programs.so")), "test.java.triple");
        Registration triple = PackedFunction.register("test.java.triple", Checks::triple);
        thrown(RelaxideException.class, () -> PackedFunction.register("test.java.echo", args -> null), "already registered");
        try (Model model = Model.load(folder.resolve("programs.so")); Tensor x = Tensor.of(new float[] {1, 2, 3}, 3)) {
            expect(Arrays.equals(model.function("scaled").run(x).get(0).floats(), new float[] {3, 6, 9}));
            ModelFunction call = model.function("echo");
            body.set(args -> null);
            expect(call.call(1) == null);
            Exception own = new IOException("the disk is gone");
            body.set(args -> {
                throw own;
            });
            RelaxideException failed = thrown(RelaxideException.OSError.class, () -> call.call(1), "the disk is gone");
            expect(failed.getCause() == own && failed.kind().equals("OSError"), failed);
            body.set(args -> ((List<?>) args[0]).get(1));
            RelaxideException cast = thrown(RelaxideException.TypeError.class, () -> call.call(1), "ClassCastException");
            expect(cast.getCause() instanceof ClassCastException);
            thrown(RelaxideException.IndexError.class, () -> call.call(List.of(1)));
            // What a failure leaves behind is no cause of the next one.
            expect(thrown(RelaxideException.class, () -> model.run(x, x)).getCause() == null);
            body.set(args -> new StringBuilder());
            thrown(RelaxideException.TypeError.class, () -> call.call(1), "result of a registered function", "StringBuilder");
            // Arguments are closed at the end, what is shared lives on; a function may call the model.
            AtomicReference<Tensor> lent = new AtomicReference<>();
            AtomicReference<Tensor> kept = new AtomicReference<>();
            body.set(args -> {
                lent.set((Tensor) args[0]);
                kept.set(lent.get().share());
                return model.function("scaled").run(lent.get()).get(0);
            });
            expect(((Tensor) call.call(x)).floats()[2] == 9 && kept.get().floats()[1] == 2);
            thrown(IllegalStateException.class, () -> lent.get().buffer(), "closed");
            body.set(args -> deeper(call, (Long) args[0]));
            expect(call.call(20).equals(20L));
            for (int i = 0; i < 2; ++i) echo.close();
            expect(call.call(3).equals(3L));
        }
        thrown(RelaxideException.class, () -> Model.load(folder.resolve("programs.so")), "test.java.echo");
        triple.close();
        thrown(NullPointerException.class, () -> PackedFunction.register("test.java.none", null));
    }

    /** Calls itself through the model. */
    static long deeper(ModelFunction call, long left) {
        return left == 0 ? 0 : 1 + (Long) call.call(left - 1);
    }

    static void threads() throws Exception {
        Model model = programs();
        Tensor w = Tensor.of(read("w.bin"), 8, 4);
        Tensor x = Tensor.of(read("x5.bin"), 5, 8);
        float[] expected = model.run(x, w).get(0).floats();
        List<Throwable> wrong = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; ++t) {
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        try (Results results = model.run(x, w)) {
                            expect(Arrays.equals(results.get(0).floats(), expected));
                        }
                    }
                } catch (IllegalStateException closed) {
                    if (!closed.getMessage().contains("is closed")) wrong.add(closed);
                } catch (Throwable other) {
                    wrong.add(other);
                }
            });
            thread.start();
            threads.add(thread);
        }
        Thread.sleep(200);
        // It is freed when the last call that runs is done.
        model.close();
        for (Thread thread : threads) thread.join();
        expect(wrong.isEmpty(), wrong);
    }

    static long resident() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("\\D", ""));
        }
        throw new IOException("/proc/self/status has no VmRSS");
    }

    /** As many calls as fit in two seconds, at most a million: some fail, some call a Java function. */
    static void growth() throws Exception {
        Relaxide.setNumThreads(1);
        try (Model model = programs(); Tensor x = Tensor.of(new float[8], 1, 8); Tensor w = Tensor.of(new float[32], 8, 4); Tensor y = Tensor.zeros(DType.FLOAT32, 3)) {
            // The virtual machine itself grows for a while. A leak grows in every part, by 16 bytes a call at least.
            int all = 0;
            double least = Double.MAX_VALUE;
            for (int part = 0; part < 8; ++part) {
                long before = resident();
                int calls = calls(model, x, w, y, 1_000_000 / 8, 250_000_000L);
                least = Math.min(least, (resident() - before) * 1024.0 / calls);
                all += calls;
            }
            System.out.printf("%d calls, at least %.1f bytes more for each%n", all, least);
            expect(least < 8, all, least);
        }
        // What is not closed is freed when it is collected: half a gigabyte in all, and never much at a time.
        float[] numbers = new float[1 << 16];
        long before = resident();
        for (int i = 0; i < 2000; ++i) {
            Tensor tensor = Tensor.of(numbers, 1 << 16);
            if (i % 2 == 0) tensor.buffer();
            if (i % 4 == 0) tensor.close();
            if (i % 50 == 0) System.gc();
        }
        expect(resident() - before < 250 << 10, resident() - before);
    }

    static int calls(Model model, Tensor x, Tensor w, Tensor y, int most, long nanoseconds) throws Exception {
        ModelFunction scaled = model.function("scaled");
        long end = System.nanoTime() + nanoseconds;
        int calls = 0;
        for (; calls < most && System.nanoTime() < end; ++calls) {
            if (calls % 8 == 0) scaled.run(y).close();
            else if (calls % 8 == 1) thrown(RelaxideException.class, () -> model.run(x, x));
            else model.run(x, w).close();
        }
        return calls;
    }
}
