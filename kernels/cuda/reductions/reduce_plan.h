// How a reduction under any strides is cut: what is fixed before the run.
#pragma once

#include "kernels/cuda/reductions/reductions.h"
#include "kernels/cuda/reductions/walk.h"

namespace tandem::cuda::reductions {

/// The results and their elements.
struct Reduction {
  Walk kept;     // by result: places in x, and in y
  Walk reduced;  // by element of a result: places in x from there
  std::int64_t results = 1, count = 1, parts = 1;
  std::int64_t mean_of = -1;  // results are divided by that many; -1: they are not
};

/// Neighbouring elements in memory belong to one result (rows) or to neighbouring ones.
struct ReductionPlan {
  Reduction first, second;  // the second combines the parts of the first, where it has some
  bool rows = true;
  int pack = 1;  // elements of an access, where x's address is a multiple of it

  std::size_t workspace_bytes(std::size_t result_bytes) const {
    if (first.parts == 1) return 0;
    return static_cast<std::size_t>(first.results * first.parts) * result_bytes;
  }
};

struct ReductionAsk {
  bool mean = false;
  int wide = 1;         // elements of a 16-byte access; 1: no packs
  bool parted = false;  // results may be cut into parts
  int multiprocessors = 1;
};

/// Plans the reduction of input 0 to output 0, by the attributes `axes` and `keepdims`.
ReductionPlan plan_reduction(const KernelRequest& request, const ReductionAsk& ask);

}  // namespace tandem::cuda::reductions
