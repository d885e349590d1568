// Commands about this machine: what it has, how fast it trains. Standard types only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/report.h"

namespace tandem::api {

/// Processes that a launcher has started together also measure what lies between them; `ranks`:
/// there have to be several.
Report doctor(bool ranks = false);

struct BenchOptions {
  std::vector<std::string> overrides;
  std::vector<std::string> place, devices;  // as in TrainOptions
  double seconds = 3;                       // time for measured steps after warm-up
  std::string trace_path;                   // Chrome trace; empty = none
  bool check_order = false;                 // check the order of GPUs' accesses; slower
};
Report bench(const std::string& config_path, const BenchOptions& options);
/// Benchmarks one kernel: "adamw" on that many elements.
Report bench_kernel(const std::string& kernel, std::int64_t elements, double seconds);

}  // namespace tandem::api
