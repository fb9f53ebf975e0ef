// Checks of relaxide.hpp against the models of test_cpp.py. usage: checks FOLDER
#include "relaxide.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>

static std::string folder;

static relaxide::Model plain() { return relaxide::Model(folder + "/plain.so"); }
static relaxide::Model scaled() { return relaxide::Model(folder + "/scaled.so"); }
static relaxide::Function echo_function() { return relaxide::Model(folder + "/echo.so").function("echo"); }

using relaxide::Tensor;
using relaxide::Value;

static void expect(bool holds, const char *what, int line) {
    if (!holds) {
        std::fprintf(stderr, "line %d: %s does not hold\n", line, what);
        std::exit(1);
    }
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

template <typename Body>
static std::string failure(const std::string &kind, Body body) {
    try {
        body();
    } catch (const relaxide::Error &error) {
        if (error.kind() != kind) std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
        EXPECT(error.kind() == kind);
        return error.what();
    }
    EXPECT(!"an exception");
    return "";
}

static bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

static Tensor numbers(const std::vector<int64_t> &shape) {
    Tensor made = Tensor::zeros(shape, "float32");
    std::iota(made.data<float>(), made.data<float>() + made.size(), 1.0f);
    return made;
}

static long resident_pages() {
    long all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
}

static double twice(double x) { return 2 * x; }

/// Takes and gives one value; what it is called with is what it says.
template <typename T>
static void round_trip(T value) {
    auto same = relaxide::register_function("test.cpp.echo", [](T x) { return x; });
    EXPECT(relaxide::detail::Native<T>::of(echo_function()(value)) == value);
}

static void lambdas() {
    struct Counted {
        std::shared_ptr<int> alive;
        Tensor operator()(const Tensor &x, double by, int64_t plus) const {
            Tensor y = Tensor::zeros(x.shape(), "float32");
            for (size_t i = 0; i < x.size(); ++i) y.data<float>()[i] = x.data<float>()[i] * float(by) + float(plus);
            return y;
        }
    };
    std::shared_ptr<int> alive = std::make_shared<int>(0);
    {
        auto scale = relaxide::register_function("test.cpp.scale", Counted{alive});
        auto main = scaled().function("main");
        Tensor y = main.run_one(numbers({3}));
        EXPECT(y.data<float>()[2] == 3 * 0.5f + 7);
        EXPECT(has(failure("RuntimeError", [&] { relaxide::register_function("test.cpp.scale", twice); }), "test.cpp.scale"));
        // The registration goes, and the model that has found the function keeps it.
        { auto gone = std::move(scale); }
        EXPECT(main.run_one(numbers({3})).data<float>()[0] == 7.5f && alive.use_count() == 2);
    }
    EXPECT(alive.use_count() == 1);
}

static void values() {
    {
        auto any = relaxide::register_function("test.cpp.echo", [](const Value &x) { return x; });
        EXPECT(echo_function()(3).as_int() == 3);
    }
    EXPECT(has(failure("ValueError", [] { echo_function(); }), "test.cpp.echo"));
    // A model looks functions up when it is loaded, so that each kind has a model of its own.
    round_trip<int64_t>(-5);
    round_trip<uint8_t>(255);
    round_trip<bool>(true);
    round_trip<double>(0.1);
    round_trip<std::string>("text");
    round_trip<std::vector<int64_t>>({2, 3});
    round_trip<std::vector<std::string>>({"a", "b"});
    {
        auto plain = relaxide::register_function("test.cpp.echo", twice);
        auto function = echo_function();
        EXPECT(function(4).as_float() == 8.0 && function(0.25f).as_float() == 0.5);
        EXPECT(has(failure("TypeError", [&] { function(std::string("four")); }), "expected `float`"));
    }
    {
        auto narrow = relaxide::register_function("test.cpp.echo", [](int8_t x) { return x; });
        EXPECT(has(failure("ValueError", [&] { echo_function()(300); }), "300"));
    }
    {
        auto several = relaxide::register_function("test.cpp.echo", [](int64_t, int64_t) {});
        EXPECT(has(failure("TypeError", [&] { echo_function()(1); }), "takes 2 arguments, not 1"));
    }
}

template <typename Thrown>
static std::string thrown(const std::string &kind, Thrown what) {
    auto fails = relaxide::register_function("test.cpp.echo", [what](const Value &) -> Value { throw what; });
    return failure(kind, [&] { echo_function()(1); });
}

static void failures() {
    EXPECT(has(thrown("KeyError", relaxide::Error("KeyError", "no such key")), "no such key"));
    EXPECT(has(thrown("ValueError", std::invalid_argument("too small")), "too small"));
    EXPECT(has(thrown("IndexError", std::out_of_range("at 9")), "at 9"));
    EXPECT(has(thrown("RuntimeError", std::runtime_error("no luck")), "no luck"));
    thrown("MemoryError", std::bad_alloc());
    EXPECT(has(thrown("RuntimeError", 7), "no std::exception"));
    relaxide::Model model = plain();
    EXPECT(has(failure("ValueError", [&] { model.function("nothing")(); }), "nothing"));
    EXPECT(has(failure("ValueError", [&] { model.function("double").run_one(numbers({2, 2})); }), "double"));
    EXPECT(has(failure("ValueError", [&] { model.function("pair").run({numbers({3})}, 1); }), "2"));
    failure("FileNotFoundError", [] { relaxide::Model("no/such/model.so"); });
}

static void ownership() {
    Tensor x = numbers({3});
    Tensor same = x;
    same.data<float>()[0] = 9;
    EXPECT(x.data<float>()[0] == 9 && x.data<float>() == same.data<float>());
    Tensor moved = std::move(same);
    same = x;
    EXPECT(same.data<float>() == moved.data<float>());
    // A function outlives its model's object.
    auto pair = plain().function("pair");
    std::vector<Tensor> both = pair.run({x});
    EXPECT(both.size() == 2 && both[1].data<float>()[1] == 4);
    Value tuple = pair(x);
    Value copy = tuple;
    tuple = Value::tuple({Value::integer(1), copy.field(0), Value::shape({4})});
    EXPECT(tuple.tuple_size() == 3 && tuple.field(2).as_shape() == std::vector<int64_t>{4} && copy.tuple_size() == 2);
    // More arguments than a row has room for.
    std::vector<Value> many(20, Value::integer(5));
    EXPECT(Value::tuple(many).field(19).as_int() == 5);
}

static void threads() {
    auto echo = relaxide::register_function("test.cpp.echo", [](int64_t x) { return x + 1; });
    auto function = echo_function();
    std::vector<std::thread> all;
    for (int64_t t = 0; t < 4; ++t)
        all.emplace_back([&function, t] {
            for (int64_t i = 0; i < 5000; ++i) EXPECT(function(t * 10000 + i).as_int() == t * 10000 + i + 1);
        });
    for (std::thread &each : all) each.join();
}

/// A million calls, with results and callbacks, leave the memory as it was.
static void calls() {
    auto echo = relaxide::register_function("test.cpp.echo", [](const Tensor &x) { return x; });
    auto main = plain().function("double"), back = echo_function();
    Tensor x = numbers({3});
    long before = 0;
    for (int i = 0; i < 500000; ++i) {
        EXPECT(main.run_one(x).data<float>()[2] == 6 && back(x).as_tensor().data<float>() == x.data<float>());
        if (i == 1000) before = resident_pages();
    }
    EXPECT(resident_pages() - before < 256);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    folder = argv[1];
    lambdas();
    values();
    failures();
    ownership();
    threads();
    calls();
    std::puts("passed");
}
