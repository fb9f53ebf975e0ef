// relaxide.hpp: run compiled models from C++11 or newer. A thin cover of relaxide.h: handles free themselves, failures are
// exceptions, models call lambdas.
//
//     relaxide::Model model("model.so");
//     relaxide::Tensor image = relaxide::Tensor::zeros({1, 3, 32, 320}, "float32");
//     std::vector<relaxide::Tensor> results = model.run("main", {image});
//
//     auto scale = relaxide::register_function("app.scale", [](relaxide::Tensor x, double by) { … });
#ifndef RELAXIDE_HPP_
#define RELAXIDE_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "relaxide.h"

namespace relaxide {

/// What the library refused, or what a function of the program says to the model that called it.
class Error : public std::runtime_error {
  public:
    /// What the calling thread met last.
    Error() : std::runtime_error(relaxide_error_message()), kind_(relaxide_error_kind()) {}
    Error(std::string kind, const std::string &message) : std::runtime_error(message), kind_(std::move(kind)) {}
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

namespace detail {

/// A handle that is freed once. A copy is another handle of the same thing; a move costs nothing.
template <typename T, int (*SHARE)(const T *, T **), void (*FREE)(T *)>
class Handle {
  public:
    explicit Handle(T *handle) noexcept : handle_(handle) {}
    Handle(const Handle &other) : handle_(nullptr) {
        if (other.handle_ != nullptr) check(SHARE(other.handle_, &handle_));
    }
    Handle(Handle &&other) noexcept : handle_(other.release()) {}
    Handle &operator=(Handle other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Handle() {
        if (handle_ != nullptr) FREE(handle_);
    }

    T *get() const noexcept { return handle_; }
    T *release() noexcept {
        T *handle = handle_;
        handle_ = nullptr;
        return handle;
    }

  private:
    T *handle_;
};

/// Handles side by side, as the library takes them; up to eight need no memory of their own.
template <typename T>
class Row {
  public:
    template <typename Each>
    Row(const Each *items, size_t count) : count_(count), near_() {
        if (count > near_.size()) far_.resize(count);
        for (size_t i = 0; i < count; ++i) data()[i] = items[i].handle();
    }
    explicit Row(size_t count) : count_(count), near_() {
        if (count > near_.size()) far_.resize(count);
    }
    T *data() { return count_ > near_.size() ? far_.data() : near_.data(); }
    size_t size() const { return count_; }

  private:
    size_t count_;
    std::array<T, 8> near_;
    std::vector<T> far_;
};

}  // namespace detail

/// A tensor; copies share its memory.
class Tensor {
  public:
    /// Takes a handle over.
    explicit Tensor(RelaxideTensor *handle) noexcept : handle_(handle) {}

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

    /// The number of elements.
    size_t size() const { return info().size; }

    /// The elements, without a check that they are of that type.
    template <typename T>
    T *data() const {
        return static_cast<T *>(info().data);
    }

    RelaxideTensor *handle() const noexcept { return handle_.get(); }

  private:
    detail::Handle<RelaxideTensor, relaxide_tensor_share, relaxide_tensor_free> handle_;
};

/// A value of any kind; copies are the same value.
class Value {
  public:
    /// Takes a handle over; null is no value, as a function without a result returns it.
    explicit Value(RelaxideValue *handle) noexcept : handle_(handle) {}
    Value(const Tensor &tensor) : Value(made(relaxide_value_tensor, static_cast<const RelaxideTensor *>(tensor.handle()))) {}

    static Value integer(int64_t value) { return Value(made(relaxide_value_int, value)); }
    static Value number(double value) { return Value(made(relaxide_value_float, value)); }
    static Value text(const std::string &value) { return Value(made(relaxide_value_str, value.c_str())); }
    static Value shape(const std::vector<int64_t> &dims) {
        RelaxideValue *value = nullptr;
        check(relaxide_value_shape(dims.data(), dims.size(), &value));
        return Value(value);
    }
    static Value tuple(const std::vector<Value> &fields) {
        detail::Row<const RelaxideValue *> handles(fields.data(), fields.size());
        RelaxideValue *value = nullptr;
        check(relaxide_value_tuple(handles.data(), handles.size(), &value));
        return Value(value);
    }

    RelaxideKind kind() const { return handle() == nullptr ? RELAXIDE_NONE : read<RelaxideKind>(relaxide_value_kind); }
    int64_t as_int() const { return read<int64_t>(relaxide_value_as_int); }
    double as_float() const { return read<double>(relaxide_value_as_float); }
    std::string as_str() const { return read<const char *>(relaxide_value_as_str); }
    std::vector<int64_t> as_shape() const {
        const int64_t *dims = nullptr;
        size_t ndim = 0;
        check(relaxide_value_as_shape(handle(), &dims, &ndim));
        return std::vector<int64_t>(dims, dims + ndim);
    }
    Tensor as_tensor() const { return Tensor(read<RelaxideTensor *>(relaxide_value_as_tensor)); }
    size_t tuple_size() const { return read<size_t>(relaxide_value_tuple_size); }
    Value field(size_t index) const {
        RelaxideValue *value = nullptr;
        check(relaxide_value_field(handle(), index, &value));
        return Value(value);
    }

    const RelaxideValue *handle() const noexcept { return handle_.get(); }
    /// Gives the handle up.
    RelaxideValue *release() noexcept { return handle_.release(); }

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

    detail::Handle<RelaxideValue, relaxide_value_share, relaxide_value_free> handle_;
};

namespace detail {

/// Values as C++ has them: what lambdas take and return, and what functions are called with.
template <typename T, typename = void>
struct Native;

template <>
struct Native<Value> {
    static Value of(const Value &value) { return value; }
    static Value from(Value value) { return value; }
};

template <>
struct Native<Tensor> {
    static Tensor of(const Value &value) { return value.as_tensor(); }
    static Value from(const Tensor &tensor) { return Value(tensor); }
};

template <>
struct Native<bool> {
    static bool of(const Value &value) { return value.as_int() != 0; }
    static Value from(bool value) { return Value::integer(value ? 1 : 0); }
};

template <typename T>
struct Native<T, typename std::enable_if<std::is_integral<T>::value && !std::is_same<T, bool>::value>::type> {
    static T of(const Value &value) {
        int64_t number = value.as_int();
        T narrow = static_cast<T>(number);
        if (static_cast<int64_t>(narrow) != number || (std::is_unsigned<T>::value && number < 0))
            throw Error("ValueError", std::to_string(number) + " does not fit into " + std::to_string(sizeof(T)) + " bytes" +
                                          (std::is_unsigned<T>::value ? " without a sign" : ""));
        return narrow;
    }
    static Value from(T value) {
        if (std::is_unsigned<T>::value && static_cast<uint64_t>(value) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            throw Error("ValueError", std::to_string(value) + " does not fit into a signed integer of 64 bits");
        return Value::integer(static_cast<int64_t>(value));
    }
};

template <typename T>
struct Native<T, typename std::enable_if<std::is_floating_point<T>::value>::type> {
    static T of(const Value &value) {
        return value.kind() == RELAXIDE_INT ? static_cast<T>(value.as_int()) : static_cast<T>(value.as_float());
    }
    static Value from(T value) { return Value::number(static_cast<double>(value)); }
};

template <>
struct Native<std::string> {
    static std::string of(const Value &value) { return value.as_str(); }
    static Value from(const std::string &value) { return Value::text(value); }
};

template <>
struct Native<const char *> {
    static Value from(const char *value) { return Value::text(value); }
};

/// A shape.
template <>
struct Native<std::vector<int64_t>> {
    static std::vector<int64_t> of(const Value &value) { return value.as_shape(); }
    static Value from(const std::vector<int64_t> &value) { return Value::shape(value); }
};

/// A tuple of values of one kind.
template <typename T>
struct Native<std::vector<T>, typename std::enable_if<!std::is_same<T, int64_t>::value>::type> {
    static std::vector<T> of(const Value &value) {
        std::vector<T> fields;
        for (size_t i = 0; i < value.tuple_size(); ++i) fields.push_back(Native<T>::of(value.field(i)));
        return fields;
    }
    static Value from(const std::vector<T> &value) {
        std::vector<Value> fields;
        for (const T &field : value) fields.push_back(Native<T>::from(field));
        return Value::tuple(fields);
    }
};

template <size_t...>
struct Indices {};
template <size_t N, size_t... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <size_t... I>
struct Count<0, I...> {
    typedef Indices<I...> type;
};

/// Calls a callable of C++ with arguments of the library.
template <typename F, typename Result, typename... Args>
struct Invoke {
    static RelaxideValue *call(F &f, const RelaxideValue *const *args, size_t count) {
        if (count != sizeof...(Args))
            throw Error("TypeError", "the function takes " + std::to_string(sizeof...(Args)) +
                                         (sizeof...(Args) == 1 ? " argument, not " : " arguments, not ") + std::to_string(count));
        return result(f, args, typename Count<sizeof...(Args)>::type(), std::is_void<Result>());
    }

  private:
    template <typename T>
    static typename std::decay<T>::type argument(const RelaxideValue *value) {
        RelaxideValue *shared = nullptr;
        check(relaxide_value_share(value, &shared));
        return Native<typename std::decay<T>::type>::of(Value(shared));
    }
    template <size_t... I>
    static RelaxideValue *result(F &f, const RelaxideValue *const *args, Indices<I...>, std::true_type) {
        (void)args;
        f(argument<Args>(args[I])...);
        return nullptr;
    }
    template <size_t... I>
    static RelaxideValue *result(F &f, const RelaxideValue *const *args, Indices<I...>, std::false_type) {
        (void)args;
        return Native<typename std::decay<Result>::type>::from(f(argument<Args>(args[I])...)).release();
    }
};

template <typename F, typename Signature = decltype(&F::operator())>
struct Callable;
template <typename F, typename C, typename R, typename... A>
struct Callable<F, R (C::*)(A...) const> : Invoke<F, R, A...> {};
template <typename F, typename C, typename R, typename... A>
struct Callable<F, R (C::*)(A...)> : Invoke<F, R, A...> {};
#if __cplusplus >= 201703L
template <typename F, typename C, typename R, typename... A>
struct Callable<F, R (C::*)(A...) const noexcept> : Invoke<F, R, A...> {};
template <typename F, typename C, typename R, typename... A>
struct Callable<F, R (C::*)(A...) noexcept> : Invoke<F, R, A...> {};
#endif
template <typename R, typename... A>
struct Callable<R (*)(A...), void> : Invoke<R (*)(A...), R, A...> {};

template <typename F>
struct Stored {
    typedef Callable<F> type;
};
template <typename R, typename... A>
struct Stored<R (*)(A...)> {
    typedef Callable<R (*)(A...), void> type;
};

/// What the library calls. No exception of C++ leaves it.
template <typename F>
int trampoline(void *context, const RelaxideValue *const *args, size_t count, RelaxideValue **result) noexcept {
    try {
        *result = Stored<F>::type::call(*static_cast<F *>(context), args, count);
        return 0;
    } catch (const Error &error) {
        relaxide_error_set(error.kind().c_str(), error.what());
    } catch (const std::bad_alloc &error) {
        relaxide_error_set("MemoryError", error.what());
    } catch (const std::out_of_range &error) {
        relaxide_error_set("IndexError", error.what());
    } catch (const std::invalid_argument &error) {
        relaxide_error_set("ValueError", error.what());
    } catch (const std::exception &error) {
        relaxide_error_set("RuntimeError", error.what());
    } catch (...) {
        relaxide_error_set("RuntimeError", "a function of the program threw what is no std::exception");
    }
    return 1;
}

template <typename F>
void destroy(void *context) {
    delete static_cast<F *>(context);
}

}  // namespace detail

/// A function of the program under the name by which models call it, until this object goes. Models that have found it keep it.
class Registration {
  public:
    Registration(Registration &&other) noexcept : name_(std::move(other.name_)) { other.name_.clear(); }
    Registration &operator=(Registration &&other) noexcept {
        std::swap(name_, other.name_);
        return *this;
    }
    ~Registration() {
        if (!name_.empty()) relaxide_function_remove(name_.c_str());
    }
    const std::string &name() const { return name_; }

  private:
    template <typename F>
    friend Registration register_function(const std::string &name, F function);
    explicit Registration(std::string name) : name_(std::move(name)) {}
    std::string name_;
};

/// Enters a lambda, another object with one operator(), or a function under the name by which programs call it (R.call_packed,
/// R.call_dps_packed). It takes and returns Tensor, Value, integers, bool, floating-point numbers, std::string, std::vector<int64_t> for a
/// shape, and vectors of these for a tuple. It is called from any thread, from several at once. What it throws fails the model's call:
/// relaxide::Error by its kind, std::exception as RuntimeError (ValueError, IndexError, MemoryError where C++ has the like).
template <typename F>
Registration register_function(const std::string &name, F function) {
    std::unique_ptr<F> context(new F(std::move(function)));
    check(relaxide_function_register(name.c_str(), detail::trampoline<F>, detail::destroy<F>, context.get()));
    context.release();
    return Registration(name);
}

/// A function of a model. It keeps the model alive.
class Function {
  public:
    Function(std::shared_ptr<RelaxideModel> model, std::string name) : model_(std::move(model)), name_(std::move(name)) {}

    const std::string &name() const { return name_; }

    /// Calls it with whatever a lambda may take.
    template <typename... Args>
    Value operator()(const Args &...args) const {
        const std::array<Value, sizeof...(Args)> values{{detail::Native<typename std::decay<Args>::type>::from(args)...}};
        return call(values.data(), values.size());
    }

    Value call(const Value *args, size_t count) const {
        detail::Row<const RelaxideValue *> handles(args, count);
        RelaxideValue *result = nullptr;
        check(relaxide_model_call(model_.get(), name_.c_str(), handles.data(), count, &result));
        return Value(result);
    }

    /// Calls a function of tensors; at most `room` results.
    std::vector<Tensor> run(const std::vector<Tensor> &inputs, size_t room = 16) const {
        detail::Row<const RelaxideTensor *> handles(inputs.data(), inputs.size());
        detail::Row<RelaxideTensor *> outputs(room);
        check(relaxide_model_run(model_.get(), name_.c_str(), handles.data(), handles.size(), outputs.data(), &room));
        std::vector<Tensor> results;
        results.reserve(room);
        for (size_t i = 0; i < room; ++i) results.emplace_back(outputs.data()[i]);
        return results;
    }

    /// Calls a function of one tensor or more that returns one: no memory is taken but for the result's.
    template <typename... Inputs>
    Tensor run_one(const Tensor &first, const Inputs &...rest) const {
        const RelaxideTensor *const handles[] = {first.handle(), rest.handle()...};
        RelaxideTensor *output = nullptr;
        size_t room = 1;
        check(relaxide_model_run(model_.get(), name_.c_str(), handles, 1 + sizeof...(rest), &output, &room));
        return Tensor(output);
    }

  private:
    std::shared_ptr<RelaxideModel> model_;
    std::string name_;
};

/// A model, ready to run; copies are the same model.
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

    /// A function of the model, to be called. Whether there is one of that name shows when it is called.
    Function function(const std::string &name) const { return Function(handle_, name); }

    /// Calls a function of tensors.
    std::vector<Tensor> run(const std::string &name, const std::vector<Tensor> &inputs, size_t room = 16) const {
        return function(name).run(inputs, room);
    }

    /// Calls any function.
    Value call(const std::string &name, const std::vector<Value> &args) const {
        return function(name).call(args.data(), args.size());
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

    std::shared_ptr<RelaxideModel> handle_;
};

}  // namespace relaxide

#endif  // RELAXIDE_HPP_
