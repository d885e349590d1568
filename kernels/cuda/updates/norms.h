// Sums that one block makes in a fixed order: what the blocks of a first stage found, or scalars.
#pragma once

#include <algorithm>

#include "kernels/cuda/context.h"
#include "kernels/shared/block/block.h"

namespace tandem::cuda {

/// y = the sum of `count` numbers.
struct TotalOfSums {
  const double* sums;
  std::int64_t count;
  float* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<double> sum;
    block.each([&](int thread) {
      double own = 0;
      for (std::int64_t i = thread; i < count; i += block.threads()) own += sums[i];
      sum(thread) = own;
    });
    const double all = block.sum(sum);
    block.one([&] { *y = static_cast<float>(all); });
  }
};

void launch_total(GpuContext& gpu, const TotalOfSums& body, void* queue);

inline constexpr int most_scalars = 256;  // scalars of one launch

/// One block: then(the sum of all scalars), by one thread; or a part of the sum, which goes to
/// `part`.
template <class Then>
struct SumOfScalars {
  const float* scalars[most_scalars];
  int count;
  const double* parts;  // from earlier launches
  int part_count;
  double* part;  // null: the last launch
  Then then;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<double> sum;
    block.each([&](int thread) {
      double own = 0;
      for (int i = thread; i < count; i += block.threads()) {
        own += static_cast<double>(*scalars[i]);
      }
      for (int i = thread; i < part_count; i += block.threads()) own += parts[i];
      sum(thread) = own;
    });
    const double all = block.sum(sum);
    block.one([&] {
      if (part != nullptr)
        *part = all;
      else
        then(all);
    });
  }
};

inline std::size_t launches_for_scalars(std::size_t count) {
  return (count + most_scalars - 1) / most_scalars;
}
/// Workspace bytes for the partial sums of that many scalars.
inline std::size_t scalar_sum_workspace(std::size_t count) {
  return (launches_for_scalars(count) - 1) * sizeof(double);
}

/// then(the sum of `count` float32 scalars, inputs[first] and on), on the GPU.
template <class Then>
void launch_sum_of_scalars(GpuContext& gpu, const char* name, const KernelArguments& a,
                           std::size_t first, std::size_t count, const Then& then) {
  auto* const parts = static_cast<double*>(a.workspace);
  const std::size_t launches = launches_for_scalars(count);
  for (std::size_t k = 0; k < launches; ++k) {
    const bool last = k + 1 == launches;
    SumOfScalars<Then> body{};
    for (std::size_t i = k * most_scalars; i < std::min(count, (k + 1) * most_scalars); ++i) {
      body.scalars[body.count++] = static_cast<const float*>(a.inputs[first + i]);
    }
    body.parts = parts;
    body.part_count = last ? static_cast<int>(k) : 0;
    body.part = last ? nullptr : parts + k;
    body.then = then;
    gpu.launch(launch_of(name, {.threads = 128}, body), a.queue);
  }
}

}  // namespace tandem::cuda
