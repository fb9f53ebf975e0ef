// Runs a compiled classifier on one image of grey, and prints the likeliest class: examples/cpp/CMakeLists.txt builds it, or
//
//     c++ -O2 -o classify examples/cpp/classify.cpp $(pkg-config --cflags --libs relaxide)
#include <relaxide.hpp>

#include <algorithm>
#include <cstdio>

int main(int argc, char **argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: classify MODEL.so\n"), 2;
    try {
        relaxide::Model model(argv[1]);
        relaxide::Tensor image = relaxide::Tensor::zeros({1, 3, 32, 32}, "float32");
        std::fill_n(image.data<float>(), image.size(), 0.5f);
        relaxide::Tensor classes = model.function("main").run_one(image);
        const float *scores = classes.data<float>();
        const float *best = std::max_element(scores, scores + classes.size());
        std::printf("class %td of %zu, with %.3f\n", best - scores, classes.size(), *best);
    } catch (const relaxide::Error &error) {
        return std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what()), 1;
    }
}
