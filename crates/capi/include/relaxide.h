/*
 * relaxide.h: run compiled models from C.
 *
 *     RelaxideModel *model;
 *     if (relaxide_model_load("model.so", &model) != 0) {
 *         fprintf(stderr, "%s: %s\n", relaxide_error_kind(), relaxide_error_message());
 *     }
 *
 * Functions that return int return 0, or -1 with the reason in relaxide_error_kind() and relaxide_error_message(). A null
 * address where one is needed is such an error. Results are written only on success. Handles are the caller's to free;
 * freeing null does nothing. Models and tensors may be used from several threads at once; who writes to a tensor's
 * elements must be alone with it.
 *
 * Link with -lrelaxide_runtime. With the static library also link with -lpthread -ldl -lm, and with -rdynamic, so that
 * models find the functions that they import.
 */
#ifndef RELAXIDE_H_
#define RELAXIDE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, as "major.minor.patch". */
const char *relaxide_version(void);

/* How many threads kernels use, the calling one among them. At least 1. */
int relaxide_set_num_threads(int count);

/* Gives the memory to the system that is kept for later calls. */
void relaxide_release_cached_memory(void);

/* ---- Remote calls (a library that was built with the feature `rpc`) ---------------------------------------------- */

/* A server of remote calls in this program. */
typedef struct RelaxideServer RelaxideServer;

/* Serves TVM's protocol at an address, in threads of this program. `*port` is the port, or 0 for any; the port that was taken is written
 * there. `key` is what clients ask for; it may be empty. The protocol has no security: an address other than loopback must be that of a
 * trusted network. */
int relaxide_rpc_serve(const char *host, int *port, const char *key, RelaxideServer **server);

/* Ends a server and its sessions, and frees the handle. */
void relaxide_rpc_stop(RelaxideServer *server);

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

/* What kind of error the calling thread met last, such as "ValueError", and what it says; empty if there was none. The
 * text is valid until the next failure in the same thread. */
const char *relaxide_error_kind(void);
const char *relaxide_error_message(void);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

/* The type of an element, laid out like DLPack's. */
typedef struct RelaxideDType {
    uint8_t code; /* 0 int, 1 uint, 2 float, 3 handle, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} RelaxideDType;

/* The type of a name such as "float32", "int8" or "bool". */
int relaxide_dtype_parse(const char *name, RelaxideDType *dtype);
/* The name of a type, written with its NUL into `room` bytes; 32 are enough for all. */
int relaxide_dtype_name(RelaxideDType dtype, char *name, size_t room);

/* Where data lies, laid out like DLPack's. */
typedef struct RelaxideDevice {
    int32_t type; /* 1 is the CPU */
    int32_t id;
} RelaxideDevice;

/* A reference-counted tensor; the handle is also a TVMFFIObjectHandle. */
typedef struct RelaxideTensor RelaxideTensor;

typedef struct RelaxideTensorInfo {
    void *data; /* the first element */
    const int64_t *shape;
    const int64_t *strides; /* in elements */
    size_t ndim;
    RelaxideDType dtype;
    RelaxideDevice device;
    size_t size;      /* the number of elements */
    size_t byte_size; /* of all elements, when they are compact */
} RelaxideTensorInfo;

/* A compact tensor of zeros with memory of its own, aligned for vector instructions. */
int relaxide_tensor_new(const int64_t *shape, size_t ndim, RelaxideDType dtype, RelaxideTensor **tensor);

/* A tensor over compact memory of the caller's. When nothing uses it any more, release(context) is called, from any
 * thread; release may be null. After a failure it is not called. Kernels expect an address that is a multiple of 64. */
int relaxide_tensor_borrow(void *data, const int64_t *shape, size_t ndim, RelaxideDType dtype,
                           void (*release)(void *context), void *context, RelaxideTensor **tensor);

/* DLPack 1.x, without a copy. from_dlpack takes over what it is given unless it fails; who is given something by
 * to_dlpack calls its deleter. */
struct DLManagedTensorVersioned;
int relaxide_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, RelaxideTensor **tensor);
int relaxide_tensor_to_dlpack(const RelaxideTensor *tensor, struct DLManagedTensorVersioned **managed);

/* What the tensor consists of; addresses are valid as long as it lives. */
int relaxide_tensor_describe(const RelaxideTensor *tensor, RelaxideTensorInfo *info);

/* Another handle of the same tensor. */
int relaxide_tensor_share(const RelaxideTensor *tensor, RelaxideTensor **shared);
void relaxide_tensor_free(RelaxideTensor *tensor);

/* ---- Values: what a function may take and return besides tensors -------------------------------------------------- */

typedef struct RelaxideValue RelaxideValue;

typedef enum RelaxideKind {
    RELAXIDE_NONE = 0,
    RELAXIDE_INT = 1, /* bools too */
    RELAXIDE_FLOAT = 2,
    RELAXIDE_STR = 3,
    RELAXIDE_SHAPE = 4,
    RELAXIDE_TENSOR = 5,
    RELAXIDE_TUPLE = 6,
    RELAXIDE_OTHER = 7
} RelaxideKind;

int relaxide_value_int(int64_t integer, RelaxideValue **value);
int relaxide_value_float(double number, RelaxideValue **value);
int relaxide_value_str(const char *text, RelaxideValue **value);
int relaxide_value_shape(const int64_t *dims, size_t ndim, RelaxideValue **value);
/* The caller keeps the tensor, and the fields of the tuple. */
int relaxide_value_tensor(const RelaxideTensor *tensor, RelaxideValue **value);
int relaxide_value_tuple(const RelaxideValue *const *fields, size_t count, RelaxideValue **value);

int relaxide_value_kind(const RelaxideValue *value, RelaxideKind *kind);
int relaxide_value_as_int(const RelaxideValue *value, int64_t *integer);
int relaxide_value_as_float(const RelaxideValue *value, double *number);
/* Text and dimensions are valid as long as the value lives. */
int relaxide_value_as_str(const RelaxideValue *value, const char **text);
int relaxide_value_as_shape(const RelaxideValue *value, const int64_t **dims, size_t *ndim);
/* Tensors and fields are new handles. */
int relaxide_value_as_tensor(const RelaxideValue *value, RelaxideTensor **tensor);
int relaxide_value_tuple_size(const RelaxideValue *value, size_t *size);
int relaxide_value_field(const RelaxideValue *value, size_t index, RelaxideValue **field);

/* Another handle of the same value. */
int relaxide_value_share(const RelaxideValue *value, RelaxideValue **shared);
void relaxide_value_free(RelaxideValue *value);

/* ---- Models ----------------------------------------------------------------------------------------------------- */

/* A compiled model with a virtual machine for it. */
typedef struct RelaxideModel RelaxideModel;

typedef struct RelaxideFunctionInfo {
    const char *name;
    size_t num_params;
} RelaxideFunctionInfo;

typedef struct RelaxideParamInfo {
    const char *name;
    const char *annotation; /* the type as TVMScript, such as R.Tensor((n, 3), dtype="float32"); empty if unknown */
    RelaxideDType dtype;    /* of a tensor; of no bits if unknown */
    int32_t ndim;           /* of a tensor; -1 if unknown */
    const int64_t *dims;    /* -1 for dimensions that each call may choose; null if ndim is unknown */
} RelaxideParamInfo;

/* Loads a shared library that Relaxide or TVM exported. Its code runs with all rights of the process. */
int relaxide_model_load(const char *path, RelaxideModel **model);
/* Takes a model that is linked into the program: its object files, compiled with `prefix` as system_lib_prefix. */
int relaxide_model_linked(const char *prefix, RelaxideModel **model);
/* The same for models whose weights are in a file of their own (compile --weights safetensors): it is `weights`, and not the one
 * of its name beside the library, or beside the program that the model is linked into. */
int relaxide_model_load_with_weights(const char *path, const char *weights, RelaxideModel **model);
int relaxide_model_linked_with_weights(const char *prefix, const char *weights, RelaxideModel **model);
/* Results of the model stay valid. */
void relaxide_model_free(RelaxideModel *model);

int relaxide_model_num_functions(const RelaxideModel *model, size_t *count);
/* Descriptions are valid as long as the model lives. */
int relaxide_model_function(const RelaxideModel *model, size_t index, RelaxideFunctionInfo *info);
int relaxide_model_param(const RelaxideModel *model, const char *function, size_t index, RelaxideParamInfo *info);
/* The names of a function's results, in order: those of the ONNX model for main, and none (a count of 0) where the file has none. */
int relaxide_model_num_output_names(const RelaxideModel *model, const char *function, size_t *count);
int relaxide_model_output_name(const RelaxideModel *model, const char *function, size_t index, const char **name);

/* Calls a function of tensors that returns one or a tuple of them. *num_outputs is how many results there is room for;
 * it is set to how many there are, also if that is more, which is an error. */
int relaxide_model_run(const RelaxideModel *model, const char *function, const RelaxideTensor *const *inputs,
                       size_t num_inputs, RelaxideTensor **outputs, size_t *num_outputs);

/* Calls any function. */
int relaxide_model_call(const RelaxideModel *model, const char *function, const RelaxideValue *const *args,
                        size_t num_args, RelaxideValue **result);

/* ---- Functions of the program that models call (not inside WebAssembly modules) ----------------------------------- */

/* Such a function. The arguments are valid during the call. It returns 0 with a value in *result that is the library's from then on
 * (null, which it is at first, for none), or another number: then the model's call fails with the error that this thread met last in
 * the function, which relaxide_error_set sets too. It is called from any thread, from several at once. */
typedef int (*RelaxideCallback)(void *context, const RelaxideValue *const *args, size_t num_args, RelaxideValue **result);

/* Enters a function under the name by which programs call it (R.call_packed, R.call_dps_packed). When it was removed and no model has
 * it any more, release(context) is called, from any thread; release may be null. A name that is taken is an error. After a failure
 * release is not called. */
int relaxide_function_register(const char *name, RelaxideCallback call, void (*release)(void *context), void *context);
/* Takes the function of a name out again. Models that have found it keep it. */
int relaxide_function_remove(const char *name);

/* Sets the calling thread's last error, of a kind such as "ValueError". Returns 0. */
int relaxide_error_set(const char *kind, const char *message);

#ifdef __cplusplus
}
#endif

#endif /* RELAXIDE_H_ */
