// What layer normalisation and its gradient share.
#pragma once

#include "kernels/cuda/reductions/columns.h"
#include "kernels/cuda/reductions/reductions.h"

namespace tandem::cuda::reductions {

/// x as rows of all normalised axes.
struct LayerShape {
  std::int64_t rows = 1, length = 1;
};

inline LayerShape layer_shape(const KernelRequest& request, std::size_t x) {
  const Shape& shape = request.inputs[x].type.shape;
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  LayerShape result;
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i < axis ? result.rows : result.length) *= shape[i];
  return result;
}

}  // namespace tandem::cuda::reductions
