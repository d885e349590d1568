#include "engine/train/updates/gradient_clipping.h"

#include <algorithm>
#include <numeric>

#include "engine/graph/error.h"

namespace tandem {
namespace {

/// All axes from `first` on, but one.
Ints axes_but(std::int64_t rank, std::int64_t first, std::int64_t but = -1) {
  Ints axes;
  for (std::int64_t axis = first; axis < rank; ++axis) {
    if (axis != but) axes.push_back(axis);
  }
  return axes;
}

/// Empty: the node does not determine them.
Ints axes_of_reader(const Graph& graph, const Node& node, ValueId value, int depth);

Ints axes_of_value(const Graph& graph, ValueId value, int depth) {
  constexpr int most_steps = 8;  // transposes, casts and slices between parameter and product
  if (depth > most_steps) return {};
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::forward) continue;
    if (std::find(node.inputs.begin(), node.inputs.end(), value) == node.inputs.end()) continue;
    Ints axes = axes_of_reader(graph, node, value, depth);
    if (!axes.empty()) return axes;
  }
  return {};
}

Ints axes_of_reader(const Graph& graph, const Node& node, ValueId value, int depth) {
  const auto rank = static_cast<std::int64_t>(graph.type(value).rank());
  const std::string& op = node.op->name;
  if (op == "MatMul" && rank >= 2) return {node.inputs[1] == value ? rank - 2 : rank - 1};
  if (op == "Conv") return axes_but(rank, 1);
  if (op == "ConvGradInput") return axes_but(rank, 0, 1);  // a transposed convolution
  // A rank cuts the padding off its block of a matrix.
  if (op == "Cast" || op == "Identity" || op == "Slice")
    return axes_of_value(graph, node.outputs[0], depth + 1);
  if (op != "Transpose") return {};
  Ints axes = axes_of_value(graph, node.outputs[0], depth + 1);
  const Ints& perm = node.attributes.integers("perm");
  for (std::int64_t& axis : axes) axis = perm[static_cast<std::size_t>(axis)];
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Whether a rank has only a part of some output unit.
bool cuts_units(const UpdateRequest& update, const Ints& axes) {
  if (update.shares_states) return true;
  const std::optional<StateShard>& shard = update.parameter.shard;
  if (!shard || shard->kind == ShardKind::table) return false;
  if (shard->kind == ShardKind::elements || axes.empty()) return true;
  const std::int64_t shared = shard->kind == ShardKind::column_blocks ? 1 : 0;
  return std::find(axes.begin(), axes.end(), shared) != axes.end();
}

[[noreturn]] void refuse_part(const UpdateRequest& update) {
  const std::optional<StateShard>& shard = update.parameter.shard;
  Diagnostic d;
  d.path = update.parameter.path;
  d.message =
      "optimizer.clip_adaptive needs whole output units on each rank, and its policy shards " +
      std::string(update.shares_states || !shard ? "the optimizer's states"
                                                 : "its " + std::string(word_of(shard->kind)));
  d.fix = "add { at = \"" + update.parameter.path +
          "\", shard = \"whole\" } to the policy, or a group with clip_adaptive = 0 to "
          "optimizer.groups";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace

Ints axes_of_units(const Graph& graph, const State& parameter) {
  const auto rank = static_cast<std::int64_t>(parameter.start.shape().size());
  if (rank < 2) return axes_but(rank, 0);
  Ints axes = axes_of_value(graph, parameter.initial, 0);
  return axes.empty() ? axes_but(rank, 1) : axes;
}

double GradientClipping::value(int group) const {
  if (group >= 0 && config_.groups[static_cast<std::size_t>(group)].clip_value)
    return *config_.groups[static_cast<std::size_t>(group)].clip_value;
  return config_.clip_value.value_or(0);
}

double GradientClipping::adaptive(int group) const {
  if (group >= 0 && config_.groups[static_cast<std::size_t>(group)].clip_adaptive)
    return *config_.groups[static_cast<std::size_t>(group)].clip_adaptive;
  return config_.clip_adaptive.value_or(0);
}

const std::optional<double>& GradientClipping::own_norm(int group) const {
  static const std::optional<double> none;
  return group < 0 ? none : config_.groups[static_cast<std::size_t>(group)].clip_norm;
}

bool GradientClipping::changes_elements(int group) const {
  return value(group) > 0 || adaptive(group) > 0;
}

bool GradientClipping::has_norms() const {
  return config_.clip_norm ||
         std::any_of(config_.groups.begin(), config_.groups.end(),
                     [](const OptimizerGroup& group) { return group.clip_norm.has_value(); });
}

bool GradientClipping::is_plain() const {
  bool plain = !changes_elements(-1);
  for (std::size_t i = 0; i < config_.groups.size(); ++i) {
    const int group = static_cast<int>(i);
    plain = plain && !changes_elements(group) && !own_norm(group);
  }
  return plain;
}

ValueId GradientClipping::times(ValueId scale, double factor, DType dtype) {
  const ValueId constant = g_.scalar(factor, dtype);
  return scale ? g_.mul(g_.cast(scale, dtype), constant) : constant;
}

ValueId GradientClipping::adapted(const UpdateRequest& update, ValueId gradient, double ratio,
                                  ValueId scale, const Ints& axes) {
  constexpr double least_norm = 1e-6;  // smallest norm of a gradient by which it is divided
  const DType dtype = g_.dtype(gradient);
  const auto norm = [&](ValueId x) {
    const ValueId squares = g_.mul(x, x);
    return g_.add_node("Sqrt", {axes.empty() ? squares : g_.reduce_sum(squares, axes, true)});
  };
  const ValueId weight = g_.add_node(
      "Max", {norm(update.parameter.initial), g_.scalar(config_.clip_adaptive_eps, dtype)});
  const ValueId most = g_.mul(weight, times(scale, ratio, dtype));
  const ValueId own = g_.add_node("Max", {norm(gradient), times(scale, least_norm, dtype)});
  const ValueId factor = g_.add_node("Min", {g_.div(most, own), g_.scalar(1, dtype)});
  return g_.mul(gradient, factor);
}

void GradientClipping::clip_elements(UpdateRequest& update, ValueId scale) {
  if (!changes_elements(update.group)) return;
  g_.set_scope(update_scope(update.parameter));
  const DType dtype = g_.dtype(update.gradient);
  if (const double most = value(update.group); most > 0) {
    const ValueId limit = times(scale, most, dtype);
    update.gradient = g_.add_node("Min", {update.gradient, limit});
    update.gradient = g_.add_node("Max", {update.gradient, g_.neg(limit)});
  }
  if (const double ratio = adaptive(update.group); ratio > 0) {
    const Ints axes = axes_of_units(g_.graph(), update.parameter);
    if (cuts_units(update, axes)) refuse_part(update);
    update.gradient = adapted(update, update.gradient, ratio, scale, axes);
  }
}

std::vector<ValueId> GradientClipping::norm_scales(const std::vector<UpdateRequest>& updates,
                                                   const std::vector<ValueId>& squares,
                                                   ValueId scale) {
  // By group; -1 for all that have no norm of their own.
  std::map<int, std::vector<ValueId>> together;
  const auto key_of = [&](const UpdateRequest& update) {
    return own_norm(update.group) ? update.group : -1;
  };
  for (std::size_t i = 0; i < updates.size(); ++i) {
    ValueId square = squares[i];
    if (scale) square = g_.div(g_.div(square, scale), scale);
    together[key_of(updates[i])].push_back(square);
  }
  std::map<int, ValueId> scales;
  for (const auto& [key, sums] : together) {
    const std::optional<double>& most = key < 0 ? config_.clip_norm : own_norm(key);
    if (!most) continue;
    const std::vector<ValueId> made = g_.node("ClipScale", sums, {{"max_norm", *most}});
    scales[key] = made[0];
    if (key < 0) g_.output("gradient_norm", made[1]);
  }
  std::vector<ValueId> result;
  for (const UpdateRequest& update : updates) {
    const auto found = scales.find(key_of(update));
    result.push_back(found == scales.end() ? ValueId{} : found->second);
  }
  return result;
}

}  // namespace tandem
