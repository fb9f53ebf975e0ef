/* Runs a model on ones and prints what comes out, by ONNX Runtime's C API: with its library, or with Relaxide's in its place.
 *
 *     cc -O2 -I ONNXRUNTIME/include -o onnxruntime examples/c/onnxruntime.c -L build -lonnxruntime
 *     LD_LIBRARY_PATH=build ./onnxruntime model.onnx
 *
 * ONNXRUNTIME is where a release of ONNX Runtime was unpacked: the header is its own, and nothing else of it is needed.
 */
#include <onnxruntime_c_api.h>

#include <stdio.h>
#include <stdlib.h>

/* What the header defines may be newer than the library. */
#define WANTED 17
enum { MAX = 16 };

static const OrtApi *ort;

static void check(OrtStatus *status) {
    if (status == NULL) return;
    fprintf(stderr, "%d: %s\n", (int)ort->GetErrorCode(status), ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    exit(1);
}

/* A tensor of ones for an input; a dimension without a length becomes 1. */
static OrtValue *ones(OrtSession *session, size_t input, OrtAllocator *allocator) {
    OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *info;
    enum ONNXTensorElementDataType element;
    int64_t dims[MAX];
    size_t rank, count = 1;
    OrtValue *value;
    float *data;

    check(ort->SessionGetInputTypeInfo(session, input, &type));
    check(ort->CastTypeInfoToTensorInfo(type, &info));
    if (info == NULL) exit((fprintf(stderr, "input %zu is no tensor\n", input), 1));
    check(ort->GetTensorElementType(info, &element));
    check(ort->GetDimensionsCount(info, &rank));
    if (element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || rank > MAX)
        exit((fprintf(stderr, "input %zu is no tensor of floats with at most %d dimensions\n", input, MAX), 1));
    check(ort->GetDimensions(info, dims, rank));
    for (size_t i = 0; i < rank; ++i) count *= dims[i] = dims[i] < 0 ? 1 : dims[i];
    check(ort->CreateTensorAsOrtValue(allocator, dims, rank, element, &value));
    check(ort->GetTensorMutableData(value, (void **)&data));
    for (size_t i = 0; i < count; ++i) data[i] = 1;
    ort->ReleaseTypeInfo(type);
    return value;
}

static void print(const char *name, OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info;
    size_t count;
    float *data;

    check(ort->GetTensorTypeAndShape(value, &info));
    check(ort->GetTensorShapeElementCount(info, &count));
    check(ort->GetTensorMutableData(value, (void **)&data));
    printf("%s: %zu numbers:", name, count);
    for (size_t i = 0; i < count && i < 8; ++i) printf(" %g", data[i]);
    printf(count > 8 ? " ...\n" : "\n");
    ort->ReleaseTensorTypeAndShapeInfo(info);
}

int main(int argc, char **argv) {
    OrtEnv *env;
    OrtSession *session;
    OrtSessionOptions *options;
    OrtAllocator *allocator;
    char *inputs[MAX], *outputs[MAX];
    OrtValue *given[MAX], *results[MAX] = {NULL};
    size_t input_count, output_count;

    if (argc != 2) return fprintf(stderr, "usage: onnxruntime MODEL.onnx\n"), 2;
    ort = OrtGetApiBase()->GetApi(WANTED);
    if (ort == NULL) return fprintf(stderr, "the library is older than 1.%d\n", WANTED), 1;
    check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "example", &env));
    check(ort->CreateSessionOptions(&options));
    check(ort->CreateSession(env, argv[1], options, &session));
    check(ort->GetAllocatorWithDefaultOptions(&allocator));
    check(ort->SessionGetInputCount(session, &input_count));
    check(ort->SessionGetOutputCount(session, &output_count));
    if (input_count > MAX || output_count > MAX) return fprintf(stderr, "more than %d inputs or outputs\n", MAX), 1;
    for (size_t i = 0; i < input_count; ++i) {
        check(ort->SessionGetInputName(session, i, allocator, &inputs[i]));
        given[i] = ones(session, i, allocator);
    }
    for (size_t i = 0; i < output_count; ++i) check(ort->SessionGetOutputName(session, i, allocator, &outputs[i]));

    check(ort->Run(session, NULL, (const char *const *)inputs, (const OrtValue *const *)given, input_count,
                   (const char *const *)outputs, output_count, results));

    printf("by %s (%s)\n", OrtGetApiBase()->GetVersionString(), ort->GetBuildInfoString());
    for (size_t i = 0; i < output_count; ++i) {
        print(outputs[i], results[i]);
        ort->ReleaseValue(results[i]);
        check(ort->AllocatorFree(allocator, outputs[i]));
    }
    for (size_t i = 0; i < input_count; ++i) {
        ort->ReleaseValue(given[i]);
        check(ort->AllocatorFree(allocator, inputs[i]));
    }
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    ort->ReleaseEnv(env);
    return 0;
}
