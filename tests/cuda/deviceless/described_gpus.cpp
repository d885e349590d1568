// Properties of GPUs as JSON, with the keys that cuDNN's device property descriptor has.
#include "tests/cuda/deviceless/described_gpus.h"

#include <cstdint>

namespace tandem::testing {
namespace {

struct Properties {
  const char* name;
  int version, multiprocessors;
  std::int64_t memory_bytes, l2_bytes, clock_khz, memory_clock_khz;
  std::int64_t shared_bytes_of_block, shared_bytes_of_multiprocessor;
};

std::string json_of(const Properties& p) {
  std::string text = "{";
  const auto add = [&](const char* key, const std::string& value) {
    if (text.size() > 1) text += ", ";
    text += "\"" + std::string(key) + "\": " + value;
  };
  const auto number = [&](const char* key, std::int64_t value) { add(key, std::to_string(value)); };
  add("deviceName", "\"" + std::string(p.name) + "\"");
  number("cudaDeviceId", 0);
  number("deviceVer", p.version);
  number("multiProcessorCount", p.multiprocessors);
  number("driverVer", 13000);
  number("maxSharedMemoryPerBlock", 49152);
  number("maxSharedMemoryPerBlockOptin", p.shared_bytes_of_block);
  number("reservedSharedMemoryPerBlock", 1024);
  number("totalGlobalMem", p.memory_bytes);
  number("regsPerBlock", 65536);
  number("warpSize", 32);
  number("maxRegistersPerSM", 65536);
  number("maxCtasPerSM", 32);
  number("maxThreadsPerBlock", 1024);
  number("maxThreadsPerSM", 2048);
  number("pciDeviceId", 0);
  number("isTccDriver", 0);
  number("supportCoopLaunch", 1);
  number("smClockRateKHz", p.clock_khz);
  number("memClockRateKHz", p.memory_clock_khz);
  number("l2CacheSize", p.l2_bytes);
  number("maxSharedMemoryPerSM", p.shared_bytes_of_multiprocessor);
  add("maxGridSize", "[2147483647, 65535, 65535]");
  add("maxBlockSize", "[1024, 1024, 64]");
  return text + "}";
}

}  // namespace

std::vector<DescribedGpu> described_gpus() {
  const Properties a100{
      "NVIDIA A100-SXM4-80GB", 800, 108, 85198045184, 41943040, 1410000, 1593000, 166912, 167936};
  const Properties h100{
      "NVIDIA H100 80GB HBM3", 900, 132, 85014020096, 52428800, 1980000, 2619000, 232448, 233472};
  return {{"A100 (sm_80)", json_of(a100)}, {"H100 (sm_90)", json_of(h100)}};
}

}  // namespace tandem::testing
