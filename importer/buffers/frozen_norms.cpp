#include "importer/buffers/frozen_norms.h"

#include <initializer_list>
#include <string_view>
#include <unordered_set>

#include "importer/file/moves.h"
#include "importer/paths.h"

namespace tandem::importer {
namespace {

constexpr std::string_view mean_name = "running_mean", variance_name = "running_var";

/// "layer1.bn1." of "layer1.bn1.running_var"; nothing where the last part is another one.
struct Member {
  std::string module;
  bool is_there = false;
};
Member member(const std::string& name, std::string_view part) {
  if (!name.ends_with(part)) return {};
  const std::string module = name.substr(0, name.size() - part.size());
  return {module, module.empty() || module.back() == '.'};
}

class FrozenNorms {
 public:
  FrozenNorms(const OnnxFile::Content& file, const std::vector<bool>& needed) : file_(file) {
    const onnx::GraphProto& graph = file.model->graph();
    for (int n = 0; n < graph.node_size(); ++n) {
      const onnx::NodeProto& node = graph.node(n);
      if (!domain_of(node.domain()).empty()) continue;
      if (node.output_size() > 0) makers_[node.output(0)] = &node;
      if (!needed[static_cast<std::size_t>(n)]) continue;
      nodes_.push_back(&node);
      const bool is_norm = node.op_type() == "BatchNormalization";
      for (const std::string& input : node.input()) (is_norm ? normalized_ : read_).insert(input);
    }
  }

  std::unordered_map<std::string, bool> find() {
    for (const std::string& name : read_) {
      for (const std::string_view part : {mean_name, variance_name}) {
        const Member statistic = member(name, part);
        if (!statistic.is_there || !is_initializer(name) || normalized_.count(name) > 0) continue;
        for (const char* affine : {"weight", "bias"}) add(statistic.module + affine, false);
      }
    }
    for (const onnx::NodeProto* node : nodes_) {
      const Member weight = scale_of(*node);
      if (!weight.is_there) continue;
      add(weight.module + "weight", true);
      scales_.emplace(node->output(0), weight.module);
    }
    for (const onnx::NodeProto* node : nodes_) {
      const Member mean = scaled_mean_of(*node);
      if (mean.is_there) add(mean.module + "bias", true);
    }
    return std::move(found_);
  }

 private:
  bool is_initializer(const std::string& name) const { return file_.initializers.count(name) > 0; }

  void add(const std::string& name, bool is_sure) {
    if (is_initializer(name)) found_[name] = found_[name] || is_sure;
  }

  /// The value that is moved; the name itself where none is.
  std::string unmoved(std::string name) const {
    constexpr int most_moves = 16;
    for (int move = 0; move < most_moves; ++move) {
      const auto made = makers_.find(name);
      if (made == makers_.end() || !is_move(*made->second)) break;
      name = made->second->input(0);
    }
    return name;
  }

  /// The node that makes the value (moves of it are skipped) where it is one of these operators.
  const onnx::NodeProto* made_by(const std::string& name,
                                 std::initializer_list<std::string_view> ops) const {
    const auto made = makers_.find(unmoved(name));
    if (made == makers_.end()) return nullptr;
    for (const std::string_view op : ops) {
      if (made->second->op_type() == op) return made->second;
    }
    return nullptr;
  }

  /// A number of the file, as epsilon.
  bool is_constant(const std::string& name) const {
    const auto made = makers_.find(unmoved(name));
    if (made != makers_.end()) return made->second->op_type() == "Constant";
    return is_initializer(unmoved(name));
  }

  /// The variance of sqrt(variance + epsilon), or "".
  std::string of_root(const std::string& name) const {
    const onnx::NodeProto* root = made_by(name, {"Sqrt"});
    const onnx::NodeProto* sum = root == nullptr ? nullptr : made_by(root->input(0), {"Add"});
    return sum == nullptr ? "" : variance_of(*sum);
  }

  std::string variance_of(const onnx::NodeProto& sum) const {
    for (int i = 0; i < 2; ++i) {
      const std::string name = unmoved(sum.input(i));
      const bool is_variance = is_initializer(name) && member(name, variance_name).is_there;
      if (is_variance && is_constant(sum.input(1 - i))) return name;
    }
    return "";
  }

  /// The variance of 1 / sqrt(variance + epsilon), as a quotient or a power; or "".
  std::string of_reciprocal_root(const std::string& name) const {
    const onnx::NodeProto* node = made_by(name, {"Div", "Reciprocal", "Pow"});
    if (node == nullptr) return "";
    if (node->op_type() == "Reciprocal") return of_root(node->input(0));
    if (node->op_type() == "Div") return is_constant(node->input(0)) ? of_root(node->input(1)) : "";
    const onnx::NodeProto* sum = made_by(node->input(0), {"Add"});
    return sum == nullptr ? "" : variance_of(*sum);
  }

  /// The module whose weight the node scales by its variance.
  Member scale_of(const onnx::NodeProto& node) const {
    if (node.input_size() != 2) return {};
    for (int i = 0; i < 2; ++i) {
      const std::string name = unmoved(node.input(i));
      const Member weight = member(name, "weight");
      if (!weight.is_there || !is_initializer(name)) continue;
      const std::string& other = node.input(1 - i);
      std::string variance;
      if (node.op_type() == "Mul") variance = of_reciprocal_root(other);
      if (node.op_type() == "Div" && i == 0) variance = of_root(other);
      if (variance == weight.module + std::string(variance_name)) return weight;
    }
    return {};
  }

  /// The module whose mean the node multiplies with its scale.
  Member scaled_mean_of(const onnx::NodeProto& node) const {
    if (node.op_type() != "Mul" || node.input_size() != 2) return {};
    for (int i = 0; i < 2; ++i) {
      const Member mean = member(unmoved(node.input(i)), mean_name);
      const auto scale = scales_.find(unmoved(node.input(1 - i)));
      if (mean.is_there && scale != scales_.end() && scale->second == mean.module) return mean;
    }
    return {};
  }

  const OnnxFile::Content& file_;
  std::unordered_map<std::string, const onnx::NodeProto*> makers_;
  std::vector<const onnx::NodeProto*> nodes_;  // the needed ones
  // Names that BatchNormalization reads; names that others read.
  std::unordered_set<std::string> normalized_, read_;
  std::unordered_map<std::string, std::string> scales_;  // value: the module
  std::unordered_map<std::string, bool> found_;
};

}  // namespace

std::unordered_map<std::string, bool> frozen_affines(const OnnxFile::Content& file,
                                                     const std::vector<bool>& needed) {
  return FrozenNorms(file, needed).find();
}

}  // namespace tandem::importer
