// relaxide.hpp: run compiled models from C++11 or newer. A thin cover of relaxide.h: handles free themselves, failures are
// exceptions.
//
//     relaxide::Model model("model.so");
//     relaxide::Tensor image = relaxide::Tensor::zeros({1, 3, 32, 320}, "float32");
//     std::vector<relaxide::Tensor> results = model.run("main", {image});
#ifndef RELAXIDE_HPP_
#define RELAXIDE_HPP_

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "relaxide.h"

namespace relaxide {

/// What the library refused, and why.
class Error : public std::runtime_error {
  public:
    Error() : std::runtime_error(relaxide_error_message()), kind_(relaxide_error_kind()) {}
    /// Such as "ValueError".
    const std::string &kind() const { return kind_; }

  private:
    std::string kind_;
};

inline void check(int code) {
    if (code != 0) throw Error();
}

/// The element type of a name.
inline RelaxideDType dtype(const std::string &name) {
    RelaxideDType parsed;
    check(relaxide_dtype_parse(name.c_str(), &parsed));
    return parsed;
}

/// A tensor; copies share its memory.
class Tensor {
  public:
    /// Takes a handle over.
    explicit Tensor(RelaxideTensor *handle) : handle_(handle, relaxide_tensor_free) {}

    /// A tensor with memory of its own.
    static Tensor zeros(const std::vector<int64_t> &shape, const std::string &type) {
        RelaxideTensor *made = nullptr;
        check(relaxide_tensor_new(shape.data(), shape.size(), dtype(type), &made));
        return Tensor(made);
    }

    /// A tensor over the caller's memory, which outlives it and everything that uses it.
    static Tensor borrow(void *data, const std::vector<int64_t> &shape, const std::string &type) {
        RelaxideTensor *made = nullptr;
        check(relaxide_tensor_borrow(data, shape.data(), shape.size(), dtype(type), nullptr, nullptr, &made));
        return Tensor(made);
    }

    RelaxideTensorInfo info() const {
        RelaxideTensorInfo described;
        check(relaxide_tensor_describe(handle(), &described));
        return described;
    }

    std::vector<int64_t> shape() const {
        RelaxideTensorInfo described = info();
        return std::vector<int64_t>(described.shape, described.shape + described.ndim);
    }

    /// The elements, without a check that they are of that type.
    template <typename T>
    T *data() const {
        return static_cast<T *>(info().data);
    }

    RelaxideTensor *handle() const { return handle_.get(); }

  private:
    std::shared_ptr<RelaxideTensor> handle_;
};

/// A value of any kind; copies are the same value.
class Value {
  public:
    /// Takes a handle over.
    explicit Value(RelaxideValue *handle) : handle_(handle, relaxide_value_free) {}
    Value(const Tensor &tensor) : Value(made(relaxide_value_tensor, static_cast<const RelaxideTensor *>(tensor.handle()))) {}

    static Value integer(int64_t value) { return Value(made(relaxide_value_int, value)); }
    static Value number(double value) { return Value(made(relaxide_value_float, value)); }
    static Value text(const std::string &value) { return Value(made(relaxide_value_str, value.c_str())); }
    static Value shape(const std::vector<int64_t> &dims) {
        RelaxideValue *value = nullptr;
        check(relaxide_value_shape(dims.data(), dims.size(), &value));
        return Value(value);
    }

    RelaxideKind kind() const { return read<RelaxideKind>(relaxide_value_kind); }
    int64_t as_int() const { return read<int64_t>(relaxide_value_as_int); }
    double as_float() const { return read<double>(relaxide_value_as_float); }
    std::string as_str() const { return read<const char *>(relaxide_value_as_str); }
    Tensor as_tensor() const { return Tensor(read<RelaxideTensor *>(relaxide_value_as_tensor)); }
    size_t tuple_size() const { return read<size_t>(relaxide_value_tuple_size); }
    Value field(size_t index) const {
        RelaxideValue *value = nullptr;
        check(relaxide_value_field(handle(), index, &value));
        return Value(value);
    }

    const RelaxideValue *handle() const { return handle_.get(); }

  private:
    template <typename T>
    static RelaxideValue *made(int (*make)(T, RelaxideValue **), T from) {
        RelaxideValue *value = nullptr;
        check(make(from, &value));
        return value;
    }

    template <typename T>
    T read(int (*get)(const RelaxideValue *, T *)) const {
        T result;
        check(get(handle(), &result));
        return result;
    }

    std::shared_ptr<RelaxideValue> handle_;
};

/// A model, ready to run.
class Model {
  public:
    explicit Model(const std::string &path) : handle_(load(path), relaxide_model_free) {}
    /// With weights from a file that is not the one beside the library.
    Model(const std::string &path, const std::string &weights) : handle_(load(path, weights), relaxide_model_free) {}

    /// The names of its functions.
    std::vector<std::string> functions() const {
        size_t count = 0;
        check(relaxide_model_num_functions(handle_.get(), &count));
        std::vector<std::string> names;
        for (size_t i = 0; i < count; ++i) {
            RelaxideFunctionInfo info;
            check(relaxide_model_function(handle_.get(), i, &info));
            names.emplace_back(info.name);
        }
        return names;
    }

    /// The names of a function's results, in order; none where the file has none.
    std::vector<std::string> output_names(const std::string &function) const {
        size_t count = 0;
        check(relaxide_model_num_output_names(handle_.get(), function.c_str(), &count));
        std::vector<std::string> names;
        for (size_t i = 0; i < count; ++i) {
            const char *name = nullptr;
            check(relaxide_model_output_name(handle_.get(), function.c_str(), i, &name));
            names.emplace_back(name);
        }
        return names;
    }

    /// Calls a function of tensors.
    std::vector<Tensor> run(const std::string &function, const std::vector<Tensor> &inputs, size_t room = 16) const {
        std::vector<const RelaxideTensor *> handles;
        for (const Tensor &input : inputs) handles.push_back(input.handle());
        std::vector<RelaxideTensor *> outputs(room);
        check(relaxide_model_run(handle_.get(), function.c_str(), handles.data(), handles.size(), outputs.data(), &room));
        outputs.resize(room);
        std::vector<Tensor> results;
        for (RelaxideTensor *output : outputs) results.emplace_back(output);
        return results;
    }

    /// Calls any function.
    Value call(const std::string &function, const std::vector<Value> &args) const {
        std::vector<const RelaxideValue *> handles;
        for (const Value &arg : args) handles.push_back(arg.handle());
        RelaxideValue *result = nullptr;
        check(relaxide_model_call(handle_.get(), function.c_str(), handles.data(), handles.size(), &result));
        return Value(result);
    }

    /// The model that is linked into the program, compiled with this system_lib_prefix.
    static Model linked(const std::string &prefix) {
        RelaxideModel *model = nullptr;
        check(relaxide_model_linked(prefix.c_str(), &model));
        return Model(model);
    }

  private:
    explicit Model(RelaxideModel *model) : handle_(model, relaxide_model_free) {}

    static RelaxideModel *load(const std::string &path) {
        RelaxideModel *model = nullptr;
        check(relaxide_model_load(path.c_str(), &model));
        return model;
    }

    static RelaxideModel *load(const std::string &path, const std::string &weights) {
        RelaxideModel *model = nullptr;
        check(relaxide_model_load_with_weights(path.c_str(), weights.c_str(), &model));
        return model;
    }

    std::unique_ptr<RelaxideModel, void (*)(RelaxideModel *)> handle_;
};

}  // namespace relaxide

#endif  // RELAXIDE_HPP_
