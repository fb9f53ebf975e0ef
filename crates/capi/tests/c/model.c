/* Uses the whole interface from C. usage: model ADD.so DYNAMIC.so BROKEN.so */
#include "relaxide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                       \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s does not hold; last error: %s: %s\n", __FILE__, __LINE__, #condition, \
                    relaxide_error_kind(), relaxide_error_message());                           \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#define OK(call) EXPECT((call) == 0)

/* The call fails with that kind of error and those words in its message. */
#define FAILS(call, kind, words)                                  \
    do {                                                          \
        EXPECT((call) == -1);                                     \
        EXPECT(strcmp(relaxide_error_kind(), kind) == 0);         \
        EXPECT(strstr(relaxide_error_message(), words) != NULL);  \
    } while (0)

static int released = 0;

static void release(void *context) {
    released += *(int *)context;
}

static RelaxideDType dtype(const char *name) {
    RelaxideDType parsed;
    OK(relaxide_dtype_parse(name, &parsed));
    return parsed;
}

/* A tensor of that shape whose elements are 0, 1, 2, ... */
static RelaxideTensor *counting(const int64_t *shape, size_t ndim) {
    RelaxideTensor *tensor = NULL;
    RelaxideTensorInfo info;
    OK(relaxide_tensor_new(shape, ndim, dtype("float32"), &tensor));
    OK(relaxide_tensor_describe(tensor, &info));
    for (size_t i = 0; i < info.size; ++i) ((float *)info.data)[i] = (float)i;
    return tensor;
}

static void tensors(void) {
    int64_t shape[] = {2, 3};
    RelaxideTensor *tensor = counting(shape, 2);
    RelaxideTensorInfo info;
    OK(relaxide_tensor_describe(tensor, &info));
    EXPECT(info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3 && info.strides[0] == 3);
    EXPECT(info.size == 6 && info.byte_size == 24 && info.device.type == 1);
    EXPECT(info.dtype.code == 2 && info.dtype.bits == 32 && info.dtype.lanes == 1);
    EXPECT((uintptr_t)info.data % 64 == 0);

    struct DLManagedTensorVersioned *lent = NULL;
    RelaxideTensor *same = NULL;
    RelaxideTensorInfo same_info;
    OK(relaxide_tensor_to_dlpack(tensor, &lent));
    OK(relaxide_tensor_from_dlpack(lent, &same));
    relaxide_tensor_free(tensor);
    OK(relaxide_tensor_describe(same, &same_info));
    EXPECT(same_info.data == info.data && ((float *)same_info.data)[5] == 5.0f);
    relaxide_tensor_free(same);

    static float memory[6];
    int context = 7;
    RelaxideTensor *borrowed = NULL;
    OK(relaxide_tensor_borrow(memory, shape, 2, dtype("float32"), release, &context, &borrowed));
    EXPECT(released == 0);
    relaxide_tensor_free(borrowed);
    EXPECT(released == 7);

    int64_t negative[] = {-1};
    int64_t enormous[] = {INT64_MAX, INT64_MAX};
    FAILS(relaxide_tensor_borrow(memory, negative, 1, dtype("float32"), release, &context, &borrowed), "ValueError", "-1");
    EXPECT(released == 7);
    FAILS(relaxide_tensor_new(enormous, 2, dtype("float32"), &tensor), "ValueError", "larger than memory");
    FAILS(relaxide_dtype_parse("float33x", &info.dtype), "ValueError", "float33x");
}

static void run(const char *path) {
    RelaxideModel *model = NULL;
    OK(relaxide_model_load(path, &model));

    size_t count = 0;
    RelaxideFunctionInfo function;
    OK(relaxide_model_num_functions(model, &count));
    EXPECT(count == 1);
    OK(relaxide_model_function(model, 0, &function));
    EXPECT(strcmp(function.name, "main") == 0 && function.num_params == 1);
    RelaxideParamInfo param;
    OK(relaxide_model_param(model, "main", 0, &param));
    EXPECT(strcmp(param.name, "x") == 0 && param.ndim == 2 && param.dims[0] == 3 && param.dims[1] == 4);
    EXPECT(param.dtype.code == 2 && param.dtype.bits == 32);
    EXPECT(strcmp(param.annotation, "R.Tensor((3, 4), dtype=\"float32\")") == 0);

    int64_t shape[] = {3, 4};
    RelaxideTensor *x = counting(shape, 2);
    const RelaxideTensor *inputs[] = {x};
    RelaxideTensor *outputs[2] = {NULL, NULL};
    size_t room = 2;
    OK(relaxide_model_run(model, "main", inputs, 1, outputs, &room));
    EXPECT(room == 1);
    RelaxideTensorInfo result;
    OK(relaxide_tensor_describe(outputs[0], &result));
    EXPECT(result.size == 12 && ((float *)result.data)[11] == 22.0f);

    room = 0;
    FAILS(relaxide_model_run(model, "main", inputs, 1, NULL, &room), "ValueError", "room for 0");
    EXPECT(room == 1);

    /* Wrong arguments: the messages name function, parameter and annotation. */
    int64_t other_shape[] = {3, 5};
    RelaxideTensor *wrong = counting(other_shape, 2);
    const RelaxideTensor *wrong_inputs[] = {wrong};
    room = 2;
    FAILS(relaxide_model_run(model, "main", wrong_inputs, 1, outputs + 1, &room), "ShapeError", "argument `x` of `main`");
    EXPECT(strstr(relaxide_error_message(), "R.Tensor((3, 4)") && strstr(relaxide_error_message(), "dimension 1 is 5, not 4"));
    relaxide_tensor_free(wrong);
    OK(relaxide_tensor_new(shape, 2, dtype("int32"), &wrong));
    wrong_inputs[0] = wrong;
    EXPECT(relaxide_model_run(model, "main", wrong_inputs, 1, outputs + 1, &room) == -1);
    EXPECT(strstr(relaxide_error_message(), "argument `x`") && strstr(relaxide_error_message(), "int32"));
    relaxide_tensor_free(wrong);
    EXPECT(relaxide_model_run(model, "main", NULL, 0, outputs + 1, &room) == -1);
    EXPECT(strstr(relaxide_error_message(), "main expects 1 arguments (x), but 0 arguments were provided"));

    FAILS(relaxide_model_run(model, "nothing", inputs, 1, outputs + 1, &room), "ValueError", "nothing");
    FAILS(relaxide_model_function(model, 1, &function), "IndexError", "function 1");
    FAILS(relaxide_model_param(model, "main", 1, &param), "IndexError", "parameter 1");
    FAILS(relaxide_model_param(model, "nothing", 0, &param), "ValueError", "nothing");

    /* Results outlive their model. */
    relaxide_model_free(model);
    EXPECT(((float *)result.data)[1] == 2.0f);
    relaxide_tensor_free(outputs[0]);
    relaxide_tensor_free(x);
}

static void call(const char *path) {
    RelaxideModel *model = NULL;
    OK(relaxide_model_load(path, &model));
    RelaxideParamInfo param;
    OK(relaxide_model_param(model, "main", 1, &param));
    EXPECT(param.ndim == 2 && param.dims[0] == -1 && param.dims[1] == 4);
    size_t names = 7;
    const char *name = NULL;
    OK(relaxide_model_num_output_names(model, "main", &names));
    EXPECT(names == 0);
    FAILS(relaxide_model_output_name(model, "main", 0, &name), "IndexError", "name of an output 0");

    int64_t shape[] = {5, 4};
    RelaxideTensor *x = counting(shape, 2);
    RelaxideValue *value = NULL;
    OK(relaxide_value_tensor(x, &value));
    relaxide_tensor_free(x);
    const RelaxideValue *args[] = {value, value};
    RelaxideValue *result = NULL;
    OK(relaxide_model_call(model, "main", args, 2, &result));
    relaxide_value_free(value);

    RelaxideKind kind;
    size_t size = 0, ndim = 0;
    OK(relaxide_value_kind(result, &kind));
    OK(relaxide_value_tuple_size(result, &size));
    EXPECT(kind == RELAXIDE_TUPLE && size == 2);
    RelaxideValue *first = NULL, *second = NULL, *third = NULL;
    OK(relaxide_value_field(result, 0, &first));
    OK(relaxide_value_field(result, 1, &second));
    FAILS(relaxide_value_field(result, 2, &third), "IndexError", "field 2");
    relaxide_value_free(result);

    RelaxideTensor *tensor = NULL;
    RelaxideTensorInfo info;
    OK(relaxide_value_as_tensor(first, &tensor));
    OK(relaxide_tensor_describe(tensor, &info));
    EXPECT(info.ndim == 3 && info.shape[0] == 10 && ((float *)info.data)[0] == 1.0f);
    relaxide_tensor_free(tensor);

    const int64_t *dims = NULL;
    OK(relaxide_value_kind(second, &kind));
    OK(relaxide_value_as_shape(second, &dims, &ndim));
    EXPECT(kind == RELAXIDE_SHAPE && ndim == 2 && dims[0] == 5 && dims[1] == 6);
    FAILS(relaxide_value_as_tensor(second, &tensor), "TypeError", "Shape");
    relaxide_value_free(first);
    relaxide_value_free(second);
    relaxide_model_free(model);
}

static void values(void) {
    int64_t dims[] = {1, 2}, integer = 0;
    double number = 0;
    const char *text = NULL;
    RelaxideValue *fields[4] = {NULL, NULL, NULL, NULL}, *tuple = NULL, *field = NULL;
    OK(relaxide_value_int(-3, &fields[0]));
    OK(relaxide_value_float(0.5, &fields[1]));
    OK(relaxide_value_str("a text of more than seven bytes", &fields[2]));
    OK(relaxide_value_shape(dims, 2, &fields[3]));
    OK(relaxide_value_tuple((const RelaxideValue *const *)fields, 4, &tuple));
    for (int i = 0; i < 4; ++i) relaxide_value_free(fields[i]);
    OK(relaxide_value_field(tuple, 0, &field));
    OK(relaxide_value_as_int(field, &integer));
    EXPECT(integer == -3);
    FAILS(relaxide_value_as_str(field, &text), "TypeError", "int");
    relaxide_value_free(field);
    OK(relaxide_value_field(tuple, 1, &field));
    OK(relaxide_value_as_float(field, &number));
    EXPECT(number == 0.5);
    relaxide_value_free(field);
    OK(relaxide_value_field(tuple, 2, &field));
    OK(relaxide_value_as_str(field, &text));
    EXPECT(strcmp(text, "a text of more than seven bytes") == 0);
    relaxide_value_free(field);
    relaxide_value_free(tuple);
}

/* A function of the program's: refuses what is no integer, gives nothing for 0, else an integer one larger. */
static int increment(void *context, const RelaxideValue *const *args, size_t num_args, RelaxideValue **result) {
    int64_t integer = 0;
    ++*(int *)context;
    if (num_args != 1) return relaxide_error_set("ArityError", "one argument is expected"), -1;
    if (relaxide_value_as_int(args[0], &integer) != 0) return -1;
    if (integer < 0) return 7;
    return integer == 0 ? 0 : relaxide_value_int(integer + 1, result);
}

static void functions(void) {
    int context = 7;
    released = 0;
    OK(relaxide_function_register("test.c.increment", increment, release, &context));
    FAILS(relaxide_function_register("test.c.increment", increment, release, &context), "RuntimeError", "already registered");
    EXPECT(released == 0);
    OK(relaxide_function_remove("test.c.increment"));
    EXPECT(released == 7);
    FAILS(relaxide_function_remove("test.c.increment"), "KeyError", "test.c.increment");
    OK(relaxide_error_set("ValueError", "said by the program"));
    EXPECT(strcmp(relaxide_error_kind(), "ValueError") == 0 && strcmp(relaxide_error_message(), "said by the program") == 0);
    char name[32];
    OK(relaxide_dtype_name(dtype("bfloat16"), name, sizeof name));
    EXPECT(strcmp(name, "bfloat16") == 0);
    FAILS(relaxide_dtype_name(dtype("float8_e4m3b11fnuz"), name, 8), "ValueError", "room for 8");
}

/* Calls a registered function as programs do, by the ABI that models use. */
static void called(void) {
    typedef struct { int32_t type; uint32_t zero; int64_t integer; } Any;
    typedef struct { const char *data; size_t size; } Bytes;
    extern int TVMFFIFunctionGetGlobal(const Bytes *name, void **function);
    extern int TVMFFIFunctionCall(void *function, Any *args, int32_t num_args, Any *result);
    extern int TVMFFIObjectDecRef(void *object);
    int calls = 0;
    void *function = NULL;
    Bytes name = {"test.c.called", 13};
    OK(relaxide_function_register("test.c.called", increment, NULL, &calls));
    OK(TVMFFIFunctionGetGlobal(&name, &function));
    Any args[2] = {{1, 0, 41}, {1, 0, 0}}, result = {0, 0, 0};
    OK(TVMFFIFunctionCall(function, args, 1, &result));
    EXPECT(result.type == 1 && result.integer == 42);
    OK(TVMFFIFunctionCall(function, args + 1, 1, &result));
    EXPECT(result.type == 0 && calls == 2);
    EXPECT(TVMFFIFunctionCall(function, args, 2, &result) != 0 && strcmp(relaxide_error_message(), "one argument is expected") == 0);
    args[0].integer = -1;
    EXPECT(TVMFFIFunctionCall(function, args, 1, &result) != 0 && calls == 4);
    TVMFFIObjectDecRef(function);
    OK(relaxide_function_remove("test.c.called"));
}

/* Every function that follows an address refuses null. */
static void nulls(const char *path) {
    RelaxideModel *model = NULL, *no_model = NULL;
    RelaxideTensor *tensor = NULL;
    RelaxideValue *value = NULL;
    RelaxideFunctionInfo function;
    RelaxideParamInfo param;
    RelaxideTensorInfo info;
    RelaxideDType type = dtype("float32");
    RelaxideKind kind;
    struct DLManagedTensorVersioned *managed = NULL;
    const char *text = NULL;
    const int64_t *dims = NULL;
    int64_t shape[] = {2}, integer = 0;
    size_t count = 0, room = 1;
    double number = 0;
    OK(relaxide_model_load(path, &model));
#define REFUSED(call) FAILS(call, "ValueError", "null")
    REFUSED(relaxide_dtype_name(type, NULL, 32));
    REFUSED(relaxide_function_register(NULL, increment, NULL, NULL));
    REFUSED(relaxide_function_register("test.c.null", NULL, NULL, NULL));
    REFUSED(relaxide_function_remove(NULL));
    REFUSED(relaxide_error_set(NULL, "said"));
    REFUSED(relaxide_error_set("ValueError", NULL));
    REFUSED(relaxide_dtype_parse(NULL, &type));
    REFUSED(relaxide_dtype_parse("int8", NULL));
    REFUSED(relaxide_tensor_new(NULL, 1, type, &tensor));
    REFUSED(relaxide_tensor_new(shape, 1, type, NULL));
    REFUSED(relaxide_tensor_borrow(NULL, shape, 1, type, NULL, NULL, &tensor));
    REFUSED(relaxide_tensor_borrow(shape, NULL, 1, type, NULL, NULL, &tensor));
    REFUSED(relaxide_tensor_borrow(shape, shape, 1, type, NULL, NULL, NULL));
    REFUSED(relaxide_tensor_from_dlpack(NULL, &tensor));
    REFUSED(relaxide_tensor_to_dlpack(NULL, &managed));
    REFUSED(relaxide_tensor_describe(NULL, &info));
    REFUSED(relaxide_value_int(1, NULL));
    REFUSED(relaxide_value_float(1, NULL));
    REFUSED(relaxide_value_str(NULL, &value));
    REFUSED(relaxide_value_shape(NULL, 1, &value));
    REFUSED(relaxide_value_tensor(NULL, &value));
    REFUSED(relaxide_value_tuple(NULL, 1, &value));
    REFUSED(relaxide_value_kind(NULL, &kind));
    REFUSED(relaxide_value_as_int(NULL, &integer));
    REFUSED(relaxide_value_as_float(NULL, &number));
    REFUSED(relaxide_value_as_str(NULL, &text));
    REFUSED(relaxide_value_as_shape(NULL, &dims, &count));
    REFUSED(relaxide_value_as_tensor(NULL, &tensor));
    REFUSED(relaxide_value_tuple_size(NULL, &count));
    REFUSED(relaxide_value_field(NULL, 0, &value));
    REFUSED(relaxide_model_load(NULL, &no_model));
    REFUSED(relaxide_model_load(path, NULL));
    REFUSED(relaxide_model_num_functions(NULL, &count));
    REFUSED(relaxide_model_num_functions(model, NULL));
    REFUSED(relaxide_model_function(NULL, 0, &function));
    REFUSED(relaxide_model_function(model, 0, NULL));
    REFUSED(relaxide_model_param(model, NULL, 0, &param));
    REFUSED(relaxide_model_param(model, "main", 0, NULL));
    REFUSED(relaxide_model_load_with_weights("x.so", NULL, &model));
    REFUSED(relaxide_model_linked_with_weights(NULL, "x.safetensors", &model));
    REFUSED(relaxide_model_num_output_names(model, NULL, &room));
    REFUSED(relaxide_model_output_name(model, "main", 0, NULL));
    REFUSED(relaxide_model_run(NULL, "main", NULL, 0, &tensor, &room));
    REFUSED(relaxide_model_run(model, NULL, NULL, 0, &tensor, &room));
    REFUSED(relaxide_model_run(model, "main", NULL, 1, &tensor, &room));
    REFUSED(relaxide_model_run(model, "main", (const RelaxideTensor *const *)&tensor, 1, &tensor, &room));
    REFUSED(relaxide_model_run(model, "main", NULL, 0, NULL, &room));
    REFUSED(relaxide_model_run(model, "main", NULL, 0, &tensor, NULL));
    REFUSED(relaxide_model_call(model, "main", (const RelaxideValue *const *)&value, 1, &value));
    REFUSED(relaxide_model_call(model, "main", NULL, 0, NULL));
    FAILS(relaxide_set_num_threads(0), "ValueError", "at least 1");
    OK(relaxide_set_num_threads(1));
    relaxide_tensor_free(NULL);
    relaxide_value_free(NULL);
    relaxide_model_free(NULL);
    relaxide_model_free(model);
}

int main(int argc, char **argv) {
    EXPECT(argc == 4);
    EXPECT(strlen(relaxide_version()) > 0 && strlen(relaxide_error_kind()) == 0);
    tensors();
    values();
    functions();
    called();
    run(argv[1]);
    call(argv[2]);
    nulls(argv[1]);
    RelaxideModel *model = NULL;
    FAILS(relaxide_model_load(argv[3], &model), "ValueError", "magic");
    FAILS(relaxide_model_load("no/such/model.so", &model), "FileNotFoundError", "no/such/model.so");
    printf("passed\n");
    return 0;
}
