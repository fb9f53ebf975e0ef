/* A library of kernels written in C against tvm-ffi's headers, as compilers of kernels write them. */
#include <string.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

static int fail(const char* kind, const char* message) {
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}

/* The cell of an object, which lies behind its header. */
static const void* cell_of(const TVMFFIAny* value) { return (const char*)value->v_obj + sizeof(TVMFFIObject); }

/* The tensor behind an argument; NULL if it is none. */
static const DLTensor* tensor_of(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIDLTensorPtr) return (const DLTensor*)value->v_ptr;
  if (value->type_index == kTVMFFITensor) return (const DLTensor*)cell_of(value);
  return NULL;
}

static int is_float_vector(const DLTensor* x) {
  return x->ndim == 1 && x->dtype.code == kDLFloat && x->dtype.bits == 32 && x->dtype.lanes == 1 &&
         (x->strides == NULL || x->strides[0] == 1) && x->device.device_type == kDLCPU;
}

/* add_one(x, y): y = x + 1 */
TVM_FFI_DLL_EXPORT int __tvm_ffi_add_one(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  if (num_args != 2) return fail("TypeError", "add_one takes 2 arguments");
  const DLTensor *x = tensor_of(&args[0]), *y = tensor_of(&args[1]);
  if (x == NULL || y == NULL) return fail("TypeError", "add_one takes tensors");
  if (!is_float_vector(x) || !is_float_vector(y)) return fail("ValueError", "add_one takes vectors of float32");
  if (x->shape[0] != y->shape[0]) return fail("ValueError", "the vectors differ in length");
  const float* from = (const float*)((const char*)x->data + x->byte_offset);
  float* to = (float*)((char*)y->data + y->byte_offset);
  for (int64_t i = 0; i < x->shape[0]; ++i) to[i] = from[i] + 1.0f;
  return 0;
}

/* greet(name) -> str, with the text in any of the forms that an argument may have. */
TVM_FFI_DLL_EXPORT int __tvm_ffi_greet(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  char text[256] = "hello, ";
  TVMFFIByteArray name = {NULL, 0};
  if (num_args != 1) return fail("TypeError", "greet takes 1 argument");
  switch (args[0].type_index) {
    case kTVMFFIRawStr:
      name.data = args[0].v_c_str;
      name.size = strlen(name.data);
      break;
    case kTVMFFISmallStr:
      name.data = args[0].v_bytes;
      name.size = args[0].small_str_len;
      break;
    case kTVMFFIStr:
      name = *(const TVMFFIByteArray*)cell_of(&args[0]);
      break;
    default:
      return fail("TypeError", "greet takes a string");
  }
  size_t length = strlen(text);
  if (name.size > sizeof(text) - length) return fail("ValueError", "the name is too long");
  memcpy(text + length, name.data, name.size);
  TVMFFIByteArray greeting = {text, length + name.size};
  return TVMFFIStringFromByteArray(&greeting, result);
}

/* apply(function, value) -> what the function returns */
TVM_FFI_DLL_EXPORT int __tvm_ffi_apply(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 2 || args[0].type_index != kTVMFFIFunction) return fail("TypeError", "apply takes a function and a value");
  TVMFFIAny value = args[1];
  return TVMFFIFunctionCall(args[0].v_obj, &value, 1, result);
}

/* call_global(name, value) -> what the global function of that name returns */
TVM_FFI_DLL_EXPORT int __tvm_ffi_call_global(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 2 || args[0].type_index != kTVMFFIStr) return fail("TypeError", "call_global takes a long name and a value");
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal((const TVMFFIByteArray*)cell_of(&args[0]), &function) != 0) return -1;
  if (function == NULL) return fail("ValueError", "there is no such function");
  TVMFFIAny value = args[1];
  int code = TVMFFIFunctionCall(function, &value, 1, result);
  TVMFFIObjectDecRef(function);
  return code;
}

static int64_t live_counters = 0;

static int count(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args, (void)num_args;
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = ++((int64_t*)self)[0];
  return 0;
}

static void release(void* self) {
  ((int64_t*)self)[0] = 0;
  --live_counters;
}

/* counter() -> a function that counts its calls; one at a time */
TVM_FFI_DLL_EXPORT int __tvm_ffi_counter(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  static int64_t state[1];
  (void)self, (void)args, (void)num_args;
  TVMFFIObjectHandle function = NULL;
  if (live_counters != 0) return fail("RuntimeError", "there is a counter already");
  if (TVMFFIFunctionCreate(state, count, release, &function) != 0) return -1;
  ++live_counters;
  result->type_index = kTVMFFIFunction;
  result->zero_padding = 0;
  result->v_obj = (TVMFFIObject*)function;
  return 0;
}
