#include "importer/operators/rebatch.h"

#include "importer/file/tensor_data.h"

namespace tandem::importer::operators {
namespace {

std::string key_of(NodeContext& node, const std::string& name) {
  for (const Scope* scope = &node.scope(); scope != nullptr; scope = scope->outer) {
    if (scope->names.count(name) > 0) return scope->prefix + name;
  }
  return node.scope().prefix + name;
}

std::int64_t product(const Shape& shape, std::size_t count) {
  std::int64_t result = 1;
  for (std::size_t i = 0; i < count; ++i) result *= shape[i];
  return result;
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
  const auto x = old->shapes.find(key_of(node, node.node().input(0)));
  const auto y = old->shapes.find(output);
  if (old_target == old->targets.end() || old_target->second != target) return std::nullopt;
  if (x == old->shapes.end() || y == old->shapes.end()) return std::nullopt;
  return Before{x->second, y->second, old->batch, old->new_batch};
}

void remember(NodeContext& node, const Ints& target) {
  node.session().record.targets[node.scope().prefix + node.node().output(0)] = target;
}

void note_rewrite(NodeContext& node, const Shape& old_target, std::size_t axis,
                  bool has_free_form = true) {
  node.session().rewrites.push_back(
      {node.node().output(0), old_target, axis, node.scope().main, has_free_form});
}

// The axis of y that grows with axis `changed` of x: both begin at the same row-major boundary, and
// it holds whole batches of the file's size.
std::optional<std::size_t> matching_axis(const Shape& x, const Shape& y, std::size_t changed,
                                         std::int64_t batch) {
  const std::int64_t boundary = product(x, changed);
  std::optional<std::size_t> first;
  for (std::size_t o = 0; o < y.size(); ++o) {
    if (product(y, o) != boundary || y[o] % batch != 0) continue;
    if (o == changed) return o;
    if (!first) first = o;
  }
  return first;
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
    std::optional<std::size_t> axis;
    if (changed.size() == 1) axis = matching_axis(old->x, old->y, changed[0], old->batch);
    if (axis) {
      Shape scaled = old->y;
      scaled[*axis] = scaled[*axis] / old->batch * old->new_batch;
      if (checked_elements(scaled, std::int64_t{1} << 48) == element_count(x)) {
        if (plain != scaled) note_rewrite(node, old->y, *axis);
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

}  // namespace tandem::importer::operators
