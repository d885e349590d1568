// Libraries whose tables a test provides.
#pragma once

#include <utility>
#include <vector>

#include "kernels/cuda/libraries/libraries.h"

namespace tandem::testing {

/// A null table: that library cannot be used.
struct LibraryTables {
  const cuda::CublasLt* cublas_lt = nullptr;
  const cuda::Cudnn* cudnn = nullptr;
  const cuda::Nvrtc* nvrtc = nullptr;
  const cuda::Nccl* nccl = nullptr;
  std::vector<FoundLibrary> report;
};

class GivenLibraries final : public cuda::Libraries {
 public:
  explicit GivenLibraries(LibraryTables tables = {}) : tables_(std::move(tables)) {}
  const cuda::CublasLt* cublas_lt() override { return tables_.cublas_lt; }
  const cuda::Cudnn* cudnn() override { return tables_.cudnn; }
  const cuda::Nvrtc* nvrtc() override { return tables_.nvrtc; }
  const cuda::Nccl* nccl() override { return tables_.nccl; }
  std::vector<FoundLibrary> report() override { return tables_.report; }

 private:
  const LibraryTables tables_;
};

}  // namespace tandem::testing
