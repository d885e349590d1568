// FlatIndices: a place for each tuple of indices.
#include "kernels/reference/checked_index.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> flat_indices(const KernelRequest& request) {
  const Operand &indices = request.inputs[0], &flat = request.outputs[0];
  const std::size_t rank = flat.type.rank();
  Ints tuples = indices.layout.strides;
  const std::int64_t stride = tuples.back();
  tuples.pop_back();
  return prepared([=, to = walk(flat), from = Position(flat.type.shape, std::move(tuples)),
                   extents = request.attributes().integers("extents"),
                   strides = request.attributes().integers("strides"),
                   position_strides = request.attributes().integers("position_strides"),
                   dtype = indices.type.dtype,
                   node = request.node_index](const KernelArguments& arguments) mutable {
    std::int64_t* result = static_cast<std::int64_t*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < to.count(); ++i, to.next(), from.next()) {
      std::int64_t place = 0;
      bool is_absent = false;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        place += to.index(axis) * position_strides[axis];
      }
      for (std::size_t k = 0; k < extents.size(); ++k) {
        const std::int64_t index =
            checked_index(arguments.inputs[0], from.at() + static_cast<std::int64_t>(k) * stride,
                          dtype, extents[k], node, arguments.context);
        is_absent = is_absent || index < 0;
        place += index * strides[k];
      }
      result[to.at()] = is_absent ? absent_id<std::int64_t> : place;
    }
  });
}

}  // namespace

void add_flat_indices(KernelList& list) {
  list.push_back(reference_kernel("flat_indices", "FlatIndices", refuse_nothing, flat_indices));
}

}  // namespace tandem::reference
