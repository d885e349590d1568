#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace tandem {
namespace {

#if defined(__x86_64__)
bool amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24) & 1u, bf16 = (d >> 22) & 1u;
  if (!tiles || !bf16) return false;
  __get_cpuid(1, &a, &b, &c, &d);
  if (((c >> 27) & 1u) == 0) return false;  // xgetbv is not usable
  std::uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 0x60000u) == 0x60000u;  // the system saves tile configuration and tile data
}
#endif

}  // namespace

std::vector<std::string> processor_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return features;
  features.emplace_back("avx2");
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return features;
  }
  features.emplace_back("avx512");
  if (__builtin_cpu_supports("avx512bf16")) features.emplace_back("avx512_bf16");
  if (amx_bf16()) features.emplace_back("amx");
#endif
  return features;
}

Isa isa_of(const DeviceFacts& facts) {
  if (facts.has("avx512")) return Isa::avx512;
  if (facts.has("avx2")) return Isa::avx2;
  return Isa::baseline;
}

}  // namespace tandem
