package relaxide;

/**
 * A value of a kind that Java has no type for, such as a cache that a program makes: it is handed to other functions as it is.
 */
public final class Value extends Owner {
    Value(long address) {
        super(new Handle(address, Native::valueFree), "value");
    }
}
