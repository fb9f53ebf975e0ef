/* What connects the class relaxide.Native with relaxide.h: one function for each of its native methods, of which the header
 * relaxide_Native.h, made by javac, has the signatures. Handles are addresses in a long; text is bytes with a NUL at the end. A failure
 * becomes an exception by Native.failure; a registered function runs by Native.enter. */
#include "relaxide_Native.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "relaxide.h"

#define NATIVE(result, name, ...) JNIEXPORT result JNICALL Java_relaxide_Native_##name(JNIEnv *env, jclass self, ##__VA_ARGS__)
#define HANDLE(type, address) ((type *)(uintptr_t)(address))
#define ADDRESS(pointer) ((jlong)(uintptr_t)(pointer))

static JavaVM *machine;
static jclass natives;
static jmethodID failure_method, enter_method;
static pthread_key_t attached_key;

/* A thread that this library attached to the virtual machine leaves it at its end. */
static void detach(void *unused) {
    (void)unused;
    (*machine)->DetachCurrentThread(machine);
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *unused) {
    (void)unused;
    JNIEnv *env;
    machine = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK || pthread_key_create(&attached_key, detach) != 0) return JNI_ERR;
    jclass found = (*env)->FindClass(env, "relaxide/Native");
    if (found == NULL || (natives = (*env)->NewGlobalRef(env, found)) == NULL) return JNI_ERR;
    failure_method = (*env)->GetStaticMethodID(env, natives, "failure", "([B[B)Ljava/lang/Throwable;");
    enter_method = (*env)->GetStaticMethodID(env, natives, "enter", "(Lrelaxide/PackedFunction;[J)J");
    return failure_method != NULL && enter_method != NULL ? JNI_VERSION_1_8 : JNI_ERR;
}

/* The calling thread's environment, also of a thread that Java does not know yet; null if the virtual machine is gone. */
static JNIEnv *environment(void) {
    JNIEnv *env;
    if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_8) == JNI_OK) return env;
    if ((*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, NULL) != JNI_OK) return NULL;
    pthread_setspecific(attached_key, env);
    return env;
}

/* ---- Failures, text and arrays. After each of them an exception may be pending ------------------------------------- */

static void throw_new(JNIEnv *env, const char *class, const char *message) {
    jclass found = (*env)->FindClass(env, class);
    if (found != NULL) (*env)->ThrowNew(env, found, message);
}

static void *out_of_memory(JNIEnv *env) {
    throw_new(env, "java/lang/OutOfMemoryError", "no memory for the arguments of a native call");
    return NULL;
}

static jbyteArray bytes(JNIEnv *env, const char *text) {
    size_t length = strlen(text);
    jbyteArray made = (*env)->NewByteArray(env, (jsize)length);
    if (made != NULL) (*env)->SetByteArrayRegion(env, made, 0, (jsize)length, (const jbyte *)text);
    return made;
}

static int failed(JNIEnv *env, int code) {
    if (code == 0) return 0;
    jbyteArray kind = bytes(env, relaxide_error_kind());
    jbyteArray message = kind == NULL ? NULL : bytes(env, relaxide_error_message());
    if (message == NULL) return 1;
    jthrowable thrown = (*env)->CallStaticObjectMethod(env, natives, failure_method, kind, message);
    if (thrown != NULL && !(*env)->ExceptionCheck(env)) (*env)->Throw(env, thrown);
    return 1;
}

/* A copy of text that has its NUL; null with an exception if there is no memory. */
static char *text(JNIEnv *env, jbyteArray array) {
    jsize length = (*env)->GetArrayLength(env, array);
    char *copy = malloc((size_t)length + 1);
    if (copy == NULL) return out_of_memory(env);
    (*env)->GetByteArrayRegion(env, array, 0, length, (jbyte *)copy);
    copy[length] = 0;
    return copy;
}

/* Integers or handles: in the place that is given if they fit, or in memory of their own. */
typedef struct Longs {
    jlong place[16];
    jlong *items;
    size_t count;
} Longs;

static int get(JNIEnv *env, jlongArray array, Longs *longs) {
    jsize length = (*env)->GetArrayLength(env, array);
    longs->count = (size_t)length;
    longs->items = longs->count <= 16 ? longs->place : malloc(longs->count * sizeof(jlong));
    if (longs->items == NULL) return out_of_memory(env), -1;
    (*env)->GetLongArrayRegion(env, array, 0, length, longs->items);
    return 0;
}

static void release(Longs *longs) {
    if (longs->items != longs->place) free(longs->items);
}

static const int64_t *dims(const Longs *longs) {
    _Static_assert(sizeof(jlong) == sizeof(int64_t), "a long of Java has 64 bits");
    return (const int64_t *)longs->items;
}

/* Addresses are as wide as a long on the machines that there are. */
static const RelaxideValue *const *handles(const Longs *longs) {
    _Static_assert(sizeof(jlong) == sizeof(void *), "an address has 64 bits");
    return (const RelaxideValue *const *)longs->items;
}

static jlongArray long_array(JNIEnv *env, const int64_t *items, size_t count) {
    jlongArray made = (*env)->NewLongArray(env, (jsize)count);
    if (made != NULL) (*env)->SetLongArrayRegion(env, made, 0, (jsize)count, (const jlong *)items);
    return made;
}

static RelaxideDType dtype_of(jint packed) {
    RelaxideDType dtype = {(uint8_t)packed, (uint8_t)(packed >> 8), (uint16_t)((uint32_t)packed >> 16)};
    return dtype;
}

static jint packed(RelaxideDType dtype) {
    return (jint)(dtype.code | (uint32_t)dtype.bits << 8 | (uint32_t)dtype.lanes << 16);
}

/* ---- The library ------------------------------------------------------------------------------------------------- */

NATIVE(jbyteArray, version) {
    (void)self;
    return bytes(env, relaxide_version());
}

NATIVE(void, setNumThreads, jint count) {
    (void)self;
    failed(env, relaxide_set_num_threads(count));
}

NATIVE(void, releaseCachedMemory) {
    (void)env, (void)self;
    relaxide_release_cached_memory();
}

NATIVE(void, errorSet, jbyteArray kind, jbyteArray message) {
    (void)self;
    char *kind_text = text(env, kind), *message_text = kind_text == NULL ? NULL : text(env, message);
    if (message_text != NULL) failed(env, relaxide_error_set(kind_text, message_text));
    free(message_text);
    free(kind_text);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

NATIVE(jint, dtypeParse, jbyteArray name) {
    (void)self;
    RelaxideDType dtype = {0, 0, 0};
    char *name_text = text(env, name);
    if (name_text != NULL) failed(env, relaxide_dtype_parse(name_text, &dtype));
    free(name_text);
    return packed(dtype);
}

NATIVE(jbyteArray, dtypeName, jint dtype) {
    (void)self;
    char name[64];
    return failed(env, relaxide_dtype_name(dtype_of(dtype), name, sizeof name)) ? NULL : bytes(env, name);
}

NATIVE(jlong, tensorNew, jlongArray shape, jint dtype) {
    (void)self;
    Longs longs;
    RelaxideTensor *tensor = NULL;
    if (get(env, shape, &longs) != 0) return 0;
    failed(env, relaxide_tensor_new(dims(&longs), longs.count, dtype_of(dtype), &tensor));
    release(&longs);
    return ADDRESS(tensor);
}

/* Lets go of what a tensor or a function kept. */
static void forget(void *reference) {
    JNIEnv *env = environment();
    if (env != NULL) (*env)->DeleteGlobalRef(env, reference);
}

NATIVE(jlong, tensorBorrow, jobject data, jlongArray shape, jint dtype) {
    (void)self;
    Longs longs;
    RelaxideTensor *tensor = NULL;
    jobject kept = (*env)->NewGlobalRef(env, data);
    if (kept == NULL) return out_of_memory(env), 0;
    if (get(env, shape, &longs) != 0) return forget(kept), 0;
    void *address = (*env)->GetDirectBufferAddress(env, data);
    int code = relaxide_tensor_borrow(address, dims(&longs), longs.count, dtype_of(dtype), forget, kept, &tensor);
    release(&longs);
    if (failed(env, code)) forget(kept);
    return ADDRESS(tensor);
}

NATIVE(jlongArray, tensorDescribe, jlong tensor) {
    (void)self;
    RelaxideTensorInfo info;
    if (failed(env, relaxide_tensor_describe(HANDLE(RelaxideTensor, tensor), &info))) return NULL;
    jsize rank = (jsize)info.ndim;
    jlong head[] = {ADDRESS(info.data),   (jlong)(uint32_t)packed(info.dtype), info.device.type, (jlong)info.size,
                    (jlong)info.byte_size, rank};
    jsize first = sizeof head / sizeof head[0];
    jlongArray made = (*env)->NewLongArray(env, first + 2 * rank);
    if (made == NULL) return NULL;
    (*env)->SetLongArrayRegion(env, made, 0, first, head);
    (*env)->SetLongArrayRegion(env, made, first, rank, (const jlong *)info.shape);
    (*env)->SetLongArrayRegion(env, made, first + rank, rank, (const jlong *)info.strides);
    return made;
}

NATIVE(void, tensorFree, jlong tensor) {
    (void)env, (void)self;
    relaxide_tensor_free(HANDLE(RelaxideTensor, tensor));
}

NATIVE(jlong, bufferAddress, jobject buffer) {
    (void)self;
    return ADDRESS((*env)->GetDirectBufferAddress(env, buffer));
}

NATIVE(jobject, bufferAt, jlong address, jlong size) {
    (void)self;
    return (*env)->NewDirectByteBuffer(env, HANDLE(void, address), size);
}

/* Copies between memory and an array; the garbage collector waits meanwhile. */
static void copy(JNIEnv *env, jlong address, jarray array, jlong size, int out) {
    if (size == 0) return;
    void *items = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    if (items == NULL) {
        out_of_memory(env);
        return;
    }
    void *memory = HANDLE(void, address);
    memcpy(out ? items : memory, out ? memory : items, (size_t)size);
    (*env)->ReleasePrimitiveArrayCritical(env, array, items, out ? 0 : JNI_ABORT);
}

NATIVE(void, copyOut, jlong address, jobject array, jlong size) {
    (void)self;
    copy(env, address, array, size, 1);
}

NATIVE(void, copyIn, jlong address, jobject array, jlong size) {
    (void)self;
    copy(env, address, array, size, 0);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* The value that a call of relaxide_value_* made, or 0 with an exception. */
#define MADE(call)                        \
    RelaxideValue *value = NULL;          \
    (void)self;                           \
    failed(env, call);                    \
    return ADDRESS(value)

NATIVE(jlong, valueInt, jlong integer) {
    MADE(relaxide_value_int(integer, &value));
}

NATIVE(jlong, valueFloat, jdouble number) {
    MADE(relaxide_value_float(number, &value));
}

NATIVE(jlong, valueTensor, jlong tensor) {
    MADE(relaxide_value_tensor(HANDLE(RelaxideTensor, tensor), &value));
}

NATIVE(jlong, valueField, jlong tuple, jlong index) {
    MADE(relaxide_value_field(HANDLE(RelaxideValue, tuple), (size_t)index, &value));
}

NATIVE(jlong, valueStr, jbyteArray string) {
    (void)self;
    RelaxideValue *value = NULL;
    char *copy = text(env, string);
    if (copy != NULL) failed(env, relaxide_value_str(copy, &value));
    free(copy);
    return ADDRESS(value);
}

NATIVE(jlong, valueShape, jlongArray shape) {
    (void)self;
    Longs longs;
    RelaxideValue *value = NULL;
    if (get(env, shape, &longs) != 0) return 0;
    failed(env, relaxide_value_shape(dims(&longs), longs.count, &value));
    release(&longs);
    return ADDRESS(value);
}

NATIVE(jlong, valueTuple, jlongArray fields) {
    (void)self;
    Longs longs;
    RelaxideValue *value = NULL;
    if (get(env, fields, &longs) != 0) return 0;
    failed(env, relaxide_value_tuple(handles(&longs), longs.count, &value));
    release(&longs);
    return ADDRESS(value);
}

NATIVE(jint, valueKind, jlong value) {
    (void)self;
    RelaxideKind kind = RELAXIDE_NONE;
    failed(env, relaxide_value_kind(HANDLE(RelaxideValue, value), &kind));
    return (jint)kind;
}

NATIVE(jlong, valueAsInt, jlong value) {
    (void)self;
    int64_t integer = 0;
    failed(env, relaxide_value_as_int(HANDLE(RelaxideValue, value), &integer));
    return integer;
}

NATIVE(jdouble, valueAsFloat, jlong value) {
    (void)self;
    double number = 0;
    failed(env, relaxide_value_as_float(HANDLE(RelaxideValue, value), &number));
    return number;
}

NATIVE(jbyteArray, valueAsStr, jlong value) {
    (void)self;
    const char *string;
    return failed(env, relaxide_value_as_str(HANDLE(RelaxideValue, value), &string)) ? NULL : bytes(env, string);
}

NATIVE(jlongArray, valueAsShape, jlong value) {
    (void)self;
    const int64_t *shape;
    size_t rank;
    return failed(env, relaxide_value_as_shape(HANDLE(RelaxideValue, value), &shape, &rank)) ? NULL : long_array(env, shape, rank);
}

NATIVE(jlong, valueAsTensor, jlong value) {
    (void)self;
    RelaxideTensor *tensor = NULL;
    failed(env, relaxide_value_as_tensor(HANDLE(RelaxideValue, value), &tensor));
    return ADDRESS(tensor);
}

NATIVE(jlong, valueTupleSize, jlong value) {
    (void)self;
    size_t size = 0;
    failed(env, relaxide_value_tuple_size(HANDLE(RelaxideValue, value), &size));
    return (jlong)size;
}

NATIVE(void, valueFree, jlong value) {
    (void)env, (void)self;
    relaxide_value_free(HANDLE(RelaxideValue, value));
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

NATIVE(jlong, modelLoad, jbyteArray path) {
    (void)self;
    RelaxideModel *model = NULL;
    char *path_text = text(env, path);
    if (path_text != NULL) failed(env, relaxide_model_load(path_text, &model));
    free(path_text);
    return ADDRESS(model);
}

NATIVE(jlong, modelLoadWithWeights, jbyteArray path, jbyteArray weights) {
    (void)self;
    RelaxideModel *model = NULL;
    char *path_text = text(env, path), *weights_text = path_text == NULL ? NULL : text(env, weights);
    if (weights_text != NULL) failed(env, relaxide_model_load_with_weights(path_text, weights_text, &model));
    free(weights_text);
    free(path_text);
    return ADDRESS(model);
}

NATIVE(void, modelFree, jlong model) {
    (void)env, (void)self;
    relaxide_model_free(HANDLE(RelaxideModel, model));
}

NATIVE(jlong, modelNumFunctions, jlong model) {
    (void)self;
    size_t count = 0;
    failed(env, relaxide_model_num_functions(HANDLE(RelaxideModel, model), &count));
    return (jlong)count;
}

NATIVE(jbyteArray, modelFunctionName, jlong model, jlong index) {
    (void)self;
    RelaxideFunctionInfo info;
    return failed(env, relaxide_model_function(HANDLE(RelaxideModel, model), (size_t)index, &info)) ? NULL : bytes(env, info.name);
}

NATIVE(jlong, modelFunctionNumParams, jlong model, jlong index) {
    (void)self;
    RelaxideFunctionInfo info;
    return failed(env, relaxide_model_function(HANDLE(RelaxideModel, model), (size_t)index, &info)) ? 0 : (jlong)info.num_params;
}

/* Type, rank and dimensions of a parameter. */
static jlongArray type_of(JNIEnv *env, const RelaxideParamInfo *info) {
    jsize rank = info->ndim < 0 ? 0 : info->ndim;
    jlong head[] = {(jlong)(uint32_t)packed(info->dtype), info->ndim};
    jlongArray made = (*env)->NewLongArray(env, 2 + rank);
    if (made == NULL) return NULL;
    (*env)->SetLongArrayRegion(env, made, 0, 2, head);
    if (rank > 0) (*env)->SetLongArrayRegion(env, made, 2, rank, (const jlong *)info->dims);
    return made;
}

NATIVE(jobjectArray, modelParam, jlong model, jbyteArray function, jlong index) {
    (void)self;
    RelaxideParamInfo info;
    char *name = text(env, function);
    if (name == NULL) return NULL;
    int refused = failed(env, relaxide_model_param(HANDLE(RelaxideModel, model), name, (size_t)index, &info));
    free(name);
    jclass object = refused ? NULL : (*env)->FindClass(env, "java/lang/Object");
    jobjectArray made = object == NULL ? NULL : (*env)->NewObjectArray(env, 3, object, NULL);
    if (made == NULL) return NULL;
    jobject parts[3] = {bytes(env, info.name), NULL, NULL};
    if (parts[0] != NULL) parts[1] = bytes(env, info.annotation);
    if (parts[1] != NULL) parts[2] = type_of(env, &info);
    if (parts[2] == NULL) return NULL;
    for (jsize i = 0; i < 3; ++i) (*env)->SetObjectArrayElement(env, made, i, parts[i]);
    return made;
}

NATIVE(jlong, modelNumOutputNames, jlong model, jbyteArray function) {
    (void)self;
    size_t count = 0;
    char *name = text(env, function);
    if (name != NULL) failed(env, relaxide_model_num_output_names(HANDLE(RelaxideModel, model), name, &count));
    free(name);
    return (jlong)count;
}

NATIVE(jbyteArray, modelOutputName, jlong model, jbyteArray function, jlong index) {
    (void)self;
    const char *output;
    char *name = text(env, function);
    if (name == NULL) return NULL;
    int refused = failed(env, relaxide_model_output_name(HANDLE(RelaxideModel, model), name, (size_t)index, &output));
    free(name);
    return refused ? NULL : bytes(env, output);
}

NATIVE(jlong, modelCall, jlong model, jbyteArray function, jlongArray args) {
    (void)self;
    Longs longs;
    RelaxideValue *result = NULL;
    if (get(env, args, &longs) != 0) return 0;
    char *name = text(env, function);
    if (name != NULL) {
        failed(env, relaxide_model_call(HANDLE(RelaxideModel, model), name, handles(&longs), longs.count, &result));
    }
    free(name);
    release(&longs);
    return ADDRESS(result);
}

/* ---- Functions of Java that models call -------------------------------------------------------------------------- */

static int no_java(const char *why) {
    relaxide_error_set("RuntimeError", why);
    return -1;
}

static int enter(void *function, const RelaxideValue *const *args, size_t num_args, RelaxideValue **result) {
    JNIEnv *env = environment();
    if (env == NULL) return no_java("the Java virtual machine has ended, and a model calls a function of it");
    if ((*env)->PushLocalFrame(env, 4) != 0) {
        (*env)->ExceptionClear(env);
        return no_java("Java has no memory to call a registered function");
    }
    jlong made = relaxide_Native_FAILED;
    jlongArray lent = long_array(env, (const int64_t *)(const void *)args, num_args);
    if (lent != NULL) made = (*env)->CallStaticLongMethod(env, natives, enter_method, (jobject)function, lent);
    int broken = (*env)->ExceptionCheck(env);
    if (broken) (*env)->ExceptionClear(env);
    (*env)->PopLocalFrame(env, NULL);
    if (broken) return no_java("Java has no memory or no stack to call a registered function");
    if (made == relaxide_Native_FAILED) return -1;
    *result = HANDLE(RelaxideValue, made);
    return 0;
}

NATIVE(void, functionRegister, jbyteArray name, jobject function) {
    (void)self;
    jobject kept = (*env)->NewGlobalRef(env, function);
    if (kept == NULL) {
        out_of_memory(env);
        return;
    }
    char *name_text = text(env, name);
    if (name_text == NULL || failed(env, relaxide_function_register(name_text, enter, forget, kept))) forget(kept);
    free(name_text);
}

NATIVE(void, functionRemove, jbyteArray name) {
    (void)self;
    char *name_text = text(env, name);
    if (name_text != NULL) failed(env, relaxide_function_remove(name_text));
    free(name_text);
}
