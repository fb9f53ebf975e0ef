package relaxide;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Text as C has it: UTF-8 that ends with a NUL. */
final class Text {
    private Text() {}

    static byte[] of(String text, String what) {
        if (text.indexOf('\0') >= 0) {
            throw new RelaxideException.ValueError(what + " has a character NUL inside, with which text ends in C");
        }
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return Arrays.copyOf(bytes, bytes.length + 1);
    }

    static String of(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
