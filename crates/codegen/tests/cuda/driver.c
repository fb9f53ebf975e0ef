/* A driver of CUDA's interface without a device: memory is the host's, and a module is a shared library whose kernels run one thread after
   the other. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void *raw;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, INVALID_IMAGE = 200 };

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

int cuLaunchKernel(raw function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz, unsigned shared, raw stream,
                   void **args, void **extra) {
    struct function *found = function;
    if (tx * ty * tz > 1024 || shared || extra) return INVALID_VALUE;
    int *at = dlsym(found->module, "thread_axes");
    for (at[0] = 0; at[0] < (int)bx; ++at[0])
        for (at[1] = 0; at[1] < (int)by; ++at[1])
            for (at[2] = 0; at[2] < (int)bz; ++at[2])
                for (at[3] = 0; at[3] < (int)tx; ++at[3])
                    for (at[4] = 0; at[4] < (int)ty; ++at[4])
                        for (at[5] = 0; at[5] < (int)tz; ++at[5]) found->run(args);
    return (void)stream, SUCCESS;
}
