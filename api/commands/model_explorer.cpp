// `tandem policy plan --model-explorer FILE`: a model under a policy as a graph of nested modules
// for the viewer Model Explorer.
//
// The file is one of the viewer's graph collections, which its readers take as they are:
//   {label, graphs: [{id, groupNodeAttributes: {NAMESPACE: {KEY: TEXT}}, nodes: [...]}]}
//   node: {id, label, namespace: "blocks/0/mlp", attrs: [{key, value}], incomingEdges:
//          [{sourceNodeId, sourceNodeOutputId, targetNodeInputId}], outputsMetadata: [{id, attrs}]}
#include <filesystem>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "api/commands/page/item_costs.h"
#include "api/commands/page/model_tree.h"
#include "api/output_file.h"
#include "api/policy/policy_case.h"
#include "api/program/policy_files.h"
#include "engine/graph/text.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

constexpr const char* option = "--model-explorer";
constexpr const char* mark = R"("made_by":"tandem policy plan")";

/// Frames of the nodes of the devices but the cpu, in the order of the policy.
constexpr const char* frames[] = {"#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d"};

using Source = std::pair<std::string, std::string>;  // id of a node, id of its output

std::string ms_text(double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); }

/// "blocks/0" of "blocks.0". The viewer splits at "/", and at ";".
std::string namespace_of(std::string module) {
  for (char& c : module) {
    if (c == '/') c = '|';
    if (c == ';') c = ',';
    if (c == '.') c = '/';
  }
  return module;
}

struct Totals {
  int operators = 0, parameters = 0;
  std::size_t weights = 0, states = 0, kept = 0;  // bytes
  double seconds = 0;                             // in a step
  std::set<std::string> devices;

  void add(const Totals& other) {
    operators += other.operators, parameters += other.parameters;
    weights += other.weights, states += other.states, kept += other.kept;
    seconds += other.seconds;
    devices.insert(other.devices.begin(), other.devices.end());
  }
};

using Attributes = std::vector<std::pair<const char*, std::string>>;

PageJson attributes_json(const Attributes& attributes) {
  PageJson list = PageJson::array();
  for (const auto& [key, value] : attributes)
    if (!value.empty()) list.push_back({{"key", key}, {"value", value}});
  return list;
}

/// `outputs`: their types.
PageJson node_json(const std::string& id, const std::string& label, const std::string& module,
                   const Attributes& attributes, PageJson edges,
                   const std::vector<std::string>& outputs) {
  PageJson metadata = PageJson::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    metadata.push_back(
        {{"id", std::to_string(i)}, {"attrs", attributes_json({{"tensor_shape", outputs[i]}})}});
  }
  return {{"id", id},
          {"label", label},
          {"namespace", namespace_of(module)},
          {"attrs", attributes_json(attributes)},
          {"incomingEdges", std::move(edges)},
          {"outputsMetadata", std::move(metadata)}};
}

class ExplorerGraph {
 public:
  ExplorerGraph(PolicyCase& of, const PlannedStep& step, const std::string& name)
      : graph_(of.graph()),
        resolved_(of.resolved()),
        items_(graph_, of.imported().raw_names, added_parts(resolved_)),
        tree_(graph_, items_, name),
        costs_(item_costs(step, graph_, items_)),
        totals_(tree_.items().size()) {
    name_nodes();
    add_nodes();
    sum_modules();
  }

  const std::vector<PageJson>& nodes() const { return nodes_; }

  /// By the namespace of the module; "" is the whole model.
  PageJson modules() const {
    PageJson json = PageJson::object();
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      if (tree_.items()[i].kind != TreeItem::Kind::module) continue;
      const Totals& sum = totals_[i];
      json[namespace_of(tree_.items()[i].path)] = {
          {"operators", std::to_string(sum.operators)},
          {"parameters", std::to_string(sum.parameters)},
          {"bytes of parameters", size_text(sum.weights)},
          {"bytes of optimizer state", size_text(sum.states)},
          {"bytes kept for backward", size_text(sum.kept)},
          {"time in a step", ms_text(sum.seconds)},
          {"devices", joined(std::vector<std::string>(sum.devices.begin(), sum.devices.end()))}};
    }
    return json;
  }

 private:
  std::string unused_id(const std::string& name) {
    std::string id = name;
    for (int i = 2; !ids_.insert(id).second; ++i) id = name + " " + std::to_string(i);
    return id;
  }

  /// The ids of all nodes, and the outputs of operators that something else reads.
  void name_nodes() {
    for (const TreeItem& item : tree_.items())
      item_ids_.push_back(item.kind == TreeItem::Kind::module ? "" : unused_id(item.path));
    std::set<std::int32_t> read;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId input : graph_.nodes[n].inputs) {
        const NodeId producer = input ? graph_.value(input).producer : NodeId{};
        if (producer && items_.operator_of_node[static_cast<std::size_t>(producer.index)] !=
                            items_.operator_of_node[n])
          read.insert(input.index);
      }
    }
    for (const NamedValue& output : graph_.outputs) read.insert(output.value.index);
    types_.resize(items_.operators.size());
    for (std::size_t i = 0; i < items_.operators.size(); ++i) {
      const std::string& id = id_of(tree_.of_operator(static_cast<int>(i)));
      for (const int node : items_.operators[i].nodes) {
        for (const ValueId output : graph_.nodes[static_cast<std::size_t>(node)].outputs) {
          if (!output || !read.contains(output.index)) continue;
          sources_[output.index] = {id, std::to_string(types_[i].size())};
          types_[i].push_back(to_string(graph_.type(output)));
        }
      }
    }
    for (std::size_t p = 0; p < items_.parameters.size(); ++p)
      sources_[state_of(p).initial.index] = {id_of(tree_.of_parameter(static_cast<int>(p))), "0"};
  }

  void add_nodes() {
    for (const NamedValue& input : graph_.inputs) {
      const std::string id = unused_id("input " + input.name);
      sources_[input.value.index] = {id, "0"};
      nodes_.push_back(node_json(id, input.name, "", {{"kind", "input of the model"}},
                                 PageJson::array(), {to_string(graph_.type(input.value))}));
    }
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      const TreeItem& item = tree_.items()[i];
      if (item.kind == TreeItem::Kind::module) continue;
      const std::string& module = tree_.items()[static_cast<std::size_t>(item.parent)].path;
      const bool computes =
          item.kind == TreeItem::Kind::operation || item.kind == TreeItem::Kind::added;
      const auto index = static_cast<std::size_t>(item.index);
      nodes_.push_back(
          computes
              ? node_json(item_ids_[i], item.name, module, operator_attributes(index, totals_[i]),
                          edges_from(inputs_of(index), item_ids_[i]), types_[index])
              : node_json(item_ids_[i], item.name, module, parameter_attributes(index, totals_[i]),
                          PageJson::array(), {to_string(graph_.type(state_of(index).initial))}));
      const int device =
          computes ? resolved_.operators[index].run.value : resolved_.parameters[index].param.value;
      if (device > 0)
        nodes_.back()["style"] = {
            {"borderColor", frames[static_cast<std::size_t>(device - 1) % std::size(frames)]}};
    }
    for (const NamedValue& output : graph_.outputs) {
      nodes_.push_back(node_json(unused_id("output " + output.name), output.name, "",
                                 {{"kind", "output of the model"}}, edges_from({output.value}),
                                 {}));
    }
  }

  Attributes operator_attributes(std::size_t index, Totals& sum) const {
    const PolicyItems::Operator& item = items_.operators[index];
    const OperatorAttributes& op = resolved_.operators[index];
    const OperatorCost& cost = costs_.operators[index];
    std::size_t weights = 0, states = 0;  // bytes of the parameters that it reads
    for (const int p : item.parameters) {
      weights += items_.parameters[static_cast<std::size_t>(p)].bytes;
      states += costs_.parameters[static_cast<std::size_t>(p)].states;
    }
    sum.operators = op.added ? 0 : 1;
    sum.kept = cost.kept;
    sum.seconds = cost.forward + cost.backward;
    sum.devices = {resolved_.device_name(op.run.value)};
    return {{"kind", op.added ? "added by training" : "operator"},
            {"type", item.ops.back()},
            {"name in the file", item.raw_name},
            {"device", resolved_.device_name(op.run.value)},
            {"device decided by", op.run.reason.text},
            {"activations", std::string(name_of(op.acts.value))},
            {"activations decided by", op.acts.reason.text},
            {"bytes of parameters", size_text(weights)},
            {"bytes of optimizer state", size_text(states)},
            {"bytes kept for backward", size_text(cost.kept)},
            {"time forward", ms_text(cost.forward)},
            {"time backward", ms_text(cost.backward)},
            {"kernel", cost.kernel}};
  }

  Attributes parameter_attributes(std::size_t index, Totals& sum) const {
    const ParameterAttributes& parameter = resolved_.parameters[index];
    const ParameterCost& cost = costs_.parameters[index];
    const State& state = state_of(index);
    const bool is_buffer = state.kind == StateKind::buffer;
    sum.parameters = is_buffer ? 0 : 1;
    sum.weights = parameter.bytes;
    sum.states = cost.states;
    sum.seconds = cost.update;
    sum.devices = {resolved_.device_name(parameter.param.value),
                   resolved_.device_name(parameter.state.value)};
    return {{"kind", is_buffer         ? "buffer"
                     : state.trainable ? "parameter"
                                       : "parameter that does not train"},
            {"name in the file", state.name},
            {"device", resolved_.device_name(parameter.param.value)},
            {"device decided by", parameter.param.reason.text},
            {"device of optimizer state", resolved_.device_name(parameter.state.value)},
            {"optimizer state decided by", parameter.state.reason.text},
            {"bytes of parameters", size_text(parameter.bytes)},
            {"bytes of optimizer state", size_text(cost.states)},
            {"time of update", ms_text(cost.update)}};
  }

  std::vector<ValueId> inputs_of(std::size_t index) const {
    std::vector<ValueId> inputs;
    for (const int n : items_.operators[index].nodes) {
      const std::vector<ValueId>& all = graph_.nodes[static_cast<std::size_t>(n)].inputs;
      inputs.insert(inputs.end(), all.begin(), all.end());
    }
    return inputs;
  }

  /// What is read, each value once; what the operator itself makes is no input of it.
  PageJson edges_from(const std::vector<ValueId>& inputs, const std::string& own = "") const {
    PageJson edges = PageJson::array();
    std::set<std::int32_t> seen;
    for (const ValueId input : inputs) {
      const auto source = sources_.find(input.index);
      if (source == sources_.end() || source->second.first == own ||
          !seen.insert(input.index).second)
        continue;
      edges.push_back({{"sourceNodeId", source->second.first},
                       {"sourceNodeOutputId", source->second.second},
                       {"targetNodeInputId", std::to_string(edges.size())}});
    }
    return edges;
  }

  void sum_modules() {
    for (std::size_t i = totals_.size(); i-- > 0;) {
      if (tree_.items()[i].parent >= 0)
        totals_[static_cast<std::size_t>(tree_.items()[i].parent)].add(totals_[i]);
    }
  }

  const State& state_of(std::size_t parameter) const {
    return graph_.states[static_cast<std::size_t>(items_.parameters[parameter].state)];
  }
  const std::string& id_of(int item) const { return item_ids_[static_cast<std::size_t>(item)]; }

  const Graph& graph_;
  const ResolvedPolicy& resolved_;
  const PolicyItems items_;
  const ModelTree tree_;
  const ItemCosts costs_;
  std::vector<Totals> totals_;  // one for each item of the tree
  std::set<std::string> ids_;
  std::vector<std::string> item_ids_;                 // one for each item of the tree
  std::vector<std::vector<std::string>> types_;       // for each operator, those of its outputs
  std::unordered_map<std::int32_t, Source> sources_;  // what makes a value
  std::vector<PageJson> nodes_;
};

/// A line for each node, so that versions can be compared.
std::string explorer_text(PolicyCase& of, const PlannedStep& step) {
  const std::string name = std::filesystem::path(of.config().model.file).stem().string();
  const std::string policy = std::filesystem::path(of.config().policy).filename().string();
  const ExplorerGraph graph(of, step, name);
  std::string text = R"({"label":)" + page_text(policy.empty() ? name : name + ", " + policy) +
                     "," + mark + R"(,"graphs":[{"id":)" + page_text(name) +
                     R"(,"groupNodeAttributes":)" + page_text(graph.modules()) + R"(,"nodes":[)";
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + page_text(graph.nodes()[i]);
  return text + "\n]}]}\n";
}

}  // namespace

Plan policy_plan(const PolicyOptions& options, const std::string& model_explorer) {
  if (model_explorer.empty()) return policy_plan(options);
  check_output(model_explorer, option, mark);
  PolicyCase of(options);
  const PlannedStep step = of.plan();
  Plan plan = policy_plan(of, step);
  write_output(model_explorer, explorer_text(of, step), option, mark);
  return plan;
}

}  // namespace tandem::api
