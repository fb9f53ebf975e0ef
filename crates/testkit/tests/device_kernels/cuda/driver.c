/* A driver of CUDA's interface without a device: memory is the host's, and a module is a shared library whose kernels run on the processor.
   The threads of a block run one after the other, each to its end or to its next barrier; when all of them are there, they go on. A block
   whose threads do not all come to a barrier is an error, as it would be a hang. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

typedef void *raw;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, INVALID_IMAGE = 200, LAUNCH_FAILED = 719 };

int cuInit(unsigned flags) { return flags == 0 ? SUCCESS : INVALID_VALUE; }
int cuDriverGetVersion(int *version) { *version = 12080; return SUCCESS; }
int cuGetErrorName(int code, const char **name) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : NULL;
    return *name ? SUCCESS : INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) { *text = "said by a driver without a device"; return (void)code, SUCCESS; }
int cuDeviceGetCount(int *count) { *count = 2; return SUCCESS; }
int cuDeviceGet(int *device, int number) { *device = number; return number < 2 ? SUCCESS : INVALID_VALUE; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "no device %d", device); return SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1 << 30; return (void)device, SUCCESS; }
int cuDeviceGetAttribute(int *value, int what, int device) {
    *value = what == 1 ? 1024 : what == 75 ? 8 : what == 10 ? 32 : 0;
    return (void)device, SUCCESS;
}
int cuDevicePrimaryCtxRetain(raw *context, int device) { *context = (raw)(uintptr_t)(device + 1); return SUCCESS; }
static _Thread_local raw current;
int cuCtxSetCurrent(raw context) { current = context; return SUCCESS; }
int cuMemGetInfo_v2(size_t *unused, size_t *all) { *unused = 1 << 29; *all = 1 << 30; return SUCCESS; }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    void *memory = NULL;
    if (!current) return INVALID_VALUE;
    if (bytes > 1 << 30 || posix_memalign(&memory, 256, bytes)) return OUT_OF_MEMORY;
    *address = (uintptr_t)memory;
    return SUCCESS;
}
int cuMemFree_v2(uint64_t address) { free((void *)address); return SUCCESS; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, raw stream) { memcpy((void *)to, from, bytes); return (void)stream, SUCCESS; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, raw stream) { memcpy(to, (void *)from, bytes); return (void)stream, SUCCESS; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, raw stream) { memcpy((void *)to, (void *)from, bytes); return (void)stream, SUCCESS; }
int cuMemcpyPeerAsync(uint64_t to, raw there, uint64_t from, raw here, size_t bytes, raw stream) {
    memcpy((void *)to, (void *)from, bytes);
    return (void)stream, there != here ? SUCCESS : INVALID_VALUE;
}
int cuStreamCreate(raw *stream, unsigned flags) { *stream = malloc(1); return flags == 1 ? SUCCESS : INVALID_VALUE; }
int cuStreamDestroy_v2(raw stream) { free(stream); return SUCCESS; }
int cuStreamSynchronize(raw stream) { return (void)stream, SUCCESS; }
int cuStreamWaitEvent(raw stream, raw event, unsigned flags) { return (void)stream, event && flags == 0 ? SUCCESS : INVALID_VALUE; }
int cuEventCreate(raw *event, unsigned flags) { *event = malloc(1); return flags == 2 ? SUCCESS : INVALID_VALUE; }
int cuEventRecord(raw event, raw stream) { return (void)stream, event ? SUCCESS : INVALID_VALUE; }
int cuEventDestroy_v2(raw event) { free(event); return SUCCESS; }

/* The ELF header says where the section headers begin, which end the file. */
static size_t size_of_library(const unsigned char *code) {
    uint64_t headers;
    uint16_t size, count;
    memcpy(&headers, code + 40, 8), memcpy(&size, code + 58, 2), memcpy(&count, code + 60, 2);
    return headers + (size_t)size * count;
}

int cuModuleLoadDataEx(raw *module, const void *code, unsigned count, int *options, void **values) {
    if (memcmp(code, "\177ELF", 4) != 0) {
        if (count == 2 && options[0] == 5) snprintf(values[0], (size_t)values[1], "line 1: this is no code");
        return INVALID_IMAGE;
    }
    char path[64];
    int file = memfd_create("kernels", 0);
    size_t size = size_of_library(code);
    if (file < 0 || write(file, code, size) != (ssize_t)size) return INVALID_IMAGE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    /* The file stays open: the loader knows libraries by their paths, and the next one must have another. */
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleUnload(raw module) { return dlclose(module) == 0 ? SUCCESS : INVALID_VALUE; }

struct function { raw module; void (*run)(void **); };

int cuModuleGetFunction(raw *function, raw module, const char *name) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s_emulated", name);
    struct function *found = malloc(sizeof *found);
    found->module = module;
    found->run = (void (*)(void **))dlsym(module, symbol);
    *function = found;
    return found->run ? SUCCESS : NOT_FOUND;
}

/* A thread of a block, with a stack of its own. */
enum { MOST_THREADS = 1024, STACK = 1 << 20 };
struct thread { ucontext_t state; int at[3]; int done; };

static struct thread threads[MOST_THREADS];
static char *stacks;
static ucontext_t scheduler;
static struct thread *running;
static void (*kernel)(void **);
static void **kernel_args;

static void begin(void) {
    kernel(kernel_args);
    running->done = 1;
}

/* What kernels call: the thread waits until all others have come as far. */
static void barrier(void) { swapcontext(&running->state, &scheduler); }

/* What the threads of a warp do together: each says what it has, all wait, and each takes its part of the result. Written after the
 * description of `mma.sync` and `ldmatrix` in the PTX manual. */
union word { uint32_t bits; float single; int32_t whole; int8_t bytes[4]; uint8_t positive[4]; _Float16 half[2]; uint16_t brain[2]; const uint32_t *row; };
static union word given[MOST_THREADS][16];  /* Each is as wide as a pointer. */

static double factor(union word word, int at, const char *type) {
    union word brain;
    if (!strcmp(type, "f16")) return word.half[at];
    if (!strcmp(type, "bf16")) return brain.bits = (uint32_t)word.brain[at] << 16, brain.single;
    if (!strcmp(type, "tf32")) return word.single;
    return !strcmp(type, "s8") ? word.bytes[at] : word.positive[at];
}

static void multiply(const char *name, union word (*warp)[16], int lane, uint32_t *result) {
    const char *left = strstr(name, ".f32") ? "f16" : strstr(name, ".bf16") ? "bf16" : strstr(name, ".tf32") ? "tf32" : strstr(name, ".col.s8") ? "s8" : "u8";
    const char *right = strstr(name, ".s8.u8") ? "u8" : strstr(name, ".u8.s8") ? "s8" : left;
    int width = !strcmp(left, "tf32") ? 1 : left[0] == 's' || left[0] == 'u' ? 4 : 2;
    for (int i = 0; i < 4; ++i) {
        int row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
        double sum = 0;
        for (int k = 0; k < 8 * width; ++k) {
            int half = k / (4 * width), within = k % (4 * width);
            int of_a = row % 8 * 4 + within / width, of_b = column * 4 + within / width;
            double a = factor(warp[of_a][2 * half + (row >= 8)], within % width, left);
            sum += a * factor(warp[of_b][4 + half], within % width, right);
        }
        union word made;
        if (width == 4) made.whole = warp[lane][6 + i].whole + (int32_t)sum;
        else made.single = (float)(warp[lane][6 + i].single + sum);
        result[i] = made.bits;
    }
}

static void load_matrices(const char *name, union word (*warp)[16], int lane, uint16_t *result) {
    int count = strstr(name, ".x4") ? 4 : strstr(name, ".x2") ? 2 : 1, turned = strstr(name, ".trans") != NULL;
    for (int matrix = 0; matrix < count; ++matrix)
        for (int i = 0; i < 2; ++i) {
            int row = lane / 4, column = lane % 4 * 2 + i;
            const uint16_t *of = (const uint16_t *)warp[matrix * 8 + (turned ? column : row)][0].row;
            result[matrix * 2 + i] = of[turned ? row : column];
        }
}

static void warp(const char *name, const void *words, void *result) {
    int number = (int)(running - threads), lane = number % 32;
    memcpy(given[number], words, sizeof given[number]);
    barrier();
    if (strstr(name, "shfl")) {
        /* Places and the last thread of a part, below the bits that say the part. */
        union word *own = given[number];
        uint32_t last = own[3].bits & 31, part = own[3].bits >> 8 & 31, from = (uint32_t)lane + own[2].bits;
        uint32_t most = ((uint32_t)lane & part) | (last & ~part);
        *(uint32_t *)result = given[from <= most ? number + (int)own[2].bits : number][1].bits;
    } else if (strstr(name, "ldmatrix")) load_matrices(name, given + number - lane, lane, result);
    else multiply(name, given + number - lane, lane, result);
    barrier();
}

/* Runs the threads of one block; the numbers of the thread that runs are where the kernel reads them. */
static int run_block(int *at, const unsigned *size) {
    unsigned count = 0, left;
    for (unsigned x = 0; x < size[0]; ++x)
        for (unsigned y = 0; y < size[1]; ++y)
            for (unsigned z = 0; z < size[2]; ++z, ++count) {
                struct thread *thread = &threads[count];
                *thread = (struct thread){.at = {(int)x, (int)y, (int)z}};
                getcontext(&thread->state);
                thread->state.uc_stack.ss_sp = stacks + (size_t)count * STACK;
                thread->state.uc_stack.ss_size = STACK;
                thread->state.uc_link = &scheduler;
                makecontext(&thread->state, begin, 0);
            }
    do {
        left = 0;
        for (unsigned number = 0; number < count; ++number) {
            running = &threads[number];
            if (running->done) continue;
            memcpy(at, running->at, sizeof running->at);
            swapcontext(&scheduler, &running->state);
            left += !running->done;
        }
    } while (left && left == count);
    return left == 0 ? SUCCESS : LAUNCH_FAILED;
}

int cuLaunchKernel(raw function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz, unsigned shared, raw stream,
                   void **args, void **extra) {
    struct function *found = function;
    const unsigned size[] = {tx, ty, tz};
    if (tx * ty * tz > MOST_THREADS || shared || extra) return INVALID_VALUE;
    if (!stacks) {
        void *memory = mmap(NULL, (size_t)MOST_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return OUT_OF_MEMORY;
        stacks = memory;
    }
    int *at = dlsym(found->module, "thread_axes");
    void (**wait)(void) = dlsym(found->module, "barrier_of_block");
    void (**together)(const char *, const void *, void *) = dlsym(found->module, "warp_of_block");
    if (!at || !wait || !together) return INVALID_IMAGE;
    *wait = barrier, *together = warp, kernel = found->run, kernel_args = args;
    for (at[0] = 0; at[0] < (int)bx; ++at[0])
        for (at[1] = 0; at[1] < (int)by; ++at[1])
            for (at[2] = 0; at[2] < (int)bz; ++at[2]) {
                int code = run_block(at + 3, size);
                if (code) return code;
            }
    return (void)stream, SUCCESS;
}
