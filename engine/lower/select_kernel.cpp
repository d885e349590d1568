#include "engine/lower/select_kernel.h"

#include <algorithm>
#include <map>

#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "engine/lower/kernel_choice.h"

namespace tandem {
namespace {

using Kind = LayoutConstraint::Kind;

struct Evaluation {
  bool possible = true;
  double penalty = 0;  // bytes copied, or left in another layout than wanted
  KernelSelection selection;
};

class Evaluator {
 public:
  Evaluator(const PlacedGraph& placed, NodeId id, const NodeOperands& operands)
      : graph_(placed.graph), node_(graph_.node(id)), operands_(operands) {
    std::map<Shape, int> shapes;
    auto shape_group = [&](const Shape& shape) {
      return shapes.try_emplace(shape, static_cast<int>(shapes.size())).first->second;
    };
    const bool grouped = node_.op->role == Role::grouped_update;
    const std::size_t count = grouped ? node_.attributes.integer("count") : 1;
    const std::size_t own = grouped ? (node_.inputs.size() - 4) / count : 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const Shape& shape = node_.inputs[i] ? graph_.type(node_.inputs[i]).shape : Shape{};
      input_groups_.push_back(grouped ? static_cast<int>(i / own) : shape_group(shape));
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      const Shape& shape = graph_.type(node_.outputs[i]).shape;
      output_groups_.push_back(grouped ? static_cast<int>(i / (node_.outputs.size() / count))
                                       : shape_group(shape));
    }
  }

  Evaluation evaluate(const Proposal& proposal) {
    Evaluation result;
    result.selection.input_copies.resize(node_.inputs.size());
    dense_.clear();
    std::vector<Layout> final_inputs = operands_.inputs;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      if (!node_.inputs[i]) continue;
      const LayoutConstraint constraint = constraint_of(proposal.inputs, i);
      const Shape& shape = graph_.type(node_.inputs[i]).shape;
      if (input_fits(constraint, proposal, i)) continue;
      const Layout to = copied_layout(constraint, proposal, shape, input_groups_[i]);
      result.selection.input_copies[i] = to;
      final_inputs[i] = to;
      const bool is_overwritten =
          std::find(operands_.overwritten.begin(), operands_.overwritten.end(),
                    static_cast<int>(i)) != operands_.overwritten.end();
      if (is_overwritten) result.possible = false;
      const bool at_hand = operands_.has_copy && operands_.has_copy(i, to);
      if (!at_hand && !graph_.is_constant(node_.inputs[i])) {
        result.penalty += static_cast<double>(graph_.type(node_.inputs[i]).bytes());
      }
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      place_output(proposal, i, final_inputs, result);
    }
    return result;
  }

 private:
  bool input_fits(const LayoutConstraint& constraint, const Proposal& proposal, std::size_t i) {
    const Shape& shape = graph_.type(node_.inputs[i]).shape;
    const Layout& layout = operands_.inputs[i];
    if (!satisfies(constraint, layout, shape)) return false;
    return constraint.kind != Kind::dense ||
           same_but_offset(layout, dense_layout(proposal, input_groups_[i], shape), shape);
  }

  static bool same_but_offset(const Layout& a, Layout b, const Shape& shape) {
    b.offset = a.offset;
    return same_places(a, b, shape);
  }

  // The permutation shared by all operands of a group that have to be dense: that of a state that
  // the node overwrites, else the one that leaves the fewest operands to be copied.
  const Layout& dense_layout(const Proposal& proposal, int group, const Shape& shape) {
    const auto found = dense_.find(group);
    if (found != dense_.end()) return found->second;
    const LayoutConstraint dense{Kind::dense, {}};
    std::optional<Layout> fixed;
    std::vector<Layout> operands;  // where each dense operand of the group lies or should lie
    for (int input : operands_.overwritten) {
      if (!fixed && input >= 0 && input_groups_[input] == group) fixed = operands_.inputs[input];
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      const auto& want = operands_.wants[i];
      if (output_groups_[i] == group && constraint_of(proposal.outputs, i).kind == Kind::dense &&
          want) {
        operands.push_back(want->layout);
      }
    }
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] && input_groups_[i] == group &&
          constraint_of(proposal.inputs, i).kind == Kind::dense) {
        operands.push_back(operands_.inputs[i]);
      }
    }
    Layout best = row_major(shape);
    std::ptrdiff_t most = 0;
    for (const Layout& candidate : operands) {
      if (!satisfies(dense, candidate, shape)) continue;
      const auto same = std::count_if(operands.begin(), operands.end(), [&](const Layout& other) {
        return other.is_strided() && same_but_offset(candidate, other, shape);
      });
      if (same > most) {
        most = same;
        best = candidate;
      }
    }
    if (fixed) best = *fixed;
    best.offset = 0;
    return dense_.emplace(group, std::move(best)).first->second;
  }

  Layout copied_layout(const LayoutConstraint& constraint, const Proposal& proposal,
                       const Shape& shape, int group) {
    switch (constraint.kind) {
      case Kind::channels_last:
        return shape.size() >= 3 ? channels_last(shape) : row_major(shape);
      case Kind::exact:
        return constraint.layout;
      case Kind::dense:
        return dense_layout(proposal, group, shape);
      default:
        return row_major(shape);
    }
  }

  void place_output(const Proposal& proposal, std::size_t i, const std::vector<Layout>& inputs,
                    Evaluation& result) {
    const Shape& shape = graph_.type(node_.outputs[i]).shape;
    const LayoutConstraint constraint = constraint_of(proposal.outputs, i);
    const int input = operands_.overwritten[i];
    if (input >= 0) {
      if (!satisfies(constraint, inputs[input], shape)) result.possible = false;
      result.selection.outputs.push_back(inputs[input]);
      result.selection.storages.push_back({});
      return;
    }
    const std::optional<Want>& want = operands_.wants[i];
    bool fits = want && satisfies(constraint, want->layout, shape);
    if (fits && constraint.kind == Kind::dense) {
      fits = same_but_offset(want->layout, dense_layout(proposal, output_groups_[i], shape), shape);
    }
    if (fits) {
      result.selection.outputs.push_back(want->layout);
      result.selection.storages.push_back(want->storage);
      return;
    }
    if (want && operands_.read[i]) {  // each of its readers may need a copy of its own
      result.penalty += 4 * static_cast<double>(graph_.type(node_.outputs[i]).bytes());
    }
    Layout layout = copied_layout(constraint, proposal, shape, output_groups_[i]);
    if (constraint.kind == Kind::any || constraint.kind == Kind::unit_stride)
      layout = free_layout(i, inputs);
    result.selection.outputs.push_back(std::move(layout));
    result.selection.storages.push_back({});
  }

  // The layout where there is no preference: element-wise results follow their inputs, others are
  // row-major.
  Layout free_layout(std::size_t output, const std::vector<Layout>& inputs) const {
    const Shape& shape = graph_.type(node_.outputs[output]).shape;
    std::optional<Layout> first;
    if (node_.op->is_elementwise()) {
      for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
        if (!node_.inputs[i] || graph_.type(node_.inputs[i]).shape != shape) continue;
        if (is_row_major(inputs[i], shape)) return row_major(shape);
        if (!first && satisfies({Kind::dense, {}}, inputs[i], shape)) first = inputs[i];
      }
    }
    if (!first) return row_major(shape);
    first->offset = 0;
    return *first;
  }

  const Graph& graph_;
  const Node& node_;
  const NodeOperands& operands_;
  std::vector<int> input_groups_, output_groups_;
  std::map<int, Layout> dense_;
};

[[noreturn]] void no_kernel(const Node& node, const Device& device,
                            const std::vector<std::string>& refused, const LowerContext& context) {
  Diagnostic d{.message = "no kernel of device " + device.name() + " computes " + node.op->name,
               .path = node.path};
  d.got = joined(refused, "; ");
  d.fix = "use other element types or attributes";
  if (&device != context.devices[host]) {
    d.fix += ", or the rule { at = \"" + node.path + "\", run = \"cpu\" }";
  }
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace

KernelSelection select_kernel(const PlacedGraph& placed, NodeId id, const NodeOperands& operands,
                              const LowerContext& context) {
  const Graph& graph = placed.graph;
  const Node& node = graph.node(id);
  const Device& device = *context.devices[placed.nodes[id.index].device];
  const bool deterministic = context.options.deterministic;
  std::vector<Layout> wanted;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const int input = operands.overwritten[i];
    const Shape& shape = graph.type(node.outputs[i]).shape;
    wanted.push_back(input >= 0          ? operands.inputs[input]
                     : operands.wants[i] ? operands.wants[i]->layout
                                         : row_major(shape));
  }
  const KernelRequest request =
      make_request(graph, id, operands.inputs, wanted, operands.read, device, deterministic);
  Evaluator evaluator(placed, id, operands);
  std::optional<Evaluation> best;
  std::vector<std::string> refused;
  for (const Kernel& kernel : device.kernels()) {
    if (kernel.op != node.op->name) continue;
    std::optional<std::string> reason;
    if (deterministic && !kernel.deterministic) {
      reason = "not deterministic";
    } else if (kernel.refuse) {
      reason = kernel.refuse(request);
    }
    if (reason) {
      refused.push_back(kernel.name + ": " + *reason);
      continue;
    }
    // A reference kernel that takes the layouts is no better than a fast one with a copy.
    if (best && kernel.reference && !best->selection.kernel->reference) break;
    std::optional<Evaluation> own;
    for (const Proposal& proposal : kernel.propose(request)) {
      Evaluation evaluation = evaluator.evaluate(proposal);
      if (!evaluation.possible || (own && own->penalty <= evaluation.penalty)) continue;
      own = std::move(evaluation);
      if (own->penalty == 0) break;
    }
    if (!own) {
      refused.push_back(kernel.name + ": cannot overwrite its input in this layout");
      continue;
    }
    own->selection.kernel = &kernel;
    const bool exact = own->penalty == 0;
    if (!best || exact) {
      own->selection.refused = refused;
      best = std::move(own);
    }
    if (exact) break;
  }
  if (!best) no_kernel(node, device, refused, context);
  return std::move(best->selection);
}

}  // namespace tandem
