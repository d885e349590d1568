// Joins element-wise nodes over one index space, and one reduction after them, into Fused nodes.
//
// A cluster is a set of nodes with outputs of one shape on one device and in one phase, such that
// no path leaves it and comes back: otherwise it could not run as one node.
#include <algorithm>
#include <unordered_map>

#include "engine/graph/builder.h"
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

constexpr int largest_cluster = 24;

struct Cluster {
  std::vector<std::int32_t> members;  // ascending
  std::int32_t reduction = -1;
};

// Whether it is a sum or mean over the axes at one end of the shape: leading or trailing ones.
bool reduces_one_end(const Node& node, const Shape& shape) {
  if (node.op->reducer != Reducer::sum && node.op->reducer != Reducer::mean) return false;
  const Ints& axes = node.attributes.integers("axes");
  if (axes.empty() || axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size())) {
    return false;
  }
  return axes.front() == 0 || axes.back() + 1 == static_cast<std::int64_t>(shape.size());
}

class Fusion {
 public:
  explicit Fusion(PlacedEdit& edit)
      : edit_(edit), count_(edit.graph().nodes.size()), cluster_of_(count_, -1) {
    add_state_edges();
    limit_.assign(count_, largest_cluster);
    for (std::size_t n = 0; n < count_; ++n)
      fusible_.push_back(is_fusible(static_cast<std::int32_t>(n)));
  }

  void run() {
    // A cluster that no kernel takes is tried again without its reduction, then in smaller parts.
    for (int round = 0; round < 4; ++round) {
      make_clusters();
      bool refused = false;
      for (Cluster& cluster : clusters_) {
        if (size_of(cluster) < 2 || takes(cluster)) continue;
        refused = true;
        if (cluster.reduction >= 0) {
          limit_[cluster.reduction] = 0;
          continue;
        }
        for (std::int32_t n : cluster.members) limit_[n] = round < 2 ? size_of(cluster) / 2 : 0;
      }
      if (!refused) break;
      if (round == 3) {  // leave the rest as it is
        for (Cluster& cluster : clusters_) {
          if (size_of(cluster) >= 2 && !takes(cluster)) cluster = {};
        }
      }
    }
    for (const Cluster& cluster : clusters_) {
      if (size_of(cluster) >= 2) commit(cluster);
    }
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  static int size_of(const Cluster& c) {
    return static_cast<int>(c.members.size()) + (c.reduction >= 0);
  }
  const Shape& shape_of(std::int32_t n) const {
    return graph().type(graph().nodes[n].outputs[0]).shape;
  }

  // A reader of a state comes before its writer, which is an edge without a value.
  void add_state_edges() {
    extra_inputs_.resize(count_);
    for (const State& state : graph().states) {
      if (state.final == state.initial) continue;
      const NodeId writer = graph().value(state.final).producer;
      for (NodeId reader : edit_.readers(state.initial)) {
        if (!(reader == writer)) extra_inputs_[writer.index].push_back(reader.index);
      }
    }
  }

  bool is_fusible(std::int32_t n) {
    const Node& node = graph().nodes[n];
    if (!node.op->is_scalar() || is_view(node) || node.outputs.size() != 1) return false;
    if (graph().type(node.outputs[0]).elements() == 0) return false;
    return takes(Cluster{{n}, -1});
  }

  bool takes(const Cluster& cluster) {
    const NodeId node = add(cluster);
    const bool accepted = edit_.has_fast_kernel(node);
    edit_.drop(node);
    return accepted;
  }

  std::vector<std::int32_t> all_of(const Cluster& cluster) const {
    std::vector<std::int32_t> nodes = cluster.members;
    if (cluster.reduction >= 0) nodes.push_back(cluster.reduction);
    return nodes;
  }

  // Builds the Fused node of a cluster; `results` gets the old value of each of its outputs.
  NodeId add(const Cluster& cluster, std::vector<ValueId>* results = nullptr) {
    GraphBuilder body(edit_.context().operators);
    std::unordered_map<std::int32_t, ValueId> inner;
    std::vector<ValueId> inputs;
    std::vector<NodeId> merged;
    const std::vector<std::int32_t> nodes = all_of(cluster);
    std::unordered_map<std::int32_t, int> made;  // value -> position among the cluster's nodes
    for (std::size_t i = 0; i < nodes.size(); ++i)
      made[graph().nodes[nodes[i]].outputs[0].index] = static_cast<int>(i);
    for (std::int32_t n : nodes) {
      const Node& node = graph().nodes[n];
      for (ValueId input : node.inputs) {
        if (!input || made.count(input.index) || inner.count(input.index)) continue;
        inner[input.index] = body.input("x" + std::to_string(inputs.size()), graph().type(input));
        inputs.push_back(input);
      }
    }
    for (std::int32_t n : nodes) {
      const Node& node = graph().nodes[n];
      std::vector<ValueId> operands;
      for (ValueId input : node.inputs)
        operands.push_back(input ? inner.at(input.index) : ValueId{});
      body.set_scope({node.path, node.phase, node.origins});
      inner[node.outputs[0].index] =
          body.add_node(node.op->name, std::move(operands), node.attributes);
      merged.push_back(NodeId{n});
    }
    for (std::int32_t n : nodes) {
      const ValueId output = graph().nodes[n].outputs[0];
      bool needed = edit_.is_kept(output);
      for (NodeId reader : edit_.readers(output)) {
        needed |= std::find(nodes.begin(), nodes.end(), reader.index) == nodes.end();
      }
      if (!needed) continue;
      body.output("y" + std::to_string(body.graph().outputs.size()), inner.at(output.index));
      if (results != nullptr) results->push_back(output);
    }
    if (body.graph().outputs.empty()) {  // a dead node: it goes away with its cluster
      body.output("y0", inner.at(graph().nodes[nodes.back()].outputs[0].index));
      if (results != nullptr) results->push_back(graph().nodes[nodes.back()].outputs[0]);
    }
    const NodeId last{*std::max_element(nodes.begin(), nodes.end())};
    return edit_.add("Fused", std::move(inputs), {}, last, merged,
                     std::make_shared<const Graph>(body.finish()));
  }

  void commit(const Cluster& cluster) {
    std::vector<ValueId> results;
    const NodeId fused = add(cluster, &results);
    for (std::size_t i = 0; i < results.size(); ++i) {
      edit_.replace(results[i], edit_.graph().node(fused).outputs[i]);
    }
  }

  // Whether some path from `joint` leads outside and back into it, or to a reduction in it, which
  // ends the node that `joint` would be.
  bool leaves_and_returns(const std::vector<std::int32_t>& joint) const {
    std::vector<char> inside(count_, 0), seen(count_, 0);
    for (std::int32_t n : joint) inside[n] = 1;
    std::vector<std::int32_t> todo;
    bool found = false;
    auto visit = [&](std::int32_t n, bool from_outside) {
      if (inside[n]) {
        found |= from_outside || !fusible_[n];
        return;
      }
      if (seen[n]) return;
      const std::int32_t c = cluster_of_[n];
      if (c < 0) {
        seen[n] = 1;
        todo.push_back(n);
        return;
      }
      // A cluster runs as one node: what needs one member waits for the inputs of all.
      for (std::int32_t member : all_of(clusters_[c])) {
        seen[member] = 1;
        todo.push_back(member);
      }
    };
    auto visit_inputs = [&](std::int32_t n, bool from_outside) {
      for (ValueId input : graph().nodes[n].inputs) {
        if (input && graph().value(input).producer)
          visit(graph().value(input).producer.index, from_outside);
      }
      for (std::int32_t reader : extra_inputs_[n]) visit(reader, from_outside);
    };
    for (std::int32_t n : joint) visit_inputs(n, false);
    while (!todo.empty() && !found) {
      const std::int32_t n = todo.back();
      todo.pop_back();
      visit_inputs(n, true);
    }
    return found;
  }

  void join(std::int32_t cluster, std::int32_t n) {
    clusters_[cluster].members.push_back(n);
    cluster_of_[n] = cluster;
  }

  void make_clusters() {
    clusters_.clear();
    cluster_of_.assign(count_, -1);
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(count_); ++n) {
      if (fusible_[n] && limit_[n] > 0) {
        add_element_wise(n);
      } else {
        add_reduction(n);
      }
    }
  }

  void add_element_wise(std::int32_t n) {
    const Node& node = graph().nodes[n];
    std::int32_t mine = -1;
    for (ValueId input : node.inputs) {
      const NodeId producer = input ? graph().value(input).producer : NodeId{};
      if (!producer) continue;
      const std::int32_t c = cluster_of_[producer.index];
      if (c < 0 || c == mine || producer.index == clusters_[c].reduction) continue;
      const Node& other = graph().node(producer);
      if (shape_of(n) != shape_of(producer.index) || other.phase != node.phase ||
          edit_.device(producer) != edit_.device(NodeId{n})) {
        continue;
      }
      std::vector<std::int32_t> joint = all_of(clusters_[c]);
      if (mine < 0) {
        joint.push_back(n);
      } else {
        const std::vector<std::int32_t> more = all_of(clusters_[mine]);
        joint.insert(joint.end(), more.begin(), more.end());
        if (clusters_[c].reduction >= 0 && clusters_[mine].reduction >= 0) continue;
      }
      if (static_cast<int>(joint.size()) > smallest_limit(joint) || leaves_and_returns(joint))
        continue;
      if (mine < 0) {
        join(c, n);
        mine = c;
      } else {
        absorb(c, mine);
        mine = c;
      }
    }
    if (mine < 0) {
      clusters_.push_back({});
      join(static_cast<std::int32_t>(clusters_.size()) - 1, n);
    }
  }

  int smallest_limit(const std::vector<std::int32_t>& nodes) const {
    int limit = largest_cluster;
    for (std::int32_t n : nodes) limit = std::min(limit, std::max(limit_[n], 1));
    return limit;
  }

  void absorb(std::int32_t into, std::int32_t from) {
    for (std::int32_t n : clusters_[from].members) join(into, n);
    std::sort(clusters_[into].members.begin(), clusters_[into].members.end());
    if (clusters_[from].reduction >= 0) {
      clusters_[into].reduction = clusters_[from].reduction;
      cluster_of_[clusters_[into].reduction] = into;
    }
    clusters_[from] = {};
  }

  void add_reduction(std::int32_t n) {
    const Node& node = graph().nodes[n];
    if (node.inputs.empty() || !node.inputs[0] || limit_[n] == 0) return;
    const NodeId producer = graph().value(node.inputs[0]).producer;
    if (!producer || !reduces_one_end(node, graph().type(node.inputs[0]).shape)) return;
    const std::int32_t c = cluster_of_[producer.index];
    if (c < 0 || clusters_[c].reduction >= 0 || edit_.device(producer) != edit_.device(NodeId{n}))
      return;
    if (graph().node(producer).phase != node.phase) return;
    std::vector<std::int32_t> joint = all_of(clusters_[c]);
    joint.push_back(n);
    if (leaves_and_returns(joint)) return;
    clusters_[c].reduction = n;
    cluster_of_[n] = c;
  }

  PlacedEdit& edit_;
  std::size_t count_;
  std::vector<Cluster> clusters_;
  std::vector<std::int32_t> cluster_of_;
  std::vector<int> limit_;  // per node: largest cluster that it may be in; 0 = none
  std::vector<char> fusible_;
  std::vector<std::vector<std::int32_t>> extra_inputs_;
};

}  // namespace

PlacedGraph fuse(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  Fusion(edit).run();
  return edit.finish();
}

}  // namespace tandem
