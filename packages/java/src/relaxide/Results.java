package relaxide;

import java.util.AbstractList;
import java.util.List;
import java.util.RandomAccess;

/** The tensors that a function returned, by position or name. Closing it closes all of them. */
public final class Results extends AbstractList<Tensor> implements AutoCloseable, RandomAccess {
    private final Tensor[] tensors;
    private final List<String> names;

    Results(Tensor[] tensors, List<String> names) {
        this.tensors = tensors;
        this.names = names;
    }

    /** {@inheritDoc} */
    @Override
    public Tensor get(int index) {
        if (index < 0 || index >= tensors.length) {
            throw new IndexOutOfBoundsException("there is no result " + index + ": there are " + tensors.length);
        }
        return tensors[index];
    }

    /**
     * A result by the name that the model gives it.
     *
     * @param name the name
     * @return the tensor
     * @throws RelaxideException.ValueError if the file has no such name
     */
    public Tensor get(String name) {
        int index = names.indexOf(name);
        if (index < 0 || index >= tensors.length) {
            String known = names.isEmpty() ? "the file has no names of results" : "the results are " + String.join(", ", names);
            throw new RelaxideException.ValueError("there is no result " + name + ": " + known);
        }
        return tensors[index];
    }

    /** {@inheritDoc} */
    @Override
    public int size() {
        return tensors.length;
    }

    /** Closes all of them. Closing again does nothing. */
    @Override
    public void close() {
        for (Tensor tensor : tensors) tensor.close();
    }
}
