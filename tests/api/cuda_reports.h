// CUDA runtime reports of made-up machines.
#pragma once

#include "kernels/cuda_devices.h"

namespace tandem::api {

inline CudaReport without_driver() {
  CudaReport report;
  report.toolkit = "13.0";
  report.problem = "this machine has no NVIDIA driver";
  report.fix = "install one";
  return report;
}

}  // namespace tandem::api
