// Kernels that are compiled at run time: by NVRTC, kept in memory and on disk.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// A header of this program that generated sources include; embedded when the program is built.
struct EmbeddedHeader {
  const char* name = nullptr;  // as it is included
  const char* text = nullptr;
};
/// Ends with a name of null.
extern const EmbeddedHeader embedded_headers[];

/// Machine code for a GPU, or PTX where the compiler is older than the GPU.
struct CompiledKernel {
  std::string code;  // what Runtime::load_library takes
  std::string log;   // warnings
};

/// Compiles a source with the kernel `fused` for compute capability `architecture` (90 is 9.0).
/// Throws Error{runtime} with the compiler's log.
CompiledKernel compile_for_gpu(const Nvrtc& nvrtc, const std::string& source, int architecture);

class FusedPrograms {
 public:
  explicit FusedPrograms(Gpu gpu) : gpu_(std::move(gpu)) {}
  ~FusedPrograms();
  FusedPrograms(const FusedPrograms&) = delete;

  /// The kernel `fused` of a source on the GPU: a Launch::entry that lives as long as this. From
  /// any thread. Throws Error{runtime}.
  const void* kernel(const std::string& source);

 private:
  struct Loaded {
    cudaLibrary_t library = nullptr;
    const void* entry = nullptr;
  };

  std::string code_of(const std::string& source, const Nvrtc& nvrtc) const;

  Gpu gpu_;
  std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;  // by source
};

}  // namespace tandem::cuda
