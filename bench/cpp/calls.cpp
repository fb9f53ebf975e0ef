// What a call costs by relaxide.h and by relaxide.hpp, in turns. usage: calls MODEL.so (a function `double` of three numbers)
#include <relaxide.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

static const int CALLS = 100000, ROUNDS = 41;

template <typename Body>
static double nanoseconds(Body body) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < CALLS; ++i) body();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / CALLS;
}

static double median(std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

template <typename C, typename Cpp>
static void compare(const char *what, C c, Cpp cpp) {
    std::vector<double> by_c, by_cpp, above;
    for (int round = 0; round < ROUNDS; ++round) {
        // Who goes first takes turns too.
        double first = round % 2 ? nanoseconds(c) : nanoseconds(cpp);
        double second = round % 2 ? nanoseconds(cpp) : nanoseconds(c);
        by_c.push_back(round % 2 ? first : second);
        by_cpp.push_back(round % 2 ? second : first);
        above.push_back(by_cpp.back() - by_c.back());
    }
    std::printf("%-34s C %7.1f ns   C++ %7.1f ns   C++ above C: median %5.1f ns, by the least %5.1f ns\n", what, median(by_c), median(by_cpp), median(above),
                *std::min_element(by_cpp.begin(), by_cpp.end()) - *std::min_element(by_c.begin(), by_c.end()));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    RelaxideModel *model = nullptr;
    relaxide::check(relaxide_model_load(argv[1], &model));
    auto function = relaxide::Model(argv[1]).function("double");
    relaxide::Tensor x = relaxide::Tensor::zeros({3}, "float32");
    compare(
        "a function of a tensor",
        [&] {
            const RelaxideTensor *inputs[] = {x.handle()};
            RelaxideTensor *output = nullptr;
            size_t room = 1;
            if (relaxide_model_run(model, "double", inputs, 1, &output, &room) != 0) std::abort();
            relaxide_tensor_free(output);
        },
        [&] { function.run_one(x); });
    compare(
        "the same, by values",
        [&] {
            RelaxideValue *input = nullptr, *output = nullptr;
            if (relaxide_value_tensor(x.handle(), &input) != 0) std::abort();
            if (relaxide_model_call(model, "double", &input, 1, &output) != 0) std::abort();
            relaxide_value_free(input);
            relaxide_value_free(output);
        },
        [&] { function(x); });
    relaxide_model_free(model);
}
