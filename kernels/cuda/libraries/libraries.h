// The libraries that are opened at run time, each a table of its functions or the reason why it
// cannot be used. In tests the tables are filled with checking fakes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_devices.h"

namespace tandem::cuda {

struct CublasLt;  // cublas_lt.h
struct Cudnn;     // cudnn.h
struct Nvrtc;     // nvrtc.h
struct Nccl;      // nccl.h

class Libraries {
 public:
  virtual ~Libraries() = default;
  // Null where the library cannot be used; opened at the first call, from any thread.
  virtual const CublasLt* cublas_lt() = 0;
  virtual const Cudnn* cudnn() = 0;
  virtual const Nvrtc* nvrtc() = 0;
  virtual const Nccl* nccl() = 0;
  /// A report on all of them, in this order; opens them.
  virtual std::vector<FoundLibrary> report() = 0;
};

/// Found by the search order of docs/cuda.md.
std::shared_ptr<Libraries> make_real_libraries();

}  // namespace tandem::cuda
