/* Runs a compiled classifier on one image of grey, and prints the likeliest class.
 *
 *     cc -O2 -I crates/capi/include -o classify examples/c/classify.c -L target/release -lrelaxide_runtime
 *     LD_LIBRARY_PATH=target/release ./classify build/dynamic_batch/classifier.so
 */
#include "relaxide.h"

#include <stdio.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", what, relaxide_error_kind(), relaxide_error_message());
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: classify MODEL.so\n"), 2;
    RelaxideModel *model;
    if (relaxide_model_load(argv[1], &model) != 0) return failed(argv[1]);

    const int64_t shape[] = {1, 3, 32, 32};
    RelaxideDType float32;
    RelaxideTensor *image, *classes;
    RelaxideTensorInfo info;
    if (relaxide_dtype_parse("float32", &float32) != 0 || relaxide_tensor_new(shape, 4, float32, &image) != 0 ||
        relaxide_tensor_describe(image, &info) != 0)
        return failed("image");
    for (size_t i = 0; i < info.size; ++i) ((float *)info.data)[i] = 0.5f;

    size_t count = 1;
    const RelaxideTensor *inputs[] = {image};
    if (relaxide_model_run(model, "main", inputs, 1, &classes, &count) != 0) return failed("main");
    if (relaxide_tensor_describe(classes, &info) != 0) return failed("classes");
    const float *score = info.data;
    size_t best = 0;
    for (size_t i = 1; i < info.size; ++i)
        if (score[i] > score[best]) best = i;
    printf("class %zu of %zu, with %.3f\n", best, info.size, score[best]);

    relaxide_tensor_free(classes);
    relaxide_tensor_free(image);
    relaxide_model_free(model);
    return 0;
}
