#include "importer/batch/batch_indices.h"

#include <algorithm>

#include "importer/batch/old_batch.h"

namespace tandem::importer {
namespace {

/// How indices go on from one sample to the next: component c of an index (the last axis of the
/// tensor; one for a Gather) by steps[c].
struct Steps {
  Ints steps;
  std::size_t axes = 0;        // the first axes of the tensor, any of which may count the samples
  std::size_t least_axis = 0;  // where the search for that axis begins
  std::int64_t slice = 0;      // extent of a sample in the looked-up axis; 0: none is looked up
  std::size_t looked_up = 0;   // the component of that axis
};

std::optional<Steps> steps_of(const NodeContext& node, const BatchRecord& old,
                              const Shape& old_data) {
  const std::optional<BatchAxis> batch = changed_axis(old_data, node.shape(0), old);
  if (!batch) return std::nullopt;
  const std::size_t changed = old_data.size() - batch->distance;
  const Shape& indices = node.shape(1);
  const std::int64_t slice = batch->old_extent / old.batch;
  if (node.node().op_type() == "Gather") {
    const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
    if (static_cast<std::size_t>(axis) != changed) return std::nullopt;
    return Steps{{slice}, indices.size(), 0, slice, 0};
  }
  const auto shared = static_cast<std::size_t>(node.integer("batch_dims", 0));
  const auto components = static_cast<std::size_t>(indices.back());
  if (changed < shared)  // each sample has indices of its own: they have to be the same
    return Steps{Ints(components, 0), changed + 1, changed, 0, 0};
  if (changed >= shared + components) return std::nullopt;
  Steps result{Ints(components, 0), indices.size() - 1, shared, slice, changed - shared};
  result.steps[result.looked_up] = slice;
  return result;
}

/// [outer][samples][inner][components]
struct Layout {
  std::int64_t outer = 1, inner = 1, components = 1;
};

Layout layout_of(const Shape& shape, std::size_t axis, std::size_t components) {
  Layout layout;
  for (std::size_t i = 0; i < axis; ++i) layout.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) layout.inner *= shape[i];
  layout.components = static_cast<std::int64_t>(components);
  layout.inner /= layout.components;
  return layout;
}

// The indices of that many samples, from those of the first one.
Ints continued(const Ints& values, const Layout& at, const Ints& steps, std::int64_t before,
               std::int64_t samples) {
  Ints result;
  result.reserve(static_cast<std::size_t>(at.outer * samples * at.inner * at.components));
  for (std::int64_t o = 0; o < at.outer; ++o) {
    for (std::int64_t b = 0; b < samples; ++b) {
      for (std::int64_t i = 0; i < at.inner; ++i) {
        for (std::int64_t c = 0; c < at.components; ++c) {
          const std::int64_t first = (o * before * at.inner + i) * at.components + c;
          result.push_back(values[static_cast<std::size_t>(first)] +
                           b * steps[static_cast<std::size_t>(c)]);
        }
      }
    }
  }
  return result;
}

}  // namespace

std::optional<HostTensor> indices_for_batch(const NodeContext& node, const BatchRecord& old,
                                            const Shape& old_data) {
  const Term& indices = node.in(1);
  const bool is_known = indices.is_constant() && !indices.rows && !indices.counts;
  if (!is_known || indices.type.elements() == 0) return std::nullopt;
  const std::optional<Steps> how = steps_of(node, old, old_data);
  if (!how) return std::nullopt;
  const Ints values = indices.constant->integers();
  for (std::size_t axis = how->least_axis; axis < how->axes; ++axis) {
    if (indices.type.shape[axis] != old.batch) continue;
    const Layout at = layout_of(indices.type.shape, axis, how->steps.size());
    if (continued(values, at, how->steps, old.batch, old.batch) != values) continue;
    const Ints sample = continued(values, at, how->steps, old.batch, 1);
    const auto is_of_sample = [&, i = std::size_t{0}](std::int64_t index) mutable {
      const bool is_looked_up = i++ % how->steps.size() == how->looked_up;
      return how->slice == 0 || !is_looked_up || (index >= 0 && index < how->slice);
    };
    if (!std::all_of(sample.begin(), sample.end(), is_of_sample)) continue;
    TensorType type = indices.type;
    type.shape[axis] = old.new_batch;
    HostTensor result(type);
    const Ints now = continued(values, at, how->steps, old.batch, old.new_batch);
    if (type.dtype == DType::int32) {
      std::copy(now.begin(), now.end(), static_cast<std::int32_t*>(result.data()));
    } else {
      std::copy(now.begin(), now.end(), static_cast<std::int64_t*>(result.data()));
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace tandem::importer
