/* Runs `main` of a compiled model on .npy files and writes its results as .npy files: a runner to ship with a model.
 *
 * With the model in a file, which needs the shared runtime or, with -rdynamic, the static one:
 *
 *     cc -O2 -I crates/capi/include -o relaxide-run examples/c/run.c -L target/release -lrelaxide_runtime
 *     ./relaxide-run model.so -o results ids.npy mask=mask.npy
 *
 * With the model inside, as one static program that needs no file, no library and no loader:
 *
 *     relaxide compile model.onnx -o model.o --prefix model_
 *     cc -O2 -static -DMODEL='"model_"' -I crates/capi/include -o model examples/c/run.c model.o target/release/librelaxide_runtime.a -lm
 *     ./model -o results ids.npy mask=mask.npy
 *
 * Files are inputs in order, or by name. Results have the names that the model gives them. -t THREADS says how many threads kernels
 * use, -w FILE where weights are that are not in the model nor in the file beside it.
 */
#include "relaxide.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_INPUTS 64
#define MAX_OUTPUTS 64
#define MAX_RANK 32
#define MAX_PATH 4096

static int failed(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", what, relaxide_error_kind(), relaxide_error_message());
    return 1;
}

static int refused(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

/* ---- .npy files: a magic number, the length of a header, the header as a Python dictionary, the elements ---------- */

/* What follows a key in the header. */
static const char *field(const char *header, const char *key) {
    const char *at = strstr(header, key);
    if (at == NULL || (at = strchr(at + strlen(key), ':')) == NULL) return NULL;
    for (++at; *at == ' '; ++at) continue;
    return at;
}

/* The type that NumPy calls '<f4' is float32 here. */
static int parse_dtype(const char *descr, RelaxideDType *dtype) {
    char name[16];
    char kind = descr[0] == '\'' ? descr[2] : 0;
    unsigned long bytes = kind != 0 ? strtoul(descr + 3, NULL, 10) : 0;
    const char *kinds = kind == 'f' ? "float" : kind == 'i' ? "int" : kind == 'u' ? "uint" : NULL;
    if (kind == 'b' && bytes == 1) return relaxide_dtype_parse("bool", dtype);
    if (kinds == NULL || bytes == 0 || bytes > 8 || descr[1] == '>') return -1;
    snprintf(name, sizeof name, "%s%lu", kinds, bytes * 8);
    return relaxide_dtype_parse(name, dtype);
}

/* A shape as (2, 3) or (5,). */
static int parse_shape(const char *text, int64_t *shape, size_t *rank) {
    *rank = 0;
    if (*text++ != '(') return -1;
    while (*text != ')') {
        char *end;
        if (*rank == MAX_RANK || !isdigit((unsigned char)*text)) return -1;
        shape[(*rank)++] = strtoll(text, &end, 10);
        for (text = end; *text == ' ' || *text == ','; ++text) continue;
    }
    return 0;
}

static int read_elements(FILE *file, const char *path, const char *header, RelaxideTensor **tensor) {
    const char *descr = field(header, "'descr'"), *order = field(header, "'fortran_order'"), *dims = field(header, "'shape'");
    RelaxideDType dtype;
    RelaxideTensorInfo info;
    int64_t shape[MAX_RANK];
    size_t rank;
    if (descr == NULL || order == NULL || dims == NULL || parse_shape(dims, shape, &rank) != 0)
        return refused(path, "the header is not that of an .npy file");
    if (strncmp(order, "True", 4) == 0 && rank > 1) return refused(path, "it is stored in Fortran order");
    if (parse_dtype(descr, &dtype) != 0) return refused(path, "its elements are no little-endian numbers or truth values");
    if (relaxide_tensor_new(shape, rank, dtype, tensor) != 0) return failed(path);
    if (relaxide_tensor_describe(*tensor, &info) != 0) return failed(path);
    if (fread(info.data, 1, info.byte_size, file) != info.byte_size) return refused(path, "the file is cut off");
    return 0;
}

static int read_npy(const char *path, RelaxideTensor **tensor) {
    unsigned char head[12];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return perror(path), 1;
    int code = 1;
    if (fread(head, 1, 10, file) == 10 && memcmp(head, "\x93NUMPY", 6) == 0) {
        size_t length = head[8] | (size_t)head[9] << 8;
        if (head[6] > 1 && fread(head + 10, 1, 2, file) == 2) length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
        char *header = length < 1 << 20 ? calloc(1, length + 1) : NULL;
        if (header != NULL && fread(header, 1, length, file) == length) code = read_elements(file, path, header, tensor);
        else refused(path, "the file is cut off");
        free(header);
    } else {
        refused(path, "this is no .npy file");
    }
    fclose(file);
    return code;
}

static int write_npy(const char *path, const RelaxideTensorInfo *info) {
    char header[1024];
    char kind = info->dtype.code == 0 ? 'i' : info->dtype.code == 1 ? 'u' : info->dtype.code == 2 ? 'f' : info->dtype.code == 6 ? 'b' : 0;
    if (kind == 0 || info->dtype.bits % 8 != 0) return refused(path, "NumPy has no such elements");
    int at = snprintf(header, sizeof header, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", info->dtype.bits > 8 ? '<' : '|',
                      kind, info->dtype.bits / 8);
    for (size_t i = 0; i < info->ndim && i < MAX_RANK; ++i)
        at += snprintf(header + at, sizeof header - (size_t)at, "%lld, ", (long long)info->shape[i]);
    at += snprintf(header + at, sizeof header - (size_t)at, "), }");
    /* Elements begin at a multiple of 64. */
    while ((10 + at + 1) % 64 != 0) header[at++] = ' ';
    header[at++] = '\n';
    unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(at & 255), (unsigned char)(at >> 8)};
    FILE *file = fopen(path, "wb");
    if (file == NULL) return perror(path), 1;
    int whole = fwrite(head, 1, 10, file) == 10 && fwrite(header, 1, (size_t)at, file) == (size_t)at &&
                fwrite(info->data, 1, info->byte_size, file) == info->byte_size;
    if (fclose(file) != 0 || !whole) return perror(path), 1;
    return 0;
}

/* ---- The model ------------------------------------------------------------------------------------------------- */

static int open_model(int argc, char **argv, int *next, RelaxideModel **model) {
    const char *weights = NULL;
    for (int i = 1; i + 1 < argc; ++i)
        if (strcmp(argv[i], "-w") == 0) weights = argv[i + 1];
    int code;
#ifdef MODEL
    const char *path = "the model inside";
    (void)next;
    code = weights ? relaxide_model_linked_with_weights(MODEL, weights, model) : relaxide_model_linked(MODEL, model);
#else
    if (*next >= argc) return refused("usage", "relaxide-run MODEL.so [-t THREADS] [-w WEIGHTS] [-o FOLDER] [NAME=]FILE.npy …");
    const char *path = argv[(*next)++];
    code = weights ? relaxide_model_load_with_weights(path, weights, model) : relaxide_model_load(path, model);
#endif
    return code != 0 ? failed(path) : 0;
}

/* The place of an input among those of `main`: that of its name, or else the first that is empty. */
static int place(const RelaxideModel *model, size_t params, RelaxideTensor *const *inputs, const char **file, size_t *index) {
    RelaxideParamInfo info;
    const char *equals = strchr(*file, '=');
    for (*index = 0; *index < params; ++*index) {
        if (relaxide_model_param(model, "main", *index, &info) != 0) return failed("main");
        if (equals == NULL) {
            if (inputs[*index] == NULL) return 0;
        } else if (strlen(info.name) == (size_t)(equals - *file) && strncmp(info.name, *file, (size_t)(equals - *file)) == 0) {
            *file = equals + 1;
            return 0;
        }
    }
    return refused(*file, equals == NULL ? "main takes fewer inputs" : "main has no input of that name");
}

static size_t count_params(const RelaxideModel *model) {
    RelaxideFunctionInfo info;
    size_t count = 0;
    if (relaxide_model_num_functions(model, &count) != 0) return 0;
    for (size_t i = 0; i < count; ++i)
        if (relaxide_model_function(model, i, &info) == 0 && strcmp(info.name, "main") == 0) return info.num_params;
    return 0;
}

/* Where a result is written: its name of letters, digits and a few signs, or its number. */
static void result_path(const RelaxideModel *model, const char *folder, size_t index, char *path) {
    const char *name = NULL;
    size_t names = 0;
    relaxide_model_num_output_names(model, "main", &names);
    if (index < names) relaxide_model_output_name(model, "main", index, &name);
    int at = snprintf(path, MAX_PATH - 8, "%s/", folder);
    if (at > MAX_PATH - 512) at = MAX_PATH - 512;
    if (name == NULL || *name == 0) {
        sprintf(path + at, "output_%zu.npy", index);
        return;
    }
    for (int i = 0; name[i] != 0 && i < 250; ++i) path[at++] = isalnum((unsigned char)name[i]) || strchr("._-", name[i]) ? name[i] : '_';
    strcpy(path + at, ".npy");
}

static int run(const RelaxideModel *model, RelaxideTensor *const *inputs, size_t params, const char *folder) {
    RelaxideTensor *outputs[MAX_OUTPUTS];
    size_t count = MAX_OUTPUTS;
    if (relaxide_model_run(model, "main", (const RelaxideTensor *const *)inputs, params, outputs, &count) != 0) return failed("main");
    int code = 0;
    /* Where it is there, or cannot be made, the files say so. */
    mkdir(folder, 0777);
    for (size_t i = 0; i < count; ++i) {
        RelaxideTensorInfo info;
        char path[MAX_PATH];
        result_path(model, folder, i, path);
        if (relaxide_tensor_describe(outputs[i], &info) != 0) code = failed(path);
        else if (write_npy(path, &info) != 0) code = 1;
        else printf("wrote %s: %zu elements\n", path, info.size);
        relaxide_tensor_free(outputs[i]);
    }
    return code;
}

int main(int argc, char **argv) {
    RelaxideModel *model = NULL;
    RelaxideTensor *inputs[MAX_INPUTS] = {NULL};
    const char *folder = ".";
    int next = 1;
    if (open_model(argc, argv, &next, &model) != 0) return 1;
    size_t params = count_params(model);
    if (params > MAX_INPUTS) return refused("main", "it takes more inputs than this program hands over");
    int code = 0;
    for (; next < argc && code == 0; ++next) {
        const char *word = argv[next];
        size_t index;
        if (strcmp(word, "-o") == 0 && next + 1 < argc) folder = argv[++next];
        else if (strcmp(word, "-w") == 0 && next + 1 < argc) ++next; /* taken when the model was opened */
        else if (strcmp(word, "-t") == 0 && next + 1 < argc) {
            if (relaxide_set_num_threads(atoi(argv[++next])) != 0) code = failed("-t");
        } else if (place(model, params, inputs, &word, &index) != 0) code = 1;
        else {
            relaxide_tensor_free(inputs[index]);
            inputs[index] = NULL;
            code = read_npy(word, &inputs[index]);
        }
    }
    for (size_t i = 0; i < params && code == 0; ++i)
        if (inputs[i] == NULL) code = refused("main", "an input is missing");
    if (code == 0) code = run(model, inputs, params, folder);
    for (size_t i = 0; i < params; ++i) relaxide_tensor_free(inputs[i]);
    relaxide_model_free(model);
    return code;
}
