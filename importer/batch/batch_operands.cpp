#include "importer/batch/batch_operands.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "importer/batch/batch_indices.h"
#include "importer/batch/follow_traits.h"
#include "importer/batch/old_batch.h"
#include "importer/batch/sample_numbers.h"
#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer {
namespace {

/// Operators whose operands share the batch axis, counted from the last axis.
struct Consumer {
  std::string_view op;
  std::size_t first = 0, last = 64;  // operands that may hold the file's batch
  std::size_t least_distance = 1;    // the batch axis is at least this far from the end
};

constexpr Consumer consumers[] = {
    {"Add"},
    {"And"},
    {"BitwiseAnd"},
    {"BitwiseOr"},
    {"BitwiseXor"},
    {"Concat"},
    {"Div"},
    {"Equal"},
    {"Expand", 0, 0},
    {"GatherElements"},
    {"Greater"},
    {"GreaterOrEqual"},
    {"GRU", 5, 5},
    {"Less"},
    {"LessOrEqual"},
    {"LSTM", 5, 6},
    {"MatMul", 0, 1, 3},
    {"Max"},
    {"Mean"},
    {"Min"},
    {"Mod"},
    {"Mul"},
    {"Or"},
    {"Pow"},
    {"RNN", 5, 5},
    {"Scatter"},
    {"ScatterElements"},
    {"Sub"},
    {"Sum"},
    {"Where"},
    {"Xor"},
};

const Consumer* consumer_of(const onnx::NodeProto& node) {
  if (!domain_of(node.domain()).empty()) return nullptr;
  const auto* at = std::find_if(std::begin(consumers), std::end(consumers),
                                [&](const Consumer& each) { return each.op == node.op_type(); });
  return at == std::end(consumers) ? nullptr : at;
}

bool looks_up(const onnx::NodeProto& node) {
  return domain_of(node.domain()).empty() && node.input_size() >= 2 &&
         (node.op_type() == "Gather" || node.op_type() == "GatherND" ||
          node.op_type() == "ScatterND");
}

/// Whether a Concat joins along the batch axis, which is `distance` from the end.
bool joins_at(const NodeContext& node, std::size_t distance) {
  const std::int64_t rank = node.rank(0);
  return node.axis(node.integer("axis"), rank) == rank - static_cast<std::int64_t>(distance);
}

bool has_equal_slices(const HostTensor& tensor, std::size_t axis) {
  const Shape& shape = tensor.shape();
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(shape[i]);
  const auto slices = static_cast<std::size_t>(shape[axis]);
  if (tensor.bytes() == 0) return false;
  const std::size_t slice = tensor.bytes() / outer / slices;
  const char* data = static_cast<const char*>(tensor.data());
  for (std::size_t o = 0; o < outer; ++o, data += slices * slice) {
    // Every slice is equal to the one before it.
    if (std::memcmp(data, data + slice, (slices - 1) * slice) != 0) return false;
  }
  return true;
}

/// Looks through the nodes that made a value.
class SameAlong {
 public:
  explicit SameAlong(const Graph& graph) : graph_(graph) {}

  bool value(ValueId id, std::size_t axis) {
    const Value& value = graph_.value(id);
    if (value.type.shape[axis] == 1) return true;
    if (value.kind == ValueKind::constant) return has_equal_slices(*value.constant, axis);
    if (value.kind != ValueKind::computed || --steps_ < 0) return false;
    return made(graph_.node(value.producer), value, axis);
  }

 private:
  static constexpr int most_steps = 256;

  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }

  // An operand whose axes are aligned with those of a result of `rank` axes at the end.
  bool aligned(ValueId id, std::size_t axis, std::size_t rank) {
    const std::size_t missing = rank - shape(id).size();
    return axis < missing || value(id, axis - missing);
  }

  bool made(const Node& node, const Value& result, std::size_t axis) {
    const std::string& op = node.op->name;
    const std::size_t rank = result.type.shape.size();
    if (node.op->random) return false;
    if (node.op->is_scalar() || op == "Where" || op == "Expand" || op == "Cast" ||
        op == "FromFloat8" || op == "ToFloat8" || op == "BitCast") {
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId id) { return !id || aligned(id, axis, rank); });
    }
    if (op == "Transpose") {
      return value(node.inputs[0],
                   static_cast<std::size_t>(node.attributes.integers("perm")[axis]));
    }
    if (op == "Slice" || op == "Identity") return value(node.inputs[0], axis);
    if (op == "Reshape") return reshaped(node.inputs[0], result.type.shape, axis);
    if (op == "Concat") {
      if (node.attributes.integer("axis") == static_cast<std::int64_t>(axis)) return false;
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId id) { return value(id, axis); });
    }
    if (op == "Gather") {
      const auto at = static_cast<std::size_t>(node.attributes.integer("axis"));
      const std::size_t indices = shape(node.inputs[1]).size();
      if (axis < at) return value(node.inputs[0], axis);
      if (axis < at + indices) return value(node.inputs[1], axis - at);
      return value(node.inputs[0], axis - indices + 1);
    }
    if (op == "MatMul") {
      const ValueId a = node.inputs[0], b = node.inputs[1];
      if (shape(a).size() < 2 || shape(b).size() < 2) return false;
      if (axis + 2 == rank) return value(a, shape(a).size() - 2);
      if (axis + 1 == rank) return value(b, shape(b).size() - 1);
      return aligned(a, axis, rank) && aligned(b, axis, rank);
    }
    return false;
  }

  // The axis with the same extent that begins at the same row-major boundary.
  bool reshaped(ValueId id, const Shape& result, std::size_t axis) {
    std::int64_t boundary = 1, before = 1;
    for (std::size_t i = 0; i < axis; ++i) boundary *= result[i];
    const Shape& x = shape(id);
    for (std::size_t i = 0; i < x.size(); before *= x[i], ++i) {
      if (before == boundary && x[i] == result[axis]) return value(id, i);
    }
    return false;
  }

  const Graph& graph_;
  int steps_ = most_steps;
};

}  // namespace

namespace {

// The first `entries` entries along the axis.
Term entries_in_front(NodeContext& context, const Term& term, std::size_t axis,
                      std::int64_t entries) {
  Shape shape = term.type.shape;
  shape[axis] = entries;
  return context.make(
      "Slice", {term},
      {{"starts", Ints(shape.size(), 0)}, {"sizes", shape}, {"steps", Ints(shape.size(), 1)}});
}

// The first slice along the axis, `extent` times.
Term widened(NodeContext& context, const Term& term, std::size_t axis, std::int64_t extent) {
  const Term slice = entries_in_front(context, term, axis, 1);
  Shape shape = term.type.shape;
  shape[axis] = extent;
  return context.expand(slice, shape);
}

// The entries of the first sample, one copy after the other for each of `samples` samples.
Term repeated_samples(NodeContext& context, const Term& term, std::size_t axis,
                      std::int64_t entries, std::int64_t samples) {
  const Term sample = entries_in_front(context, term, axis, entries);
  Shape shape = sample.type.shape;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  shape.insert(shape.begin() + at, 1);
  const Term apart = context.reshape(sample, shape);
  shape[axis] = samples;
  const Term all = context.expand(apart, shape);
  shape.erase(shape.begin() + at);
  shape[axis] = entries * samples;
  return context.reshape(all, shape);
}

}  // namespace

bool is_same_along(const Graph& graph, const Term& term, std::size_t axis) {
  if (term.constant) return has_equal_slices(*term.constant, axis);
  return term.id && SameAlong(graph).value(term.id, axis);
}

BatchOperands::BatchOperands(Session& session, Scope& scope, const onnx::NodeProto& node,
                             const std::string& path)
    : session_(session), scope_(scope), node_(node) {
  const BatchRecord* old = session.old_batch;
  if (old == nullptr) return;
  if (looks_up(node)) {
    follow_samples(path);
    return;
  }
  const Consumer* consumer = consumer_of(node);
  if (consumer == nullptr) return;

  // Operands that follow the batch say where it is, and whether it is in front in its axis.
  std::optional<BatchAxis> batch;
  bool is_in_front = node.op_type() != "Expand";
  std::vector<std::size_t> fixed;
  for (int n = 0; n < node.input_size(); ++n) {
    const auto i = static_cast<std::size_t>(n);
    const Term* term = scope.find(node.input(n));
    const Shape* before = shape_before(session, scope, node.input(n));
    if (term == nullptr || before == nullptr || term->sequence || term->none || term->bad) {
      if (node.input(n).empty()) continue;
      return;
    }
    if (*before == term->type.shape) {
      if (i >= consumer->first && i <= consumer->last) fixed.push_back(i);
      continue;
    }
    const std::optional<BatchAxis> here = changed_axis(*before, term->type.shape, *old);
    if (!here || (batch && *batch != *here)) return;
    batch = here;
    is_in_front = is_in_front && term->samples.before == 1;
  }
  NodeContext context(session, scope, node, 0, path);
  if (node.op_type() == "Expand") {  // here the target has the batch
    const auto target = old->targets.find(scope.prefix + node.output(0));
    if (batch || target == old->targets.end() || !context.in(1).is_constant()) return;
    batch = changed_axis(target->second, context.in(1).constant->integers(), *old);
  }
  if (!batch || batch->distance < consumer->least_distance) return;
  if (node.op_type() == "Concat" && joins_at(context, batch->distance)) return;

  struct Place {
    std::size_t operand = 0, axis = 0;
    bool is_same = true;  // along the axis; else from sample to sample
  };
  const std::int64_t entries = batch->old_extent / old->batch;  // in one sample along the axis
  std::vector<Place> places;
  for (const std::size_t i : fixed) {
    const Term& term = context.in(i);
    const std::size_t rank = term.type.shape.size();
    if (rank < batch->distance) continue;
    const std::size_t axis = rank - batch->distance;
    if (term.type.shape[axis] != batch->old_extent) continue;
    const bool is_same = is_same_along(session.builder.graph(), term, axis);
    const bool is_of_one_sample =
        old->batch == 1 || (term.constant && is_equal_in_samples(*term.constant, axis, entries));
    if (!is_same && (entries == 1 || !is_in_front || !is_of_one_sample)) return;
    places.push_back({i, axis, is_same});
  }
  for (const auto& [i, axis, is_same] : places) {
    const std::string& name = node.input(static_cast<int>(i));
    const auto same = [&](const Changed& each) { return each.name == name; };
    if (std::any_of(changed_.begin(), changed_.end(), same)) continue;
    const Term term = context.in(i);
    put(name, term,
        is_same ? widened(context, term, axis, batch->new_extent)
                : repeated_samples(context, term, axis, entries, old->new_batch));
    axis_ = axis;
  }
}

void BatchOperands::put(const std::string& name, const Term& before, Term now) {
  changed_.push_back({name, before, scope_.names.count(name) > 0});
  scope_.names[name] = std::move(now);
}

void BatchOperands::follow_samples(const std::string& path) {
  for (int i = 0; i < 2; ++i) {
    const Term* term = scope_.find(node_.input(i));
    if (term == nullptr || term->sequence || term->none || term->bad) return;
  }
  const Shape* data = shape_before(session_, scope_, node_.input(0));
  if (data == nullptr) return;
  NodeContext context(session_, scope_, node_, 0, path);
  const Term before = context.in(1);
  if (sample_lookup(context, *session_.old_batch) == SampleLookup::own) {
    const BatchRecord& old = *session_.old_batch;
    const Shape& shape = *shape_before(session_, scope_, node_.input(1));
    while (before.type.shape[axis_] == shape[axis_]) ++axis_;
    put(node_.input(1), before, indices_in_samples(context, old));
  } else {
    std::optional<HostTensor> indices = indices_for_batch(context, *session_.old_batch, *data);
    if (!indices) return;
    while (indices->shape()[axis_] == before.type.shape[axis_]) ++axis_;
    put(node_.input(1), before, session_.constant(std::move(*indices)));
  }
  const std::int64_t extent = scope_.find(node_.input(1))->type.shape[axis_];
  if (node_.op_type() != "ScatterND" || !context.has(2)) return;
  const Term updates = context.in(2);  // their first axes are those of the indices
  if (updates.type.shape.size() > axis_ && updates.type.shape[axis_] != extent &&
      is_same_along(session_.builder.graph(), updates, axis_))
    put(node_.input(2), updates, widened(context, updates, axis_, extent));
}

BatchOperands::~BatchOperands() {
  for (Changed& each : changed_) {
    if (each.is_own) {
      scope_.names[each.name] = std::move(each.before);
    } else {
      scope_.names.erase(each.name);
    }
  }
}

void BatchOperands::record() {
  const std::string& output = node_.output(0);
  const auto before = session_.old_batch->shapes.find(scope_.prefix + output);
  session_.rewrites.push_back(
      {output, before == session_.old_batch->shapes.end() ? Shape{} : before->second, axis_,
       scope_.main, false});
}

}  // namespace tandem::importer
