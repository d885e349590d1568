#include "importer/operators/rebatch.h"

#include <algorithm>

#include <fmt/format.h>

#include "importer/batch/old_batch.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/elements_of.h"

namespace tandem::importer::operators {
namespace {

/// The shape that an operand of the node has under the file's batch; null also where it is absent.
const Shape* shape_before(NodeContext& node, std::size_t i) {
  if (!node.has(i)) return nullptr;
  return shape_before(node.session(), node.scope(), node.node().input(static_cast<int>(i)));
}

// What the same node saw in the import with the file's own batch; nothing where nothing is re-bound
// or the target has followed the batch by itself.
struct Before {
  Shape x, y;
  std::int64_t batch, new_batch;
};
std::optional<Before> before(NodeContext& node, const Ints& target) {
  const BatchRecord* old = node.session().old_batch;
  if (old == nullptr) return std::nullopt;
  const std::string output = node.scope().prefix + node.node().output(0);
  const auto old_target = old->targets.find(output);
  const Shape* x = shape_before(node, 0);
  const auto y = old->shapes.find(output);
  if (old_target == old->targets.end() || old_target->second != target) return std::nullopt;
  if (x == nullptr || y == old->shapes.end()) return std::nullopt;
  return Before{*x, y->second, old->batch, old->new_batch};
}

void remember(NodeContext& node, const Ints& target) {
  node.session().record.targets[node.scope().prefix + node.node().output(0)] = target;
}

void note_rewrite(NodeContext& node, const Shape& old_target, std::size_t axis,
                  bool has_free_form = true) {
  node.session().rewrites.push_back(
      {node.node().output(0), old_target, axis, node.scope().main, has_free_form});
}

// How many elements of an axis of a value lie in front of the batch in it: as the Reshape says
// that has put more than the batch into the axis; 1 where there is none.
std::int64_t before_batch(const Session& session, ValueId id, std::size_t axis) {
  constexpr int most_steps = 256;
  const Graph& graph = session.builder.graph();
  for (int step = 0; step < most_steps && id; ++step) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::computed) return 1;
    const Node& node = graph.node(value.producer);
    if (node.op->name == "Reshape") {
      const auto place = session.batch_places.find({node.inputs[0].index, value.type.shape});
      const bool is_there = place != session.batch_places.end() && place->second.axis == axis;
      return is_there ? place->second.before : 1;
    }
    if (node.op->name == "Transpose") {
      axis = static_cast<std::size_t>(node.attributes.integers("perm")[axis]);
      id = node.inputs[0];
      continue;
    }
    const auto has_axis = [&](ValueId input) {
      if (!input || graph.value(input).kind != ValueKind::computed) return false;
      const Shape& shape = graph.type(input).shape;
      return shape.size() > axis && shape[axis] == value.type.shape[axis];
    };
    const auto from = std::find_if(node.inputs.begin(), node.inputs.end(), has_axis);
    id = from == node.inputs.end() ? ValueId{} : *from;
  }
  return 1;
}

// The axis of y that holds the batch, where `boundary` elements lie in front of the batch in
// row-major order: whole batches of the file's size, after `before` elements of the axis. A file
// with a batch of 1 leaves a choice: an axis of 1 there, that of x before others; else the axis
// that begins there unless it is the last one, whose extent weights fix.
std::optional<BatchPlace> matching_place(const Shape& y, std::size_t axis_of_x,
                                         std::int64_t boundary, std::int64_t batch) {
  std::optional<BatchPlace> begins, contains;
  for (std::size_t o = 0; o < y.size(); ++o) {
    const std::int64_t start = elements_of(y, 0, o);
    if (start == 0 || start > boundary) break;
    const std::int64_t before = boundary / start;
    if (boundary % start != 0 || y[o] % (before * batch) != 0) continue;
    const bool is_nearer = !begins || (y[o] == batch && y[begins->axis] != batch) ||
                           (y[o] == y[begins->axis] && o == axis_of_x);
    if (before > 1) {
      contains = BatchPlace{o, before};
    } else if (is_nearer) {
      begins = BatchPlace{o, 1};
    }
  }
  if (!begins) return contains;
  const bool is_last = begins->axis + 1 == y.size() && y[begins->axis] != batch;
  return contains && is_last ? contains : begins;
}

// Extents that were those of input 0 follow it.
Ints followed_target(NodeContext& node, const Ints& target, bool has_free_form) {
  remember(node, target);
  const std::optional<Before> old = before(node, target);
  const Shape& x = node.shape(0);
  if (!old || old->x == x || target.size() != x.size()) return target;
  Ints result = target;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == old->x[i] || target[i] != old->x[i]) continue;
    result[i] = x[i];
    note_rewrite(node, old->y, i, has_free_form);
  }
  return result;
}

}  // namespace

std::optional<Shape> resolve_reshape(const Shape& x, const Ints& target, bool allow_zero) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  Shape result = target;
  std::optional<std::size_t> free;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && !allow_zero) {
      if (i >= x.size()) return std::nullopt;
      result[i] = x[i];
    } else if (result[i] == -1) {
      if (free) return std::nullopt;
      free = i;
      result[i] = 1;
    }
  }
  const auto known = checked_elements(result, most);
  const auto have = checked_elements(x, most);
  if (!known || !have) return std::nullopt;
  if (!free) return *known == *have ? std::optional(result) : std::nullopt;
  if (*known == 0 || *have % *known != 0) return std::nullopt;
  result[*free] = *have / *known;
  return result;
}

Shape reshape_target(NodeContext& node, const Ints& target, bool allow_zero) {
  remember(node, target);
  const Shape& x = node.shape(0);
  std::optional<Shape> plain = resolve_reshape(x, target, allow_zero);
  const std::optional<Before> old = before(node, target);
  if (old && old->x != x && old->x.size() == x.size()) {
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] != old->x[i]) changed.push_back(i);
    }
    std::optional<BatchPlace> place;
    if (changed.size() == 1) {
      const std::int64_t before = before_batch(node.session(), node.in(0).id, changed[0]);
      place = matching_place(old->y, changed[0], elements_of(old->x, 0, changed[0]) * before,
                             old->batch);
    }
    if (place) {
      Shape scaled = old->y;
      scaled[place->axis] = scaled[place->axis] / old->batch * old->new_batch;
      if (checked_elements(scaled, std::int64_t{1} << 48) == element_count(x)) {
        if (plain != scaled) note_rewrite(node, old->y, place->axis);
        if (place->before > 1) node.session().batch_places[{node.in(0).id.index, scaled}] = *place;
        return scaled;
      }
    }
  }
  if (plain) return *plain;
  node.fail("the shape does not hold the input's elements",
            std::to_string(element_count(x)) + " elements of " + to_string(x),
            to_string(Shape(target)),
            old ? "the file fixes the batch: export it with a free first dimension" : "");
}

Ints expand_target(NodeContext& node, const Ints& target) {
  return followed_target(node, target, true);
}

Ints resize_target(NodeContext& node, const Ints& target) {
  return followed_target(node, target, false);
}

Ints affine_grid_size(NodeContext& node, const Ints& size) {
  remember(node, size);
  const std::optional<Before> old = before(node, size);
  const Shape& x = node.shape(0);
  const bool follows = old && !x.empty() && x.size() == old->x.size() && x[0] != old->x[0] &&
                       !size.empty() && size[0] == old->x[0];
  if (!follows) return size;
  Ints result = size;
  result[0] = x[0];
  note_rewrite(node, old->y, 0, false);
  return result;
}

void refuse_part_of_batch(NodeContext& node) {
  const BatchRecord* old = node.session().old_batch;
  const Shape* x = shape_before(node, 0);
  if (x == nullptr || *x == node.shape(0) || x->size() != node.shape(0).size()) return;
  const bool by_tuples = node.node().op_type() == "ScatterND";
  for (std::size_t i = 1; i < 3; ++i) {
    const Shape* before = shape_before(node, i);
    const Shape& now = node.shape(i);
    if (before == nullptr || *before != now) continue;
    for (std::size_t axis = 0; axis < now.size(); ++axis) {
      const bool is_batch = by_tuples ? i == 1 && axis + 1 < now.size() && now[axis] == old->batch
                                      : axis < x->size() && (*x)[axis] != node.shape(0)[axis] &&
                                            now[axis] == (*x)[axis];
      if (!is_batch) continue;
      node.fail(fmt::format("{} hold the batch of {} with which the file was exported",
                            i == 1 ? "the indices" : "the updates", old->batch),
                fmt::format("{} samples", old->new_batch), to_string(now));
    }
  }
}

std::int64_t end_in_batch(NodeContext& node, std::size_t axis, std::int64_t start,
                          std::int64_t end) {
  const Shape* x = shape_before(node, 0);
  const Shape& now = node.shape(0);
  if (x == nullptr || x->size() != now.size() || (*x)[axis] == now[axis]) return end;
  const std::int64_t extent = (*x)[axis];
  const std::int64_t batch = node.session().old_batch->batch;
  if (start == 0 && end == extent && batch == 1)
    node.fail(
        "a range ends with the one sample of the file: a batch of 1 does not show whether it means "
        "all samples or the first one of many");
  if (start == 0 && end >= extent) return std::max(end, now[axis]);
  const bool is_first = start == 0 && end == 1;
  const bool counts_from_ends = start <= 0 && (end < 0 || end >= extent);
  if (is_first || counts_from_ends) return end >= extent ? std::max(end, now[axis]) : end;
  node.fail(
      fmt::format("a range counts samples of the batch of {} with which the file was exported",
                  batch),
      "all samples, the first one, or bounds that count from the end",
      fmt::format("{} to {} of {}", start, end, extent));
}

}  // namespace tandem::importer::operators
