#include "importer/file/random_edits.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "engine/graph/text.h"
#include "importer/file/erase_items.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/model_notices.h"

namespace tandem::importer {
namespace {

constexpr std::array<std::string_view, 6> drawing{"RandomUniform",    "RandomNormal",
                                                  "Bernoulli",        "RandomUniformLike",
                                                  "RandomNormalLike", "Multinomial"};

template <class Nodes>
bool draw(const Nodes& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& node) {
    if (std::find(drawing.begin(), drawing.end(), node.op_type()) != drawing.end()) return true;
    return std::any_of(node.attribute().begin(), node.attribute().end(),
                       [](const onnx::AttributeProto& a) { return draw(a.g().node()); });
  });
}

onnx::NodeProto* maker_of(onnx::GraphProto& graph, const std::string& value) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (const std::string& output : node.output()) {
      if (!value.empty() && output == value) return &node;
    }
  }
  return nullptr;
}

bool has_value(onnx::GraphProto& graph, const std::string& value) {
  const auto is_it = [&](const auto& item) { return item.name() == value; };
  return maker_of(graph, value) != nullptr ||
         std::any_of(graph.input().begin(), graph.input().end(), is_it) ||
         std::any_of(graph.initializer().begin(), graph.initializer().end(), is_it);
}

bool bypass(onnx::GraphProto& graph, const RandomUse& use) {
  for (const RandomUse::Bypass& one : use.bypasses) {
    const onnx::NodeProto* node = maker_of(graph, one.name);
    if (node == nullptr || node->output_size() != 1 || !has_value(graph, one.instead_name))
      return false;
  }
  for (const RandomUse::Bypass& one : use.bypasses) {
    onnx::NodeProto& node = *maker_of(graph, one.name);
    node.set_op_type("Identity");
    node.set_domain("");
    node.clear_attribute();
    node.clear_input();
    node.add_input(one.instead_name);
  }
  return true;
}

/// A tensor of the mean, with the shape of what was drawn.
bool become_mean(onnx::GraphProto& graph, const RandomUse& use) {
  onnx::NodeProto* node = maker_of(graph, use.drawn_name);
  const bool is_like = use.op == "RandomUniformLike" || use.op == "RandomNormalLike";
  if (node == nullptr || !is_like || !node->op_type().starts_with("Random")) return false;
  onnx::NodeProto shape;
  const std::string name = use.drawn_name + "_shape";
  shape.set_name(name);
  shape.add_output(name);
  if (node->input_size() > 0) {
    shape.set_op_type("Shape");
    shape.add_input(node->input(0));
  } else {
    const onnx::AttributeProto* extents = nullptr;
    for (const onnx::AttributeProto& attribute : node->attribute()) {
      if (attribute.name() == "shape") extents = &attribute;
    }
    if (extents == nullptr) return false;
    shape.set_op_type("Constant");
    onnx::AttributeProto& value = *shape.add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
    value.mutable_t()->add_dims(extents->ints_size());
    for (const std::int64_t extent : extents->ints()) value.mutable_t()->add_int64_data(extent);
  }
  node->set_op_type("ConstantOfShape");
  node->clear_input();
  node->add_input(name);
  node->clear_attribute();
  onnx::AttributeProto& value = *node->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(dtype_to_onnx(use.dtype));
  value.mutable_t()->add_dims(1);
  write_tensor(*value.mutable_t(), HostTensor::from<double>({1}, {use.mean}));
  // Nodes are in order: the shape comes before what it is for.
  auto& nodes = *graph.mutable_node();
  const auto at = static_cast<int>(
      std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return &n == node; }) -
      nodes.begin());
  *nodes.Add() = std::move(shape);
  for (int i = nodes.size() - 1; i > at; --i) nodes.SwapElements(i, i - 1);
  return true;
}

std::unordered_set<std::string> reads(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) {
    for (std::string& name : reads_of(node)) names.insert(std::move(name));
  }
  for (const auto& output : graph.output()) names.insert(output.name());
  return names;
}

std::vector<bool> needed_of(const onnx::GraphProto& graph) {
  std::vector<std::string> outputs;
  for (const auto& output : graph.output()) outputs.push_back(output.name());
  return needed_nodes(graph, outputs);
}

bool draws_random_numbers(const onnx::ModelProto& model) {
  return draw(model.graph().node()) ||
         std::any_of(model.functions().begin(), model.functions().end(),
                     [](const onnx::FunctionProto& f) { return draw(f.node()); });
}

/// Returns the paths of those inside of functions and bodies, which stay as they are.
std::vector<std::string> leave_randomness_out(onnx::ModelProto& model,
                                              const std::vector<RandomUse>& uses) {
  onnx::GraphProto& graph = *model.mutable_graph();
  const std::unordered_set<std::string> before = reads(graph);
  std::unordered_set<std::string> needed_before;  // outputs of nodes
  std::vector<bool> needed = needed_of(graph);
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    if (needed[static_cast<std::size_t>(n)])
      needed_before.insert(node.output().begin(), node.output().end());
  }
  std::vector<std::string> left;
  for (const RandomUse& use : uses) {
    if (use.is_on) continue;
    const bool is_off = use.bypasses.empty() ? become_mean(graph, use) : bypass(graph, use);
    if (!is_off) left.push_back(use.path);
  }
  needed = needed_of(graph);
  std::size_t n = 0;
  erase_items(*graph.mutable_node(), [&](const onnx::NodeProto& node) {
    if (needed[n++]) return false;
    return std::any_of(node.output().begin(), node.output().end(), [&](const std::string& output) {
      return !output.empty() && needed_before.count(output) > 0;
    });
  });
  const std::unordered_set<std::string> after = reads(graph);
  const auto is_dropped = [&](const auto& item) {
    return before.count(item.name()) > 0 && after.count(item.name()) == 0;
  };
  std::unordered_set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  erase_items(*graph.mutable_input(), [&](const auto& input) {
    return initializers.count(input.name()) > 0 && is_dropped(input);
  });
  erase_items(*graph.mutable_initializer(), is_dropped);
  std::unordered_set<std::string> made;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  erase_items(*graph.mutable_value_info(),
              [&](const auto& info) { return made.count(info.name()) == 0; });
  return left;
}

}  // namespace

std::string drop_randomness(onnx::ModelProto& model, const OnnxFile& file,
                            const OperatorSet& operators, ImportOptions import) {
  if (!draws_random_numbers(model)) return "";
  import.batch = 0;
  import.training = true;
  import.collect_problems = true;
  const ImportResult imported = import_graph(file, operators, import);
  const std::vector<std::string> left = leave_randomness_out(model, imported.randomness);
  std::string text;
  const auto warn = [&](const std::string& warning) {
    text += (text.empty() ? "warning: " : "\nwarning: ") + warning;
  };
  for (const ModelNotice& notice : model_notices(imported)) {
    if (notice.kind == "random_on") warn(in_one_line(notice));
  }
  if (!left.empty())
    warn("inside of a function or a body these draw random numbers in the exported file: " +
         joined(left));
  if (!imported.summary.problems.empty() && draws_random_numbers(model)) {
    warn("the exported file draws random numbers: " + imported.summary.problems[0].path + ": " +
         imported.summary.problems[0].reason);
  }
  return text;
}

}  // namespace tandem::importer
