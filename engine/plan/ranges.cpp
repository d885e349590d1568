#include "engine/plan/ranges.h"

#include <map>
#include <tuple>

#include "engine/graph/align.h"
#include "engine/lower/kernel_choice.h"
#include "engine/operators/operator.h"
#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

class Splitter {
 public:
  Splitter(const Lowered& lowered, std::size_t range_bytes, bool deterministic)
      : lowered_(lowered),
        graph_(lowered.graph),
        range_bytes_(static_cast<std::int64_t>(std::max<std::size_t>(range_bytes, 1))),
        deterministic_(deterministic),
        needed_(needed_values(lowered)),
        lengths_(graph_.nodes.size(), 0) {}

  std::vector<std::int64_t> run() {
    find_transfers();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (lowered_.nodes[n].kernel == nullptr || !graph_.node(id).op->elementwise_ranges) continue;
      const std::int64_t length = length_of(id);
      if (length == 0) continue;
      bool crosses = false;
      for (const auto& operands : {&graph_.node(id).inputs, &graph_.node(id).outputs}) {
        for (ValueId value : *operands) {
          if (!value || elements(value) != total_of(id)) continue;
          for (NodeId transfer : transfers_[place_of(value)]) {
            crosses = true;
            std::int64_t& own = lengths_[transfer.index];
            if (own == 0) own = length;
          }
        }
      }
      if (crosses) lengths_[n] = length;
    }
    return std::move(lengths_);
  }

 private:
  // Bytes of a buffer; values in the same place have the same elements in the same order, if both
  // are dense and of the same type.
  using Place = std::tuple<std::int32_t, std::size_t, std::size_t>;

  std::int64_t elements(ValueId value) const { return graph_.type(value).elements(); }
  std::int64_t total_of(NodeId id) const { return elements(graph_.node(id).outputs[0]); }

  Place place_of(ValueId value) const {
    const ByteRange bytes = bytes_of(lowered_, value);
    return {lowered_.values[value.index].storage.index, bytes.begin, bytes.end};
  }

  bool is_dense(ValueId value) const {
    return satisfies({LayoutConstraint::Kind::dense, {}}, lowered_.values[value.index].layout,
                     graph_.type(value).shape);
  }

  bool lie_alike(ValueId a, ValueId b) const {
    const Shape& shape = graph_.type(a).shape;
    Layout other = lowered_.values[b.index].layout;
    other.offset = lowered_.values[a.index].layout.offset;
    return graph_.type(b).shape == shape && is_dense(b) &&
           same_places(lowered_.values[a.index].layout, other, shape);
  }

  void find_transfers() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!lowered_.nodes[n].transfer) continue;
      const NodeId id{static_cast<std::int32_t>(n)};
      const ValueId x = graph_.node(id).inputs[0], y = graph_.node(id).outputs[0];
      if (!is_dense(x) || !lie_alike(x, y)) continue;
      transfers_[place_of(x)].push_back(id);
      transfers_[place_of(y)].push_back(id);
    }
  }

  // Elements of a range, or 0 where the node has to run whole.
  std::int64_t length_of(NodeId id) const {
    const Node& node = graph_.node(id);
    const ValueId first = node.outputs[0];
    const std::int64_t total = total_of(id);
    if (total <= range_alignment || !is_dense(first)) return 0;
    std::int64_t widest = 0;
    for (const auto& operands : {&node.inputs, &node.outputs}) {
      for (ValueId value : *operands) {
        if (!value || elements(value) <= 1) continue;
        if (elements(value) != total || !lie_alike(first, value)) return 0;
        widest = std::max(widest, static_cast<std::int64_t>(size_of(graph_.type(value).dtype)));
      }
    }
    const std::int64_t parts = (total * widest + range_bytes_ - 1) / range_bytes_;
    if (parts <= 1) return 0;
    std::int64_t length = (total + parts - 1) / parts;
    length = align_up(length, range_alignment);
    // Rounding up must not pass the limit.
    if (length > range_alignment && length * widest > range_bytes_) length -= range_alignment;
    return length < total && takes_ranges(id, length) ? length : 0;
  }

  // Whether the kernel takes flat operands, besides the ones that it was chosen for.
  bool takes_ranges(NodeId id, std::int64_t length) const {
    const Kernel& kernel = *lowered_.nodes[id.index].kernel;
    const KernelRequest request = request_of(lowered_, id, needed_, deterministic_, length);
    if (kernel.refuse && kernel.refuse(request)) return false;
    for (const Proposal& proposal : kernel.propose(request)) {
      bool fits = true;
      const auto check = [&](const std::vector<Operand>& operands,
                             const std::vector<LayoutConstraint>& constraints) {
        for (std::size_t i = 0; i < operands.size(); ++i) {
          fits = fits &&
                 (!operands[i].present || satisfies(constraint_of(constraints, i),
                                                    operands[i].layout, operands[i].type.shape));
        }
      };
      check(request.inputs, proposal.inputs);
      check(request.outputs, proposal.outputs);
      if (fits) return true;
    }
    return false;
  }

  const Lowered& lowered_;
  const Graph& graph_;
  const std::int64_t range_bytes_;
  const bool deterministic_;
  const std::vector<char> needed_;
  std::map<Place, std::vector<NodeId>> transfers_;  // by what they read and by what they write
  std::vector<std::int64_t> lengths_;               // per node
};

}  // namespace

std::vector<std::int64_t> split_ranges(const Lowered& lowered, std::size_t range_bytes,
                                       bool deterministic) {
  return Splitter(lowered, range_bytes, deterministic).run();
}

KernelRequest request_of(const Lowered& lowered, NodeId id, const std::vector<char>& needed,
                         bool deterministic, std::int64_t elements) {
  const Node& node = lowered.graph.node(id);
  std::vector<Layout> in, out;
  std::vector<bool> read;
  for (ValueId value : node.inputs)
    in.push_back(value ? lowered.values[value.index].layout : Layout{});
  for (ValueId value : node.outputs) {
    out.push_back(lowered.values[value.index].layout);
    read.push_back(needed[value.index] != 0);
  }
  const Device& device = *lowered.devices[lowered.nodes[id.index].device];
  KernelRequest request = make_request(lowered.graph, id, in, out, read, device, deterministic);
  const NodeRanges ranges(lowered, id, elements);
  for (std::vector<Operand>* operands : {&request.inputs, &request.outputs}) {
    for (Operand& operand : *operands) {
      if (!ranges.cuts(operand.type)) continue;
      operand.type.shape = {elements};
      operand.layout = row_major(operand.type.shape);
    }
  }
  return request;
}

}  // namespace tandem
