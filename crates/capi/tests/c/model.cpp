// Uses the C++ cover. usage: model ADD.so DYNAMIC.so
#include "relaxide.hpp"

#include <cstdio>
#include <cstdlib>

static void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "%s does not hold\n", what);
        std::exit(1);
    }
}
#define EXPECT(condition) expect(condition, #condition)

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    try {
        relaxide::Model add(argv[1]);
        EXPECT(add.functions() == std::vector<std::string>{"main"});
        relaxide::Tensor x = relaxide::Tensor::zeros({3, 4}, "float32");
        for (int i = 0; i < 12; ++i) x.data<float>()[i] = static_cast<float>(i);
        std::vector<relaxide::Tensor> results = add.run("main", {x});
        EXPECT(results.size() == 1 && results[0].shape() == x.shape() && results[0].data<float>()[11] == 22.0f);

        relaxide::Model dynamic(argv[2]);
        alignas(64) float memory[8] = {};
        relaxide::Tensor borrowed = relaxide::Tensor::borrow(memory, {2, 4}, "float32");
        relaxide::Value pair = dynamic.call("main", {borrowed, borrowed});
        EXPECT(pair.kind() == RELAXIDE_TUPLE && pair.tuple_size() == 2);
        EXPECT((pair.field(0).as_tensor().shape() == std::vector<int64_t>{4, 2, 2}));
        EXPECT(pair.field(1).kind() == RELAXIDE_SHAPE);
        EXPECT(relaxide::Value::integer(3).as_int() == 3 && relaxide::Value::number(0.5).as_float() == 0.5);
        EXPECT(relaxide::Value::text("text").as_str() == "text");
    } catch (const relaxide::Error &error) {
        std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
        return 1;
    }
    try {
        relaxide::Model("no/such/model.so");
        return 1;
    } catch (const relaxide::Error &error) {
        EXPECT(error.kind() == "FileNotFoundError");
    }
    std::puts("passed");
}
