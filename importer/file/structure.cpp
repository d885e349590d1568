#include "importer/file/structure.h"

#include <algorithm>
#include <deque>
#include <set>

#include "engine/graph/text.h"
#include "importer/file/initializers.h"
#include "importer/file/structure_text.h"
#include "importer/tied_names.h"
#include "importer/training_info/algorithm_import.h"
#include "importer/training_info/contents.h"
#include "onnx/defs/schema.h"

namespace tandem {
namespace importer {
namespace {

/// Names that nodes may read, with the text that describes each.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, std::string> own;
};

class Listing {
 public:
  explicit Listing(const OnnxFile::Content& file) : file_(file), graph_(file.model->graph()) {
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : graph_.output()) outputs.push_back(output.name());
    roles_ = initializer_roles(file_, needed_nodes(graph_, outputs));
    shared_ = shared_initializers(file_, roles_);
    for (const onnx::ValueInfoProto& input : graph_.input()) inputs_[input.name()] = &input;
    for (const onnx::TensorProto& tensor : graph_.initializer())
      initializers_[tensor.name()] = &tensor;
  }

  /// `training`: null, or the content whose training algorithm follows the graph.
  ModelStructure all(const std::vector<std::string>& wanted, const OnnxFile::Content* training) {
    Scope names;
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : graph_.output()) outputs.push_back(output.name());
    std::vector<std::string> ends = outputs;
    if (training != nullptr) {  // Gradient names values that are no inputs of it
      for (std::string& name : AlgorithmImport(*training).reads()) ends.push_back(std::move(name));
    }
    list(graph_.node(), ends, names, file_.opsets, "");
    for (const std::string& output : outputs) {
      const std::string made_by = reference(output, names);
      parts_.push_back({"output " + output, output, {"made by " + made_by}});
    }
    list_unlisted();
    if (training != nullptr) list_training(*training, names);
    list_functions();
    std::map<std::string, std::string> values;
    for (const std::string& name : wanted) {
      const auto made_by = names.own.find(name);
      const bool is_output = std::find(outputs.begin(), outputs.end(), name) != outputs.end();
      if (made_by != names.own.end() && !is_output) values[name] = made_by->second;
    }
    return structure_of(std::move(parts_), std::move(values));
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  /// The text for a name; inputs and initializers of the main graph are listed after the first
  /// operator that reads them.
  std::string reference(const std::string& name, const Scope& names) {
    if (name.empty()) return "none";
    for (const Scope* scope = &names; scope != nullptr; scope = scope->outer) {
      const auto found = scope->own.find(name);
      if (found != scope->own.end()) return found->second;
    }
    if (seen_.insert(name).second) unlisted_.push_back(name);
    return name_text(name);
  }

  template <class List>
  std::string references(const List& list, const Scope& names) {
    std::vector<std::string> all;
    for (const std::string& name : list) all.push_back(reference(name, names));
    while (!all.empty() && all.back() == "none") all.pop_back();
    return all.empty() ? "none" : shortened(joined(all));
  }

  void list_unlisted() {
    for (const std::string& name : std::exchange(unlisted_, {})) {
      const auto tensor = initializers_.find(name);
      if (tensor != initializers_.end()) {
        list_initializer(*tensor->second);
      } else if (const auto input = inputs_.find(name); input != inputs_.end()) {
        parts_.push_back({"input " + name, name, {"type " + type_text(input->second->type())}});
      }
    }
  }

  void list_initializer(const onnx::TensorProto& tensor) {
    const std::string& name = tensor.name();
    RecordedPart part{"initializer " + name, name, {}};
    const auto values = file_.initializers.find(name);
    if (values == file_.initializers.end()) {
      part.facts = {"values " + unsupported_text(tensor)};
    } else {
      const Role& role = roles_.at(name);
      const char* use = !role.is_state                      ? "constant"
                        : role.kind == StateKind::parameter ? "parameter"
                                                            : "buffer";
      part.facts = {"type " + to_string(values->second.type()), use};
      if (const auto first = shared_.find(name); first != shared_.end())
        part.facts.push_back("the same tensor as " + name_text(first->second));
      if (!role.is_state) part.facts.push_back("values " + values_text(values->second));
    }
    parts_.push_back(std::move(part));
  }

  /// The nodes from which `outputs` are made, inputs before readers, in an order that does not
  /// depend on the file's.
  static std::vector<int> order_of(const Nodes& nodes, const std::vector<std::string>& outputs) {
    std::unordered_map<std::string, int> makers;
    for (int n = 0; n < nodes.size(); ++n) {
      for (const std::string& output : nodes[n].output()) {
        if (!output.empty()) makers[output] = n;
      }
    }
    struct Visit {
      int node;
      std::vector<std::string> reads;
      std::size_t next = 0;
    };
    std::vector<int> order;
    std::vector<bool> seen(static_cast<std::size_t>(nodes.size()), false);
    std::vector<Visit> stack;
    const auto enter = [&](const std::string& name) {
      const auto maker = makers.find(name);
      if (maker == makers.end() || seen[static_cast<std::size_t>(maker->second)]) return;
      seen[static_cast<std::size_t>(maker->second)] = true;
      stack.push_back({maker->second, reads_of(nodes[maker->second])});
    };
    for (const std::string& output : outputs) {
      enter(output);
      while (!stack.empty()) {
        Visit& top = stack.back();
        if (top.next < top.reads.size()) {
          const std::string name = top.reads[top.next++];
          enter(name);
          continue;
        }
        order.push_back(top.node);
        stack.pop_back();
      }
    }
    return order;
  }

  /// `prefix`: of the operators' numbers.
  void list(const Nodes& nodes, const std::vector<std::string>& outputs, Scope& names,
            const Opsets& opsets, const std::string& prefix) {
    int number = 0;
    for (const int n : order_of(nodes, outputs)) {
      const onnx::NodeProto& node = nodes[n];
      const std::string id = prefix + std::to_string(++number);
      list_node(node, id, names, opsets);
      for (int k = 0; k < node.output_size(); ++k) {
        const std::string result = k == 0 ? "" : "result " + std::to_string(k + 1) + " of ";
        if (!node.output(k).empty()) names.own[node.output(k)] = result + "operator " + id;
      }
    }
  }

  static std::string name_for_people(const onnx::NodeProto& node) {
    if (!node.name().empty()) return node.name();
    for (const std::string& output : node.output()) {
      if (!output.empty()) return node.op_type() + " → " + output;
    }
    return node.op_type();
  }

  void list_node(const onnx::NodeProto& node, const std::string& id, const Scope& names,
                 const Opsets& opsets) {
    RecordedPart part{"operator " + id, name_for_people(node), {"operator " + node.op_type()}};
    const std::string domain = domain_of(node.domain());
    std::vector<std::string>& facts = part.facts;
    if (!domain.empty()) facts.push_back("domain " + domain);
    const onnx::OpSchema* schema = nullptr;
    const auto function =
        file_.functions.find(FunctionKey{domain, node.op_type(), node.overload()});
    if (function != file_.functions.end()) {
      facts.push_back("function " + function_name(*function->second));
      if (listed_functions_.insert(function->second).second)
        unlisted_functions_.push_back(function->second);
    } else {
      const auto opset = opsets.find(domain);
      int version = opset == opsets.end() ? 1 : opset->second;
      schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version, domain);
      if (schema != nullptr) version = schema->SinceVersion();
      facts.push_back("version " + std::to_string(version));
    }
    std::map<std::string, const onnx::AttributeProto*> attributes;
    for (const onnx::AttributeProto& attribute : node.attribute())
      attributes[attribute.name()] = &attribute;
    for (const auto& [name, attribute] : attributes) {
      const std::string text = attribute_text(*attribute, file_);
      if (!is_default(schema, name, text)) facts.push_back("attribute " + name + " " + text);
    }
    facts.push_back("inputs " + references(node.input(), names));
    int outputs = node.output_size();
    while (outputs > 0 && node.output(outputs - 1).empty()) --outputs;
    facts.push_back("number of outputs " + std::to_string(outputs));
    parts_.push_back(std::move(part));
    list_unlisted();
    for (const auto& [name, attribute] : attributes) {
      const std::string path = id + "." + name;
      if (attribute->has_g()) list_graph(attribute->g(), path, names, opsets);
      for (int i = 0; i < attribute->graphs_size(); ++i)
        list_graph(attribute->graphs(i), path + "#" + std::to_string(i), names, opsets);
    }
  }

  bool is_default(const onnx::OpSchema* schema, const std::string& name,
                  const std::string& text) const {
    if (schema == nullptr) return false;
    const auto known = schema->attributes().find(name);
    if (known == schema->attributes().end()) return false;
    const onnx::AttributeProto& value = known->second.default_value;
    return value.has_type() && value.type() != onnx::AttributeProto::UNDEFINED &&
           attribute_text(value, file_) == text;
  }

  /// A graph inside of an operator: its own inputs have numbers instead of names.
  void list_graph(const onnx::GraphProto& graph, const std::string& path, const Scope& outer,
                  const Opsets& opsets) {
    Scope names;
    names.outer = &outer;
    std::vector<std::string> types, outputs;
    for (int i = 0; i < graph.input_size(); ++i) {
      names.own[graph.input(i).name()] = "input " + std::to_string(i) + " of " + path;
      types.push_back(type_text(graph.input(i).type()));
    }
    for (const onnx::TensorProto& tensor : graph.initializer())
      names.own[tensor.name()] = "{" + tensor_text(tensor, file_) + "}";
    for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(output.name());
    list(graph.node(), outputs, names, opsets, path + ".");
    parts_.push_back(
        {"graph " + path,
         "",
         {"inputs " + list_text(types, std::identity()), "outputs " + references(outputs, names)}});
    list_unlisted();
  }

  /// Which initializers a step changes, and what they start from.
  void list_training(const OnnxFile::Content& file, const Scope& names) {
    const onnx::TrainingInfoProto& info = file.model->training_info(0);
    for (const onnx::StringStringEntryProto& entry : info.update_binding()) {
      parts_.push_back(
          {"update of " + entry.key(), entry.key(), {"takes " + reference(entry.value(), names)}});
    }
    list_unlisted();
    if (info.initialization_binding().empty()) return;
    Scope own;
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : info.initialization().output())
      outputs.push_back(output.name());
    for (const onnx::TensorProto& tensor : info.initialization().initializer())
      own.own[tensor.name()] = "{" + tensor_text(tensor, file) + "}";
    list(info.initialization().node(), outputs, own, file_.opsets, "start.");
    for (const onnx::StringStringEntryProto& entry : info.initialization_binding()) {
      parts_.push_back(
          {"start of " + entry.key(), entry.key(), {"takes " + reference(entry.value(), own)}});
    }
  }

  static std::string function_name(const onnx::FunctionProto& function) {
    std::string name = domain_of(function.domain()) + "::" + function.name();
    if (!function.overload().empty()) name += ":" + function.overload();
    return name;
  }

  /// Lists the functions that were called, in the order of the calls.
  void list_functions() {
    while (!unlisted_functions_.empty()) {
      const onnx::FunctionProto& function = *unlisted_functions_.front();
      unlisted_functions_.pop_front();
      const std::string path = function_name(function);
      Scope names;
      for (int i = 0; i < function.input_size(); ++i)
        names.own[function.input(i)] = "input " + std::to_string(i);
      Opsets opsets;
      for (const onnx::OperatorSetIdProto& import : function.opset_import())
        opsets[domain_of(import.domain())] = static_cast<int>(import.version());
      const std::vector<std::string> outputs(function.output().begin(), function.output().end());
      list(function.node(), outputs, names, opsets, path + ".");
      RecordedPart part{"function " + path,
                        "",
                        {"inputs " + std::to_string(function.input_size()),
                         "outputs " + references(outputs, names),
                         "attributes " + list_text(function.attribute(), string_text)}};
      for (const onnx::AttributeProto& attribute : function.attribute_proto())
        part.facts.push_back("attribute " + attribute.name() + " " +
                             attribute_text(attribute, file_));
      parts_.push_back(std::move(part));
    }
  }

  const OnnxFile::Content& file_;
  const onnx::GraphProto& graph_;
  std::unordered_map<std::string, Role> roles_;
  std::unordered_map<std::string, std::string> shared_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> inputs_;
  std::unordered_map<std::string, const onnx::TensorProto*> initializers_;
  std::set<std::string> seen_;         // names of the main graph that were read
  std::vector<std::string> unlisted_;  // those names that have no part yet
  std::set<const onnx::FunctionProto*> listed_functions_;
  std::deque<const onnx::FunctionProto*> unlisted_functions_;
  std::vector<RecordedPart> parts_;
};

}  // namespace
}  // namespace importer

ModelStructure structure_of(const OnnxFile& file, const std::vector<std::string>& values) {
  const OnnxFile::Content& content = file.content();
  if (content.model->training_info_size() == 0)
    return importer::Listing(content).all(values, nullptr);
  const OnnxFile::Content step = importer::step_content(content);
  return importer::Listing(step).all(values, &content);
}

}  // namespace tandem
