/* A program with a model inside: it needs no file. Doubles a tensor. `make size` builds it too. */
#include "relaxide.h"

#include <stdio.h>

static int fail(void) {
    fprintf(stderr, "%s: %s\n", relaxide_error_kind(), relaxide_error_message());
    return 1;
}

int main(void) {
    const int64_t shape[] = {3, 4};
    RelaxideModel *model = NULL;
    RelaxideTensor *input = NULL, *output = NULL;
    RelaxideTensorInfo info;
    RelaxideDType float32;
    size_t outputs = 1;
    if (relaxide_model_linked("hello_", &model) || relaxide_dtype_parse("float32", &float32) ||
        relaxide_tensor_new(shape, 2, float32, &input) || relaxide_tensor_describe(input, &info))
        return fail();
    for (size_t i = 0; i < info.size; ++i) ((float *)info.data)[i] = (float)i;
    const RelaxideTensor *inputs[] = {input};
    if (relaxide_model_run(model, "main", inputs, 1, &output, &outputs) || relaxide_tensor_describe(output, &info))
        return fail();
    for (size_t i = 0; i < info.size; ++i) printf("%g%c", ((const float *)info.data)[i], i + 1 < info.size ? ' ' : '\n');
    relaxide_tensor_free(output);
    relaxide_tensor_free(input);
    relaxide_model_free(model);
    return 0;
}
