#include "importer/file/check_file.h"

#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "importer/file/tensor_data.h"
#include "importer/training_info/check.h"
#include "onnx/defs/schema.h"

namespace tandem::importer {
namespace {

// UTF-8 in its shortest form, without control characters and halves of surrogate pairs: what JSON,
// safetensors and terminals take as it is. Between 0x7f and 0x9f are control characters.
bool is_readable(const std::string& text) {
  constexpr std::array<std::uint32_t, 4> smallest{0x20, 0xa0, 0x800, 0x10000};  // by length
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80       ? 0
                     : lead >> 5 == 6  ? 1
                     : lead >> 4 == 14 ? 2
                     : lead >> 3 == 30 ? 3
                                       : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= text.size()) return false;
    std::uint32_t code = more == 0 ? lead : lead & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fu);
    }
    if (code < smallest[static_cast<std::size_t>(more)] || code == 0x7f || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000)) {
      return false;
    }
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

// The names that a graph may read: its own and those of the graphs around it.
struct Names {
  const Names* outer = nullptr;
  std::unordered_set<std::string_view> own;

  bool has(std::string_view name) const {
    return own.count(name) > 0 || (outer != nullptr && outer->has(name));
  }
};

class Check {
 public:
  explicit Check(OnnxFile::Content& content) : content_(content) {}

  void run() {
    const onnx::ModelProto& model = *content_.model;
    if (!model.has_ir_version() || model.ir_version() < 1 ||
        model.ir_version() > onnx::Version::IR_VERSION) {
      fail("", "version of the file format (ir_version)",
           fmt::format("1 to {}", static_cast<int>(onnx::Version::IR_VERSION)),
           std::to_string(model.ir_version()));
    }
    if (!model.has_graph()) fail("", "the file holds no graph");
    content_.opsets = opsets(model.opset_import(), "");
    if (content_.opsets.empty() && model.ir_version() < 3) content_.opsets[""] = 1;
    for (const onnx::FunctionProto& function : model.functions()) {
      const FunctionKey key{domain_of(function.domain()), function.name(), function.overload()};
      if (!content_.functions.emplace(key, &function).second) {
        fail(function.name(), "two functions have this name");
      }
    }
    for (const onnx::FunctionProto& function : model.functions()) check_function(function);
    Names names;
    check_graph(model.graph(), names, 1);
    check_training_info(names);
    check_expansion();
  }

 private:
  [[noreturn]] void fail(const std::string& where, std::string message, std::string expected = "",
                         std::string got = "", std::string fix = "") {
    refuse(content_.path, where, std::move(message), std::move(expected), std::move(got),
           std::move(fix));
  }

  template <class Imports>
  Opsets opsets(const Imports& imports, const std::string& where) {
    Opsets result;
    for (const onnx::OperatorSetIdProto& import : imports) {
      const std::string domain = domain_of(import.domain());
      check_name(domain, "a domain");
      const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
      const auto range = known.find(domain);
      const std::int64_t newest = range == known.end() ? 1'000'000 : range->second.second;
      const std::int64_t oldest = range == known.end() ? 0 : 1;
      if (import.version() < oldest || import.version() > newest) {
        fail(where,
             fmt::format("version of operator set '{}'", domain.empty() ? "ai.onnx" : domain),
             fmt::format("{} to {}", oldest, newest), std::to_string(import.version()),
             "convert the model to an older operator set");
      }
      // As in onnx, the last of two entries counts.
      result[domain] = static_cast<int>(import.version());
    }
    return result;
  }

  void check_name(const std::string& name, const std::string& what) {
    if (name.size() > 4096 || !is_readable(name)) {
      fail("", "the name of " + what + " is not readable text", "UTF-8 of at most 4096 bytes");
    }
  }

  void define(Names& names, const std::string& name, const std::string& where, const char* what) {
    check_name(name, what);
    if (name.empty()) fail(where, fmt::format("{} has no name", what));
    if (names.has(name)) fail(where, fmt::format("two values are called '{}'", name));
    names.own.insert(name);
  }

  void check_dims(const onnx::ValueInfoProto& info) {
    for (const auto& dim : info.type().tensor_type().shape().dim())
      check_name(dim.dim_param(), "a dimension");
  }

  static std::string label(const onnx::NodeProto& node) {
    if (!node.name().empty()) return node.name();
    for (const std::string& output : node.output()) {
      if (!output.empty()) return node.op_type() + " → " + output;
    }
    return node.op_type();
  }

  void check_node(const onnx::NodeProto& node, Names& names, int depth, bool in_function) {
    check_name(node.name(), "a node");
    check_name(node.op_type(), "an operator");
    check_name(node.domain(), "a domain");
    const std::string where = label(node);
    if (node.op_type().empty()) fail(where, "a node has no operator");
    for (const std::string& input : node.input()) {
      if (!input.empty() && !names.has(input)) {
        fail(where, fmt::format("input '{}' is made by no node before this one", input),
             "nodes in an order where each value is made before it is read");
      }
    }
    std::unordered_set<std::string_view> attributes;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      check_name(attribute.name(), "an attribute");
      if (attribute.name().empty() || !attributes.insert(attribute.name()).second) {
        fail(where, fmt::format("attribute '{}' is there twice", attribute.name()));
      }
      if (!attribute.ref_attr_name().empty() && !in_function) {
        fail(where, fmt::format("attribute '{}' refers to a function's attribute outside of a "
                                "function",
                                attribute.name()));
      }
      if (attribute.has_g()) check_subgraph(attribute.g(), names, depth, in_function, where);
      for (const onnx::GraphProto& graph : attribute.graphs()) {
        check_subgraph(graph, names, depth, in_function, where);
      }
    }
    for (const std::string& output : node.output()) {
      if (!output.empty()) define(names, output, where, "an output");
    }
  }

  void check_subgraph(const onnx::GraphProto& graph, const Names& outer, int depth,
                      bool in_function, const std::string& where) {
    if (depth >= content_.limits.nesting) {
      fail(where, "graphs are nested too deeply", std::to_string(content_.limits.nesting));
    }
    Names names;
    names.outer = &outer;
    check_graph(graph, names, depth + 1, in_function);
  }

  void check_graph(const onnx::GraphProto& graph, Names& names, int depth,
                   bool in_function = false) {
    std::unordered_map<std::string_view, const onnx::ValueInfoProto*> inputs;
    for (const onnx::ValueInfoProto& input : graph.input()) {
      define(names, input.name(), input.name(), "an input");
      check_dims(input);
      inputs.emplace(input.name(), &input);
    }
    std::unordered_set<std::string_view> initializers;
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      if (!initializers.insert(tensor.name()).second) {
        fail(tensor.name(), "two initializers have this name");
      }
      if (const auto input = inputs.find(tensor.name()); input != inputs.end()) {
        check_same_type(tensor, *input->second);
      } else {
        define(names, tensor.name(), tensor.name(), "an initializer");
      }
    }
    for (const onnx::NodeProto& node : graph.node()) check_node(node, names, depth, in_function);
    for (const onnx::ValueInfoProto& output : graph.output()) {
      check_name(output.name(), "an output");
      check_dims(output);
      if (!names.has(output.name())) {
        fail(output.name(), "no node makes this output of the graph");
      }
    }
  }

  void check_same_type(const onnx::TensorProto& tensor, const onnx::ValueInfoProto& input) {
    if (!input.has_type() || !input.type().has_tensor_type()) return;
    const onnx::TypeProto_Tensor& type = input.type().tensor_type();
    bool same = type.elem_type() == tensor.data_type();
    if (type.has_shape()) {
      same &= type.shape().dim_size() == tensor.dims_size();
      for (int i = 0; same && i < tensor.dims_size(); ++i) {
        const auto& dim = type.shape().dim(i);
        same &= !dim.has_dim_value() || dim.dim_value() == tensor.dims(i);
      }
    }
    if (!same) fail(tensor.name(), "the initializer's type is not that of the input of its name");
  }

  // The algorithm sees the names of the main graph too; the initialization sees only its own.
  void check_training_info(const Names& main) {
    const onnx::ModelProto& model = *content_.model;
    if (model.training_info_size() == 0) return;
    if (model.training_info_size() > 1) {
      fail("training_info", "the model has several algorithms of training", "one",
           std::to_string(model.training_info_size()),
           "keep the one that this training is to run, in a file of its own");
    }
    const onnx::TrainingInfoProto& info = model.training_info(0);
    Names algorithm, initialization;
    algorithm.outer = &main;
    check_graph(info.algorithm(), algorithm, 1);
    check_graph(info.initialization(), initialization, 1);
    check_bindings(content_);
  }

  void check_function(const onnx::FunctionProto& function) {
    check_name(function.name(), "a function");
    opsets(function.opset_import(), function.name());
    Names names;
    for (const std::string& input : function.input()) {
      define(names, input, function.name(), "an input");
    }
    for (const onnx::NodeProto& node : function.node()) check_node(node, names, 1, true);
    for (const std::string& output : function.output()) {
      if (!names.has(output)) {
        fail(function.name(), fmt::format("no node makes output '{}' of the function", output));
      }
    }
  }

  struct Expansion {
    std::int64_t nodes = -1;  // -1: being counted
    int depth = 0;
  };

  template <class Nodes>
  Expansion expansion_of(const Nodes& nodes, int depth) {
    Expansion total{0, 0};
    const auto add = [&](const Expansion& inner) {
      total.nodes = std::min(total.nodes + inner.nodes, content_.limits.nodes + 1);
      total.depth = std::max(total.depth, inner.depth);
    };
    for (const onnx::NodeProto& node : nodes) {
      add({1, 0});
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) add(expansion_of(attribute.g().node(), depth));
        for (const onnx::GraphProto& graph : attribute.graphs())
          add(expansion_of(graph.node(), depth));
      }
      const FunctionKey key{domain_of(node.domain()), node.op_type(), node.overload()};
      const auto function = content_.functions.find(key);
      if (function == content_.functions.end()) continue;
      Expansion inner = expansion_of_function(*function->second, depth + 1);
      inner.depth += 1;
      add(inner);
    }
    return total;
  }

  Expansion expansion_of_function(const onnx::FunctionProto& function, int depth) {
    const auto [at, is_new] = expansions_.try_emplace(&function);
    if (!is_new) {
      if (at->second.nodes < 0) fail(function.name(), "the function calls itself");
      return at->second;
    }
    // Not deeper than the limit on this walk either, so that the stack stays bounded.
    if (depth > content_.limits.nesting) {
      fail(function.name(), "functions call each other too deeply",
           std::to_string(content_.limits.nesting));
    }
    const Expansion result = expansion_of(function.node(), depth);
    expansions_[&function] = result;
    return result;
  }

  void check_expansion() {
    Expansion total = expansion_of(content_.model->graph().node(), 0);
    for (const onnx::TrainingInfoProto& info : content_.model->training_info()) {
      for (const onnx::GraphProto* graph : {&info.algorithm(), &info.initialization()}) {
        const Expansion part = expansion_of(graph->node(), 0);
        total = {std::min(total.nodes + part.nodes, content_.limits.nodes + 1),
                 std::max(total.depth, part.depth)};
      }
    }
    if (total.nodes > content_.limits.nodes) {
      fail("", "the graph is too large with its functions expanded",
           fmt::format("at most {} nodes", content_.limits.nodes));
    }
    if (total.depth > content_.limits.nesting) {
      fail("", "functions call each other too deeply", std::to_string(content_.limits.nesting));
    }
  }

  OnnxFile::Content& content_;
  std::unordered_map<const onnx::FunctionProto*, Expansion> expansions_;
};

}  // namespace

void check_file(OnnxFile::Content& content) { Check(content).run(); }

}  // namespace tandem::importer
