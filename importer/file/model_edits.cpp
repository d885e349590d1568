#include "importer/file/model_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "importer/file/erase_items.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

using NameSet = std::unordered_set<std::string>;

template <class Nodes>
void collect_reads(const Nodes& nodes, NameSet& names) {
  for (const onnx::NodeProto& node : nodes) {
    for (std::string& name : reads_of(node)) names.insert(std::move(name));
  }
}

void erase_attribute(onnx::NodeProto& node, const std::string& name) {
  erase_items(*node.mutable_attribute(),
              [&](const auto& attribute) { return attribute.name() == name; });
}

void set_integer(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  erase_attribute(node, name);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void keep_outputs(onnx::NodeProto& node, int count) {
  auto& outputs = *node.mutable_output();
  if (outputs.size() > count) outputs.DeleteSubrange(count, outputs.size() - count);
}

template <class Nodes>
class InferenceForm {
 public:
  InferenceForm(Nodes& nodes, const NameSet& outputs, int version)
      : nodes_(nodes), version_(version), read_(outputs) {
    collect_reads(nodes_, read_);
  }

  void run() {
    for (int i = 0; i < nodes_.size(); ++i) {
      onnx::NodeProto& node = *nodes_.Mutable(i);
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) inner(*attribute.mutable_g());
        for (onnx::GraphProto& graph : *attribute.mutable_graphs()) inner(graph);
      }
      if (!domain_of(node.domain()).empty()) continue;
      if (node.op_type() == "BatchNormalization") batch_normalization(i);
      if (node.op_type() == "Dropout") dropout(node);
    }
    // Settings that only the removed inputs read.
    NameSet still(outer_);
    collect_reads(nodes_, still);
    erase_items(nodes_, [&](const onnx::NodeProto& node) {
      return node.op_type() == "Constant" && node.output_size() == 1 &&
             dropped_.count(node.output(0)) > 0 && still.count(node.output(0)) == 0;
    });
  }

  void set_outputs(const NameSet& names) { outer_ = names; }

 private:
  void inner(onnx::GraphProto& graph) {
    NameSet outputs;
    for (const auto& output : graph.output()) outputs.insert(output.name());
    InferenceForm<std::remove_reference_t<decltype(*graph.mutable_node())>> form(
        *graph.mutable_node(), outputs, version_);
    form.set_outputs(outputs);
    form.run();
  }

  void batch_normalization(int index) {
    onnx::NodeProto node = nodes_.Get(index);
    std::vector<std::pair<std::string, std::string>> copies;  // statistics that are read
    for (int i = 1; i < std::min(3, node.output_size()); ++i) {
      if (!node.output(i).empty() && read_.count(node.output(i)) > 0) {
        copies.emplace_back(node.input(i + 2), node.output(i));
      }
    }
    keep_outputs(node, 1);
    // Written out, as names that torch.export gave may still say training.
    erase_attribute(node, "training_mode");
    if (version_ >= 14) set_integer(node, "training_mode", 0);
    if (version_ < 7) set_integer(node, "is_test", 1);
    *nodes_.Mutable(index) = std::move(node);
    for (const auto& [from, to] : copies) {
      onnx::NodeProto& copy = *nodes_.Add();
      copy.set_op_type("Identity");
      copy.set_name(to);
      copy.add_input(from);
      copy.add_output(to);
      // Nodes are in order: the copy goes where the statistics came from.
      for (int i = nodes_.size() - 1; i > index + 1; --i) nodes_.SwapElements(i, i - 1);
    }
  }

  void dropout(onnx::NodeProto& node) {
    if (version_ < 7) set_integer(node, "is_test", 1);
    if (node.input_size() > 2) {
      dropped_.insert(node.input(2));
      node.mutable_input()->RemoveLast();
    }
    if (node.output_size() > 1 && read_.count(node.output(1)) == 0) keep_outputs(node, 1);
  }

  Nodes& nodes_;
  int version_;
  NameSet read_, dropped_, outer_;
};

template <class Nodes>
void inference_form(Nodes& nodes, const NameSet& outputs, int version) {
  InferenceForm<Nodes> form(nodes, outputs, version);
  form.set_outputs(outputs);
  form.run();
}

int version_in(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  for (const onnx::OperatorSetIdProto& import : imports) {
    if (domain_of(import.domain()).empty()) return static_cast<int>(import.version());
  }
  return 0;
}

// A name that no value has, near `wanted`.
std::string new_name(const onnx::GraphProto& graph, std::string wanted) {
  NameSet taken;
  for (const auto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const auto& input : graph.input()) taken.insert(input.name());
  for (const auto& node : graph.node()) taken.insert(node.output().begin(), node.output().end());
  while (taken.count(wanted) > 0) wanted += "_";
  return wanted;
}

void replace_target(onnx::GraphProto& graph, onnx::NodeProto& node, const Ints& target) {
  if (node.input_size() < 2) {  // Reshape before version 5
    erase_attribute(node, "shape");
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("shape");
    attribute.set_type(onnx::AttributeProto::INTS);
    for (std::int64_t extent : target) attribute.add_ints(extent);
    return;
  }
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(new_name(graph, node.output(0) + "_shape"));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(target.size()));
  for (std::int64_t extent : target) tensor.add_int64_data(extent);
  node.set_input(1, tensor.name());
}

// Constants that were read before and are not any more, also as inputs of the model.
void drop_unread(onnx::GraphProto& graph, const NameSet& read_before) {
  NameSet read;
  collect_reads(graph.node(), read);
  for (const auto& output : graph.output()) read.insert(output.name());
  const auto is_dropped = [&](const std::string& name) {
    return read_before.count(name) > 0 && read.count(name) == 0;
  };
  NameSet initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  erase_items(*graph.mutable_input(), [&](const auto& input) {
    return initializers.count(input.name()) > 0 && is_dropped(input.name());
  });
  erase_items(*graph.mutable_initializer(),
              [&](const auto& tensor) { return is_dropped(tensor.name()); });
  erase_items(*graph.mutable_node(), [&](const auto& node) {
    return node.op_type() == "Constant" && node.output_size() == 1 && is_dropped(node.output(0));
  });
}

}  // namespace

void to_inference_form(onnx::ModelProto& model) {
  NameSet outputs, before;
  for (const auto& output : model.graph().output()) outputs.insert(output.name());
  collect_reads(model.graph().node(), before);
  inference_form(*model.mutable_graph()->mutable_node(), outputs, version_in(model.opset_import()));
  drop_unread(*model.mutable_graph(), before);
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    const NameSet ends(function.output().begin(), function.output().end());
    inference_form(*function.mutable_node(), ends, version_in(function.opset_import()));
  }
  // Descriptions of values that are gone.
  NameSet made;
  for (const auto& node : model.graph().node())
    made.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : model.graph().initializer()) made.insert(tensor.name());
  erase_items(*model.mutable_graph()->mutable_value_info(),
              [&](const auto& info) { return made.count(info.name()) == 0; });
}

void cut_to_outputs(onnx::ModelProto& model,
                    const std::vector<std::pair<std::string, TensorType>>& outputs,
                    const std::string& batch_name) {
  onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_map<std::string, onnx::ValueInfoProto> known;
  for (const auto& info : graph.value_info()) known.emplace(info.name(), info);
  for (const auto& info : graph.output()) known.emplace(info.name(), info);
  NameSet made;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  NameSet before;
  collect_reads(graph.node(), before);
  std::vector<std::string> names;
  graph.clear_output();
  for (const auto& [name, type] : outputs) {
    if (made.count(name) == 0) {
      refuse({}, name, "the model makes no value of this name", "a value of the graph");
    }
    names.push_back(name);
    onnx::ValueInfoProto& info = *graph.add_output();
    if (const auto at = known.find(name);
        at != known.end() && at->second.type().tensor_type().has_shape()) {
      info = at->second;
      continue;
    }
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(dtype_to_onnx(type.dtype));
    tensor.mutable_shape();
    for (std::int64_t extent : type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
    if (!batch_name.empty() && !type.shape.empty()) {
      tensor.mutable_shape()->mutable_dim(0)->set_dim_param(batch_name);
    }
  }
  const std::vector<bool> needed = needed_nodes(graph, names);
  std::size_t n = 0;
  erase_items(*graph.mutable_node(), [&](const auto&) { return !needed[n++]; });
  NameSet read(names.begin(), names.end());
  collect_reads(graph.node(), read);
  const auto unread = [&](const std::string& name) {
    return before.count(name) > 0 && read.count(name) == 0;
  };
  erase_items(*graph.mutable_initializer(),
              [&](const auto& tensor) { return unread(tensor.name()); });
  erase_items(*graph.mutable_input(), [&](const auto& input) { return unread(input.name()); });
  made.clear();
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  erase_items(*graph.mutable_value_info(),
              [&](const auto& info) { return made.count(info.name()) == 0; });
}

void free_batch(onnx::ModelProto& model, const std::string& name, const ImportResult& same,
                const ImportResult& other) {
  onnx::GraphProto& graph = *model.mutable_graph();
  NameSet before;
  collect_reads(graph.node(), before);
  for (const BatchRewrite& rewrite : other.rewrites) {
    for (int n = 0; n < graph.node_size(); ++n) {
      onnx::NodeProto& node = *graph.mutable_node(n);
      if (node.output_size() == 0 || node.output(0) != rewrite.output) continue;
      Ints target = rewrite.old_target;
      // Reshape finds the extent itself, Expand takes that of its input.
      target[rewrite.axis] = node.op_type() == "Expand" ? 1 : -1;
      replace_target(graph, node, target);
      break;
    }
  }
  drop_unread(graph, before);
  const auto set_first = [&](onnx::ValueInfoProto& info, bool named) {
    if (!info.type().tensor_type().has_shape()) return;  // to say one would be to say "a scalar"
    auto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape->dim_size() == 0 || !shape->dim(0).has_dim_value()) return;
    shape->mutable_dim(0)->clear_value();
    if (named) shape->mutable_dim(0)->set_dim_param(name);
  };
  NameSet initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (initializers.count(input.name()) == 0) set_first(input, true);
  }
  const auto bound = [](const ImportResult& result, const std::string& output) -> const Shape* {
    for (const PortSummary& port : result.summary.outputs) {
      if (port.name == output && port.has_bound) return &port.bound;
    }
    return nullptr;
  };
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    const Shape* a = bound(same, output.name());
    const Shape* b = bound(other, output.name());
    if (a == nullptr || b == nullptr) {
      set_first(output, true);
    } else if (!a->empty() && *a != *b) {
      set_first(output, (*a)[0] == same.file_batch);
    }
  }
  erase_items(*graph.mutable_value_info(),
              [&](const auto& info) { return initializers.count(info.name()) == 0; });
}

void refer_to_data(onnx::TensorProto& tensor, const std::string& location, std::uint64_t offset,
                   std::uint64_t length) {
  onnx::TensorProto reference;
  reference.set_name(tensor.name());
  reference.set_data_type(tensor.data_type());
  *reference.mutable_dims() = tensor.dims();
  reference.set_doc_string(tensor.doc_string());
  reference.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, std::string value) {
    onnx::StringStringEntryProto& entry = *reference.add_external_data();
    entry.set_key(key);
    entry.set_value(std::move(value));
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(length));
  tensor = std::move(reference);
}

}  // namespace tandem::importer
