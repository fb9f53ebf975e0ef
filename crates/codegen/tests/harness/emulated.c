/* Carries out calls of kernels for a test that runs on another machine: opens the library that it is given, reads calls
 * from its input and answers on its output. Both sides are little-endian; emulated.rs is the other side. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t type_index;
    uint32_t padding;
    uint64_t payload;
} Packed;

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct {
    void *sync;
    int32_t tasks;
} Group;

typedef int (*Task)(int32_t, const Group *, void *);
typedef int (*Entry)(void *, const Packed *, int32_t, Packed *);

static char error_kind[256], error_message[1 << 16];
static int open_workspaces;

static void set_raised(const char *kind, const char *message) {
    snprintf(error_kind, sizeof error_kind, "%s", kind);
    snprintf(error_message, sizeof error_message, "%s", message);
}

/* One task after the other: what matters is how the work is divided. */
static int launch(Task task, void *environment, int32_t tasks) {
    Group group = {NULL, tasks == 0 ? 3 : tasks};
    for (int32_t i = group.tasks - 1; i >= 0; --i) {
        int code = task(i, &group, environment);
        if (code != 0) return code;
    }
    return 0;
}

static int parallel_for(Task task, void *environment, int64_t extent) {
    return launch(task, environment, extent < 1 ? 1 : extent > 6 ? 6 : (int32_t)extent);
}

static void *allocate(int32_t device, int32_t id, uint64_t bytes, int32_t code, int32_t bits) {
    (void)device, (void)id, (void)code, (void)bits;
    if (bytes > (uint64_t)1 << 40) return NULL;
    void *memory = malloc(bytes + 1);
    if (memory) memset(memory, 0xff, bytes), ++open_workspaces;
    return memory;
}

static int release(int32_t device, int32_t id, void *memory) {
    (void)device, (void)id;
    free(memory);
    --open_workspaces;
    return 0;
}

static void take(void *to, size_t size) {
    if (size && fread(to, size, 1, stdin) != 1) exit(0);
}

static void give(const void *from, size_t size) {
    if (size) fwrite(from, size, 1, stdout);
}

static uint32_t take_count(void) {
    uint32_t count;
    take(&count, sizeof count);
    return count;
}

static void give_text(const char *text) {
    uint32_t length = strlen(text);
    give(&length, sizeof length);
    give(text, length);
}

static void *room(size_t size) {
    void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!memory) abort();
    return memory;
}

/* Reads the description of a tensor and its bytes; `memory` and `size` are where they are. */
static void take_tensor(DLTensor *tensor, char **memory, uint64_t *size) {
    uint8_t has_strides, is_null;
    take(&tensor->device_type, 4), take(&tensor->device_id, 4), take(&tensor->ndim, 4);
    take(&tensor->code, 1), take(&tensor->bits, 1), take(&tensor->lanes, 2);
    take(&tensor->byte_offset, 8), take(&has_strides, 1), take(&is_null, 1);
    tensor->shape = room(8 * tensor->ndim);
    take(tensor->shape, 8 * tensor->ndim);
    tensor->strides = has_strides ? room(8 * tensor->ndim) : NULL;
    if (has_strides) take(tensor->strides, 8 * tensor->ndim);
    take(size, 8);
    *memory = room(*size);
    take(*memory, *size);
    tensor->data = is_null ? NULL : *memory;
}

static void answer(void *library) {
    uint32_t length = take_count();
    char name[512];
    if (length >= sizeof name) abort();
    take(name, length);
    name[length] = 0;
    uint32_t tensors = take_count();
    DLTensor *described = room(tensors * sizeof *described);
    char **memory = room(tensors * sizeof *memory);
    uint64_t *sizes = room(tensors * sizeof *sizes);
    for (uint32_t i = 0; i < tensors; ++i) take_tensor(&described[i], &memory[i], &sizes[i]);
    uint32_t scalars = take_count();
    Packed *args = room((tensors + scalars) * sizeof *args), result = {0, 0, 0};
    for (uint32_t i = 0; i < tensors; ++i) args[i] = (Packed){7, 0, (uint64_t)&described[i]};
    take(args + tensors, scalars * sizeof *args);

    Entry entry = (Entry)dlsym(library, name);
    int32_t code = -1;
    error_kind[0] = error_message[0] = 0;
    if (entry) code = entry(NULL, args, tensors + scalars, &result);
    else set_raised("AttributeError", name);
    give(&code, 4), give_text(error_kind), give_text(error_message);
    give(&result, sizeof result), give(&open_workspaces, 4);
    for (uint32_t i = 0; i < tensors; ++i) {
        give(memory[i], sizes[i]);
        free(memory[i]), free(described[i].shape), free(described[i].strides);
    }
    fflush(stdout);
    free(described), free(memory), free(sizes), free(args);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void *function;
    } slots[] = {{"__RelaxideParallelFor", parallel_for},
                 {"__TVMFFIErrorSetRaisedFromCStr", set_raised},
                 {"__TVMBackendParallelLaunch", launch},
                 {"__TVMBackendAllocWorkspace", allocate},
                 {"__TVMBackendFreeWorkspace", release}};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "a library is expected");
        return 1;
    }
    for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
        void **slot = dlsym(library, slots[i].name);
        if (slot) *slot = slots[i].function;
    }
    for (;;) answer(library);
}
