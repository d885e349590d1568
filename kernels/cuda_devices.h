// What the rest of the program sees of CUDA: no type of it. A build without a toolkit has the same
// functions in no_cuda.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

struct CudaGpu {
  int ordinal = 0;
  std::string name;
  std::size_t memory_bytes = 0, free_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  std::string problem;       // why this build cannot use it; "" where it can
};

/// A library that is opened at run time.
struct CudaLibraryReport {
  std::string name;     // "cuDNN"
  std::string needed;   // "9.19": the version that this build's headers have
  std::string version;  // the version that was found; "" where none was
  std::string path;
  std::string problem;                        // why it cannot be used; "" where it can
  std::string fix;                            // what to install or set
  std::vector<std::string> passed_over = {};  // files before it that were not used, with the reason
};

struct CudaReport {
  std::string toolkit;  // "13.0" that this build was made with; "" in a build without CUDA
  std::string driver;   // the newest CUDA version that the driver knows, "13.0"; "" where none is
  std::string problem;  // why no GPU can be used; "" where one can
  std::string fix;
  std::vector<CudaGpu> gpus;
  std::vector<CudaLibraryReport> libraries;  // empty in a build without CUDA
};

/// Looks at the driver, the GPUs and the libraries; asking a GPU for its free memory takes up some
/// of that memory. Never throws.
CudaReport cuda_report();
/// Only driver and GPUs, without `free_bytes`: touches no GPU. Never throws.
CudaReport cuda_gpus();

struct CudaOptions {
  std::string name = "cuda:0";   // name of the device
  int ordinal = 0;               // number of the GPU
  std::size_t memory_bytes = 0;  // limit; 0: what is free on the GPU
  bool allow_tf32 = false;       // float32 products in 10 bits of mantissa
  bool capture = true;           // segments as CUDA graphs
  std::string cache_folder;  // folder for compiled kernels and library plans; "": the user's own
  std::shared_ptr<LaneMonitor> monitor;
  /// For a run of several ranks: the device joins them over NCCL.
  std::shared_ptr<Rendezvous> ranks;
};

/// Memory, streams and events may outlive the device. Throws Error{usage} that says what is missing
/// and how to fix it.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options);

}  // namespace tandem
