#include "importer/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "importer/file/erase_items.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "importer/parameter_path.h"
#include "importer/paths.h"

namespace tandem::importer {

void rename_reads(onnx::GraphProto& graph, const Renames& names) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (const auto to = names.find(input); to != names.end()) input = to->second;
    }
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_reads(*attribute.mutable_g(), names);
      for (onnx::GraphProto& inner : *attribute.mutable_graphs()) rename_reads(inner, names);
    }
  }
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    if (const auto to = names.find(output.name()); to != names.end()) output.set_name(to->second);
  }
}

namespace {

bool is_float_tensor(const onnx::TensorProto& tensor) {
  const auto dtype = dtype_from_onnx(tensor.data_type());
  return dtype && is_float(*dtype);
}

// Whether the graphs of a node are those of If, Loop, Scan or SequenceMap.
bool is_standard(const onnx::NodeProto& node) { return domain_of(node.domain()).empty(); }

using Names = std::unordered_set<std::string>;

// The initializers that leave their graph. What it returns stays: a graph's outputs are made in it.
// What is fed stays, too: the initializer is not read.
Names liftable(const onnx::GraphProto& branch) {
  Names names;
  for (const onnx::TensorProto& tensor : branch.initializer()) {
    if (is_float_tensor(tensor)) names.insert(tensor.name());
  }
  for (const onnx::ValueInfoProto& output : branch.output()) names.erase(output.name());
  for (const onnx::ValueInfoProto& input : branch.input()) names.erase(input.name());
  return names;
}

class Lifting {
 public:
  explicit Lifting(onnx::GraphProto& main) : main_(main) {}

  void run() {
    keep_names(main_, {});
    lift_below(main_);
  }

 private:
  void keep_names(const onnx::GraphProto& graph, const Names& but) {
    for (const auto& input : graph.input()) taken_.insert(input.name());
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      if (but.count(tensor.name()) == 0) taken_.insert(tensor.name());
    }
    for (const onnx::NodeProto& node : graph.node()) {
      taken_.insert(node.output().begin(), node.output().end());
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g())
          keep_names(attribute.g(), is_standard(node) ? liftable(attribute.g()) : Names{});
        for (const onnx::GraphProto& inner : attribute.graphs()) keep_names(inner, {});
      }
    }
  }

  std::string free_name(const std::string& name) {
    if (taken_.insert(name).second) return name;
    for (int& k = last_number_.try_emplace(name, 1).first->second;;) {
      std::string numbered = fmt::format("{}_{}", name, ++k);
      if (taken_.insert(numbered).second) return numbered;
    }
  }

  void lift_below(onnx::GraphProto& graph) {
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      if (!is_standard(node)) continue;
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) lift(*attribute.mutable_g());
      }
    }
  }

  void lift(onnx::GraphProto& branch) {
    const Names names = liftable(branch);
    Renames renames;
    for (onnx::TensorProto& tensor : *branch.mutable_initializer()) {
      if (names.count(tensor.name()) == 0) continue;
      const std::string name = tensor.name();
      onnx::TensorProto& lifted = *main_.add_initializer();
      lifted.Swap(&tensor);
      lifted.set_name(free_name(name));
      if (lifted.name() != name) renames[name] = lifted.name();
      tensor.set_name(name);
    }
    const auto is_lifted = [&](const auto& named) { return names.count(named.name()) > 0; };
    erase_items(*branch.mutable_initializer(), is_lifted);
    erase_items(*branch.mutable_value_info(), is_lifted);
    if (!renames.empty()) rename_reads(branch, renames);
    lift_below(branch);
  }

  onnx::GraphProto& main_;
  Names taken_;
  std::unordered_map<std::string, int> last_number_;
};

class FixedWeights {
 public:
  explicit FixedWeights(const OnnxFile::Content& file) : file_(file), modules_(*file.model) {}

  std::vector<ParameterSummary> run() {
    visit(file_.model->graph().node(), nullptr, {});
    for (const onnx::FunctionProto& function : file_.model->functions())
      visit(function.node(), nullptr, fmt::format(" of function '{}'", function.name()));
    return std::move(found_);
  }

 private:
  // Constant nodes that were not reported yet, of one graph.
  struct Constants {
    Constants* outer = nullptr;
    std::unordered_map<std::string, TensorType> own;

    std::optional<TensorType> take_weight(const onnx::NodeProto& node, int input) {
      const auto at = own.find(node.input(input));
      if (at == own.end()) return outer ? outer->take_weight(node, input) : std::nullopt;
      const std::size_t place = static_cast<std::size_t>(input);
      if (!is_weight(node.op_type(), place, at->second.shape.size())) return std::nullopt;
      return std::move(own.extract(at).mapped());
    }
  };

  template <class Nodes>
  void visit(const Nodes& nodes, Constants* outer, const std::string& where) {
    Constants constants{outer, {}};
    for (const onnx::NodeProto& node : nodes) {
      const bool standard = domain_of(node.domain()).empty();
      for (int i = 0; standard && i < node.input_size(); ++i) {
        if (auto type = constants.take_weight(node, i)) {
          add(node.input(i), std::move(*type),
              fmt::format("a Constant node{}, not an initializer", where));
        }
      }
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (standard && node.op_type() == "Constant" && attribute.name() == "value" &&
            is_float_tensor(attribute.t()) && node.output_size() == 1)
          constants.own[node.output(0)] = type_of(attribute.t());
        if (!attribute.has_g()) continue;
        for (const onnx::TensorProto& tensor : attribute.g().initializer()) {
          if (is_float_tensor(tensor))
            add(tensor.name(), type_of(tensor),
                fmt::format("an initializer in {} of '{}'{}, not of the main graph",
                            attribute.name(), label(node), where));
        }
        visit(attribute.g().node(), &constants, where);
      }
    }
  }

  static TensorType type_of(const onnx::TensorProto& tensor) {
    return {*dtype_from_onnx(tensor.data_type()), {tensor.dims().begin(), tensor.dims().end()}};
  }
  std::string label(const onnx::NodeProto& node) const {
    const std::string path = modules_.operator_path(node);
    return path.empty() ? node.op_type() : path;
  }
  void add(const std::string& name, TensorType type, std::string reason) {
    found_.push_back({name, parameter_path(name), std::move(type), StateKind::parameter, false,
                      false, std::move(reason)});
  }

  const OnnxFile::Content& file_;
  const ModulePaths modules_;
  std::vector<ParameterSummary> found_;
};

}  // namespace

void lift_branch_weights(onnx::ModelProto& model) {
  // Until version 4 each initializer of the main graph had to be one of its inputs.
  if (model.ir_version() >= 4) Lifting(*model.mutable_graph()).run();
}

std::vector<ParameterSummary> fixed_weights(const OnnxFile::Content& file) {
  return FixedWeights(file).run();
}

}  // namespace tandem::importer
