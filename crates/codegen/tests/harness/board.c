/* A program that calls kernels with no runtime at all: what it passes is declared here. */
#include <stdint.h>
#include <stdio.h>

typedef struct {
    int32_t type_index;
    uint32_t padding;
    union {
        int64_t integer;
        double number;
        void *pointer;
    } value;
} Packed;

typedef struct {
    void *data;
    int32_t device[2];
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

int __tvm_ffi_row_sums(void *self, const Packed *args, int32_t count, Packed *result);
int __tvm_ffi_squares(void *self, const Packed *args, int32_t count, Packed *result);

void board_error(const char *kind, const char *message) {
    printf("%s: %s\n", kind, message);
}

static Packed tensor(Tensor *tensor) {
    Packed packed = {7, 0, {0}};
    packed.value.pointer = tensor;
    return packed;
}

int main(void) {
    float rows[32] = {0}, sums[2];
    int32_t numbers[8] = {0, 1, 2, 3, -46341, 5, 6, 7}, squares[8];
    int64_t two[] = {2, 16}, eight[] = {8};
    Tensor a = {rows, {1, 0}, 2, 2, 32, 1, two, NULL, 0}, b = {sums, {1, 0}, 1, 2, 32, 1, two, NULL, 0};
    Tensor c = {numbers, {1, 0}, 1, 0, 32, 1, eight, NULL, 0}, d = {squares, {1, 0}, 1, 0, 32, 1, eight, NULL, 0};
    Packed result = {0, 0, {0}}, first[3] = {{0}}, second[2];
    first[0] = tensor(&a);
    first[1] = tensor(&b);
    first[2].type_index = 3;
    first[2].value.number = 2;
    second[0] = tensor(&c);
    second[1] = tensor(&d);
    if (__tvm_ffi_row_sums(NULL, first, 3, &result) != 0 || __tvm_ffi_squares(NULL, second, 2, &result) != 0) return 1;
    printf("%g %g\n", sums[0], sums[1]);
    for (int i = 0; i < 8; ++i) printf("%d%c", (int)squares[i], i < 7 ? ' ' : '\n');
    return __tvm_ffi_row_sums(NULL, first, 2, &result) == 0;
}
