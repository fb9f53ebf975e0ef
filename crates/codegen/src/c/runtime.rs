//! What kernels in C share with whatever calls them: packed values, errors, memory, threads.
//!
//! A file can be compiled in three ways, which it distinguishes by macros:
//!
//! | macro | who calls the kernels | how they reach the runtime |
//! | --- | --- | --- |
//! | none | a program that `librelaxide_runtime` is linked into | by calls |
//! | `RELAXIDE_SHARED_LIBRARY` | a loader of libraries, Relaxide's or TVM's | through pointers that the loader fills |
//! | `RELAXIDE_NO_RUNTIME` | a program without a runtime, on a small board | not: memory comes from `malloc`, loops are serial |

use super::{code::string, source::Source};
use crate::shared::LIBRARY_CONTEXT;

/// Packed values and tensors, as the interface has them.
pub(crate) fn values(source: &mut Source) {
    source.helper("rx_value", |_| VALUES.into());
}

/// A function that makes a packed value: `none`, `int`, `bool`, `float`, `pointer`, `text` or `tensor`.
pub(crate) fn constructor(source: &mut Source, name: &'static str) {
    values(source);
    let (function, params, index, member, value) = match name {
        "int" => ("rx_int", "int64_t value", 1, "integer", "value"),
        "bool" => ("rx_bool", "bool value", 2, "integer", "value"),
        "float" => ("rx_float", "double value", 3, "number", "value"),
        "pointer" => ("rx_pointer", "void *value", 4, "pointer", "value"),
        "text" => ("rx_text", "const char *value", 8, "text", "value"),
        "tensor" => ("rx_borrow", "rx_tensor *value", 7, "pointer", "value"),
        _ => ("rx_none", "void", 0, "integer", "0"),
    };
    source.helper(function, |_| {
        format!(
            "static inline rx_value {function}({params}) {{\n    rx_value packed;\n    packed.type_index = {index};\n    \
             packed.padding = 0;\n    packed.value.integer = 0;\n    packed.value.{member} = {value};\n    \
             return packed;\n}}\n"
        )
    });
}

/// Raising of errors: `rx_raise(kind, message)`.
pub(crate) fn raise(source: &mut Source) {
    source.helper("rx_raise", |_| RAISE.into());
}

/// Messages of three pieces: `rx_refuse(kind, what, signature, expected)`, which gives -1.
pub(crate) fn refuse(source: &mut Source) {
    raise(source);
    source.helper("rx_append", |_| APPEND.into());
    source.helper("rx_refuse", |_| REFUSE.into());
}

/// An error whose text has two numbers in it: `rx_told(kind, before, first, between, second, behind)`.
pub(crate) fn told(source: &mut Source) {
    raise(source);
    source.helper("rx_append", |_| APPEND.into());
    source.helper("rx_told", |_| TOLD.into());
}

/// Memory for large buffers: `rx_allocate(bytes, type code, bits)` and `rx_free(memory)`.
pub(crate) fn workspace(source: &mut Source) {
    source.helper("rx_allocate", |_| WORKSPACE.into());
}

/// Threads: `rx_parallel(task, environment, extent, worth)` and `rx_share(…)`.
pub(crate) fn parallel(source: &mut Source) {
    source.helper("rx_parallel", |_| PARALLEL.into());
}

/// Lists of values: `rx_set_item(place, value)`.
pub(crate) fn set_item(source: &mut Source) {
    values(source);
    source.helper("rx_set_item", |_| SET_ITEM.into());
}

/// The function that calls a registered one; it is looked up at the first call.
pub(crate) fn caller_of(source: &mut Source, name: &str, kernel: &str) -> String {
    values(source);
    raise(source);
    source.helper("rx_call", |_| CALL.replace("{context}", LIBRARY_CONTEXT));
    let key = format!("rx_call {name}");
    let function = format!("rx_call_{}", super::names::identifier(name));
    let taken = source.callers.iter().filter(|(known, caller)| *known != name && caller.starts_with(&function)).count();
    let function = source
        .callers
        .entry(name.to_string())
        .or_insert_with(|| if taken == 0 { function.clone() } else { format!("{function}_{taken}") })
        .clone();
    let missing = string(&format!("{kernel}: no runtime is there to call `{name}`"));
    let (text, name) = (function.clone(), string(name));
    source.helper(key, |_| CALLER.replace("{f}", &text).replace("{name}", &name).replace("{missing}", &missing));
    function
}

const VALUES: &str = "typedef struct {
    int32_t type_index;
    uint32_t padding;
    union {
        int64_t integer;
        double number;
        void *pointer;
        const char *text;
    } value;
} rx_value;

typedef struct {
    void *data;
    struct {
        int32_t type;
        int32_t number;
    } device;
    int32_t ndim;
    struct {
        uint8_t code;
        uint8_t bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} rx_tensor;
";

const RAISE: &str = "#if defined(RELAXIDE_NO_RUNTIME)
/* A program defines RELAXIDE_ON_ERROR(kind, message) to hear of errors. */
static inline void rx_raise(const char *kind, const char *message) {
#ifdef RELAXIDE_ON_ERROR
    RELAXIDE_ON_ERROR(kind, message);
#else
    (void)kind;
    (void)message;
#endif
}
#elif defined(RELAXIDE_SHARED_LIBRARY)
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);
static inline void rx_raise(const char *kind, const char *message) {
    if (__TVMFFIErrorSetRaisedFromCStr != NULL) __TVMFFIErrorSetRaisedFromCStr(kind, message);
}
#else
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
static inline void rx_raise(const char *kind, const char *message) {
    TVMFFIErrorSetRaisedFromCStr(kind, message);
}
#endif
";

const APPEND: &str = "static char *rx_append(char *end, const char *text) {
    while (*text != '\\0') *end++ = *text++;
    *end = '\\0';
    return end;
}
";

const REFUSE: &str =
    "static int rx_refuse(const char *kind, const char *what, const char *signature, const char *expected) {
    char message[RX_LONGEST_MESSAGE];
    rx_append(rx_append(rx_append(message, what), signature), expected);
    rx_raise(kind, message);
    return -1;
}
";

const TOLD: &str = "static char *rx_append_number(char *end, int64_t number) {
    char digits[24];
    int count = 0;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0) *end++ = '-';
    do {
        digits[count++] = (char)('0' + (char)(rest % 10));
        rest /= 10;
    } while (rest != 0);
    while (count > 0) *end++ = digits[--count];
    *end = '\\0';
    return end;
}

static void rx_told(const char *kind, const char *before, int64_t first, const char *between, int64_t second, const char *behind) {
    char message[RX_LONGEST_MESSAGE];
    char *end = rx_append_number(rx_append(rx_append_number(rx_append(message, before), first), between), second);
    rx_append(end, behind);
    rx_raise(kind, message);
}
";

const WORKSPACE: &str = "#if defined(RELAXIDE_NO_RUNTIME)
#include <stdlib.h>
static inline void *rx_allocate(int64_t bytes, int code, int bits) {
    (void)code;
    (void)bits;
    return bytes < 0 || (uint64_t)bytes > SIZE_MAX ? NULL : malloc(bytes == 0 ? 1 : (size_t)bytes);
}
static inline void rx_free(void *memory) {
    free(memory);
}
#else
#if defined(RELAXIDE_SHARED_LIBRARY)
void *(*__TVMBackendAllocWorkspace)(int device, int number, uint64_t bytes, int code, int bits);
int (*__TVMBackendFreeWorkspace)(int device, int number, void *memory);
#define TVMBackendAllocWorkspace __TVMBackendAllocWorkspace
#define TVMBackendFreeWorkspace __TVMBackendFreeWorkspace
#else
void *TVMBackendAllocWorkspace(int device, int number, uint64_t bytes, int code, int bits);
int TVMBackendFreeWorkspace(int device, int number, void *memory);
#endif
static inline void *rx_allocate(int64_t bytes, int code, int bits) {
    return TVMBackendAllocWorkspace(1, 0, (uint64_t)bytes, code, bits);
}
static inline void rx_free(void *memory) {
    TVMBackendFreeWorkspace(1, 0, memory);
}
#endif
";

const PARALLEL: &str = "typedef struct {
    void *sync;
    int32_t tasks;
} rx_group;

typedef int rx_task(int32_t task, const rx_group *group, void *environment);

/* The iterations of one task: from `first` below `last`. */
static inline void rx_share(int32_t task, const rx_group *group, int64_t extent, int64_t *first, int64_t *last) {
    int64_t tasks = group->tasks > 1 ? group->tasks : 1;
    *first = task * extent / tasks;
    *last = (task + (int64_t)1) * extent / tasks;
}

#if !defined(RELAXIDE_NO_RUNTIME)
#if defined(RELAXIDE_SHARED_LIBRARY)
int (*__RelaxideParallelFor)(rx_task *task, void *environment, int64_t extent);
int (*__TVMBackendParallelLaunch)(rx_task *task, void *environment, int32_t tasks);
#else
int RelaxideParallelFor(rx_task *task, void *environment, int64_t extent);
#endif
#endif

/* Runs all tasks of a loop, on threads if that is worth it and there are any. */
static int rx_parallel(rx_task *task, void *environment, int64_t extent, bool worth) {
    const rx_group alone = {NULL, 1};
#if defined(RELAXIDE_NO_RUNTIME)
    (void)extent;
    (void)worth;
#elif defined(RELAXIDE_SHARED_LIBRARY)
    if (worth && __RelaxideParallelFor != NULL) return __RelaxideParallelFor(task, environment, extent);
    if (worth && __TVMBackendParallelLaunch != NULL) return __TVMBackendParallelLaunch(task, environment, 0);
#else
    if (worth) return RelaxideParallelFor(task, environment, extent);
#endif
    return task(0, &alone, environment);
}
";

const CALL: &str = "#if defined(RELAXIDE_SHARED_LIBRARY)
int (*__TVMFFIEnvModLookupFromImports)(void *library, const char *name, void **function);
int (*__TVMFFIHandleInitOnce)(void **handle, int (*find)(void **function));
int (*__TVMFFIFunctionCall)(void *function, rx_value *args, int32_t count, rx_value *result);
void *{context};
#elif !defined(RELAXIDE_NO_RUNTIME)
int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **function);
int TVMFFIHandleInitOnce(void **handle, int (*find)(void **function));
int TVMFFIFunctionCall(void *function, rx_value *args, int32_t count, rx_value *result);
static void *{context};
#endif

/* Calls what a handle holds, which is looked up at the first call. */
static int rx_call(void **handle, int (*find)(void **), const char *missing, rx_value *args, int32_t count,
                   rx_value *result) {
#if defined(RELAXIDE_NO_RUNTIME)
    (void)handle;
    (void)find;
    (void)args;
    (void)count;
    (void)result;
    rx_raise(\"RuntimeError\", missing);
    return -1;
#elif defined(RELAXIDE_SHARED_LIBRARY)
    if (__TVMFFIHandleInitOnce == NULL) {
        rx_raise(\"RuntimeError\", missing);
        return -1;
    }
    if (__TVMFFIHandleInitOnce(handle, find) != 0) return -1;
    return __TVMFFIFunctionCall(*handle, args, count, result);
#else
    (void)missing;
    if (TVMFFIHandleInitOnce(handle, find) != 0) return -1;
    return TVMFFIFunctionCall(*handle, args, count, result);
#endif
}

static inline int rx_find(const char *name, void **function) {
#if defined(RELAXIDE_NO_RUNTIME)
    (void)name;
    (void)function;
    return -1;
#elif defined(RELAXIDE_SHARED_LIBRARY)
    return __TVMFFIEnvModLookupFromImports({context}, name, function);
#else
    return TVMFFIEnvModLookupFromImports({context}, name, function);
#endif
}
";

const CALLER: &str = "static int {f}_find(void **function) {
    return rx_find({name}, function);
}

static int {f}(rx_value *args, int32_t count, rx_value *result) {
    static void *handle;
    return rx_call(&handle, {f}_find, {missing}, args, count, result);
}
";

/// Type indices from 64 on are objects', which count their references: strong ones in the lower half of the first word, weak
/// ones (of which all strong ones together are one) in the upper half. Who gives up the last of a kind calls the deleter, with
/// 1 for the value, 2 for the memory.
const SET_ITEM: &str = "#include <stdatomic.h>

typedef struct {
    _Atomic uint64_t references;
    int32_t type_index;
    uint32_t padding;
    void (*deleter)(void *object, int what);
} rx_object;

static void rx_release(rx_object *object) {
    const uint64_t one_weak = UINT64_C(1) << 32;
    uint64_t before = atomic_fetch_sub(&object->references, 1);
    if ((uint32_t)before != 1 || object->deleter == NULL) return;
    if (before == one_weak + 1) {
        object->deleter(object, 3);
        return;
    }
    object->deleter(object, 1);
    if (atomic_fetch_sub(&object->references, one_weak) >> 32 == 1) object->deleter(object, 2);
}

/* Moves a value into a list. */
static void rx_set_item(rx_value *place, rx_value value) {
    rx_value old = *place;
    *place = value;
    if (old.type_index >= 64) rx_release(old.value.pointer);
}
";
