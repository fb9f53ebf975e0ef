/* Two models in one program, one out of an archive, one as an object, through the headers beside them. */
#include "libscale.h"
#include "halves.h"

#include <stdio.h>
#include <string.h>

static int fail(void) {
    fprintf(stderr, "%s: %s\n", relaxide_error_kind(), relaxide_error_message());
    return 1;
}

static void print(const RelaxideTensor *tensor) {
    RelaxideTensorInfo info;
    if (relaxide_tensor_describe(tensor, &info)) return;
    for (size_t i = 0; i < info.size; ++i) printf("%g%c", ((const float *)info.data)[i], i + 1 < info.size ? ' ' : '\n');
}

int main(void) {
    const int64_t shape[] = {3, 4}, wrong[] = {12};
    RelaxideModel *scale = NULL, *halves = NULL;
    RelaxideTensor *input = NULL, *flat = NULL, *output = NULL, *two[2];
    RelaxideTensorInfo info;
    RelaxideDType float32;
    if (scale_open(&scale) || halves_open(&halves) || relaxide_dtype_parse("float32", &float32) ||
        relaxide_tensor_new(shape, 2, float32, &input) || relaxide_tensor_new(wrong, 1, float32, &flat) ||
        relaxide_tensor_describe(input, &info))
        return fail();
    for (size_t i = 0; i < info.size; ++i) ((float *)info.data)[i] = (float)i;
    if (scale_main(scale, input, input, &output)) return fail();
    print(output);
    if (halves_main(halves, input, two)) return fail();
    print(two[0]);
    print(two[1]);
    /* Errors of compiled code come through the slots that the linker filled. */
    if (scale_main(scale, flat, flat, &output) == 0) return 1;
    printf("%s\n", relaxide_error_kind());
    relaxide_tensor_free(two[0]);
    relaxide_tensor_free(two[1]);
    relaxide_tensor_free(output);
    relaxide_tensor_free(input);
    relaxide_tensor_free(flat);
    relaxide_model_free(scale);
    relaxide_model_free(halves);
    return 0;
}
