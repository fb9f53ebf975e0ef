import java.util.Arrays;
import relaxide.Model;
import relaxide.Results;
import relaxide.Tensor;

/** Runs a compiled classifier on one image of grey, and prints the likeliest class: {@code java -cp build/relaxide.jar Classify.java MODEL.so}. */
public class Classify {
    public static void main(String[] args) {
        float[] grey = new float[3 * 32 * 32];
        Arrays.fill(grey, 0.5f);
        try (Model model = Model.load(args[0]);
                Tensor image = Tensor.of(grey, 1, 3, 32, 32);
                Results results = model.run(image)) {
            float[] scores = results.get(0).floats();
            int best = 0;
            for (int i = 1; i < scores.length; ++i) if (scores[i] > scores[best]) best = i;
            System.out.printf("class %d of %d, with %.3f%n", best, scores.length, scores[best]);
        }
    }
}
