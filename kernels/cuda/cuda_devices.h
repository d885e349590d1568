// How a GPU of this machine becomes a device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/device_backend.h"

namespace tandem {

/// Looks at the driver, the GPUs and the libraries. Never throws. To ask a GPU for its free memory
/// creates a context there, which uses some of that memory.
DeviceReport cuda_report();
/// Only driver and GPUs, without `free_bytes`: touches no GPU. Never throws.
DeviceReport cuda_gpus();

struct CudaOptions {
  std::string name = "cuda:0";   // name of the device
  int ordinal = 0;               // number of the GPU
  std::size_t memory_bytes = 0;  // limit; 0: what is free on the GPU
  bool allow_tf32 = false;       // float32 products in 10 bits of mantissa
  bool capture = true;           // segments as CUDA graphs
  std::string cache_folder;  // folder for compiled kernels and library plans; "": the user's own
  std::shared_ptr<LaneMonitor> monitor;
  std::shared_ptr<Rendezvous> ranks = one_rank();  // several: the device joins them over NCCL
};
CudaOptions cuda_options(const DeviceRequest& request);

/// Memory, streams and events may outlive the device. Throws Error{usage} that says what is missing
/// and how to fix it.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options);

}  // namespace tandem
