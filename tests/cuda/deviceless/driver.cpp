// A driver without a GPU, as libcuda.so.1: what cuDNN calls while it looks for engines and
// compiles plans answers, everything else says that there is no driver. symbols.inc has a line
// UNANSWERED(name) for each function of the toolkit's stub that is not here (list_symbols.sh).
#include <dlfcn.h>

#include <cstddef>

namespace {

constexpr int succeeded = 0, stub_library = 34, not_found = 500;

void* const something = reinterpret_cast<void*>(0x1000);  // a handle that nothing dereferences

int find(const char* name, void** function) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (*function == nullptr) {
    void* self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (self != nullptr) *function = dlsym(self, name);
  }
  return *function != nullptr ? succeeded : not_found;
}

template <class T>
int give(T* to, T value) {
  if (to != nullptr) *to = value;
  return succeeded;
}

}  // namespace

extern "C" {

#define UNANSWERED(name) \
  int name() { return stub_library; }
#include "symbols.inc"

int cuInit(unsigned) { return succeeded; }
int cuDriverGetVersion(int* version) { return give(version, 13000); }
int cuDeviceGetCount(int* count) { return give(count, 0); }
int cuGetErrorName(int, const char** text) { return give(text, "error"); }
int cuGetErrorString(int, const char** text) { return give(text, "error"); }

int cuCtxGetCurrent(void** context) { return give<void*>(context, nullptr); }
int cuCtxSetCurrent(void*) { return succeeded; }

// Compiled code is accepted and never run.
int cuModuleLoadData(void** module, const void*) { return give(module, something); }
int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return give(module, something);
}
int cuModuleUnload(void*) { return succeeded; }
int cuModuleGetFunction(void** function, void*, const char*) { return give(function, something); }
int cuModuleGetGlobal_v2(void** address, std::size_t* bytes, void*, const char*) {
  give(address, something);
  return give(bytes, std::size_t{0});
}
int cuLibraryLoadData(void** library, const void*) { return give(library, something); }
int cuLibraryUnload(void*) { return succeeded; }
int cuLibraryGetModule(void** module, void*) { return give(module, something); }
int cuLibraryGetKernel(void** kernel, void*, const char*) { return give(kernel, something); }
int cuKernelGetFunction(void** function, void*) { return give(function, something); }
int cuKernelGetAttribute(int* value, int, void*, int) { return give(value, 0); }
int cuKernelSetAttribute(int, int, void*, int) { return succeeded; }
int cuFuncGetAttribute(int* value, int, void*) { return give(value, 0); }
int cuFuncSetAttribute(void*, int, int) { return succeeded; }
int cuFuncSetCacheConfig(void*, int) { return succeeded; }

int cuGetProcAddress(const char* name, void** function, int, unsigned long long) {
  return find(name, function);
}
int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* status) {
  const int result = find(name, function);
  give(status, result == succeeded ? 0 : 1);
  return result;
}

}  // extern "C"

#undef UNANSWERED
