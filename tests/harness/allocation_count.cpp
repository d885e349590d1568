#include "tests/harness/allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_COUNTS_ALLOCATIONS 0
#else
#define TANDEM_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<std::int64_t> heap_calls{0};
thread_local std::int64_t own_heap_calls = 0;

[[maybe_unused]] void count_call() {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  ++own_heap_calls;
}
}  // namespace

#if TANDEM_COUNTS_ALLOCATIONS
// glibc's own entry points; the definitions below replace the public ones in the program.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  count_call();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  count_call();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  count_call();
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count_call();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}
#endif

namespace tandem::testing {

bool counts_allocations() { return TANDEM_COUNTS_ALLOCATIONS != 0; }

AllocationCount::AllocationCount() : start_(heap_calls.load()), own_start_(own_heap_calls) {}
std::int64_t AllocationCount::calls() const { return heap_calls.load() - start_; }
std::int64_t AllocationCount::own_calls() const { return own_heap_calls - own_start_; }

}  // namespace tandem::testing

#undef TANDEM_COUNTS_ALLOCATIONS
