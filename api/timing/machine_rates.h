// Measures the maximum rates of the host, which `doctor` and `bench` report for comparison.
#pragma once

#include "api/model/engine.h"

namespace tandem::api {

/// Billions of operations a second of a float32 product of 1,024 x 1,024 matrices.
double gemm_gflops(const Engine& engine);

/// Billions of bytes a second of an in-place SGD over 32 Mi elements: two reads and a write of 4
/// bytes each.
double bandwidth_gb_s(const Engine& engine);

}  // namespace tandem::api
