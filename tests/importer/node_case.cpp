#include "tests/importer/node_case.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "onnx/onnx-data.pb.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

template <class Proto>
bool read_proto(const std::filesystem::path& path, Proto& proto) {
  std::ifstream stream(path, std::ios::binary);
  return stream && proto.ParseFromIstream(&stream);
}

class Reading {
 public:
  explicit Reading(const std::filesystem::path& folder) : data_(folder / "test_data_set_0") {
    if (!read_proto(folder / "model.onnx", result_.model))
      throw std::runtime_error("no model in " + folder.string());
  }

  NodeCase run() {
    onnx::GraphProto& graph = *result_.model.mutable_graph();
    const onnx::GraphProto original = graph;
    graph.clear_input();
    graph.clear_output();
    graph.clear_node();
    for (int i = 0; i < original.input_size(); ++i) feed(original.input(i), i);
    graph.mutable_node()->MergeFrom(original.node());
    for (int i = 0; i < original.output_size(); ++i) expect(original.output(i), i);
    return std::move(result_);
  }

 private:
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& made = *result_.model.mutable_graph()->add_node();
    made.set_op_type(op);
    for (const std::string& input : inputs) made.add_input(input);
    made.add_output(output);
    return made;
  }

  static onnx::TypeProto type_of(const onnx::TensorProto& tensor) {
    onnx::TypeProto type;
    type.mutable_tensor_type()->set_elem_type(tensor.data_type());
    auto* shape = type.mutable_tensor_type()->mutable_shape();
    for (const std::int64_t extent : tensor.dims()) shape->add_dim()->set_dim_value(extent);
    return type;
  }

  static bool has_free_dimension(const onnx::ValueInfoProto& info) {
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      if (!dim.has_dim_value()) return true;
    }
    return false;
  }

  void feed(const onnx::ValueInfoProto& info, int i) {
    const std::filesystem::path path = data_ / fmt::format("input_{}.pb", i);
    if (info.type().has_sequence_type()) {
      onnx::SequenceProto parts;
      if (read_proto(path, parts)) feed_sequence(info.name(), info.type().sequence_type(), parts);
    } else if (info.type().has_optional_type()) {
      const onnx::TypeProto& type = info.type().optional_type().elem_type();
      onnx::OptionalProto value;
      if (!read_proto(path, value)) return;
      const std::string name = info.name() + "_value";
      if (value.elem_type() == onnx::OptionalProto::TENSOR) {
        feed_tensor(name, type_of(value.tensor_value()), value.tensor_value());
        node("Optional", {name}, info.name());
      } else if (value.elem_type() == onnx::OptionalProto::SEQUENCE) {
        feed_sequence(name, type.sequence_type(), value.sequence_value());
        node("Optional", {name}, info.name());
      } else {
        onnx::AttributeProto& attribute = *node("Optional", {}, info.name()).add_attribute();
        attribute.set_name("type");
        attribute.set_type(onnx::AttributeProto::TYPE_PROTO);
        *attribute.mutable_tp() = type;
      }
    } else {
      onnx::ValueInfoProto& input = *result_.model.mutable_graph()->add_input();
      input = info;
      onnx::TensorProto tensor;
      if (!read_proto(path, tensor)) return;
      if (has_free_dimension(info)) *input.mutable_type() = type_of(tensor);
      result_.feeds.emplace_back(info.name(), tensor);
    }
  }

  void feed_tensor(const std::string& name, const onnx::TypeProto& type,
                   const onnx::TensorProto& tensor) {
    onnx::ValueInfoProto& input = *result_.model.mutable_graph()->add_input();
    input.set_name(name);
    *input.mutable_type() = type;
    result_.feeds.emplace_back(name, tensor);
  }

  void feed_sequence(const std::string& name, const onnx::TypeProto_Sequence& type,
                     const onnx::SequenceProto& parts) {
    std::vector<std::string> names;
    for (const onnx::TensorProto& part : parts.tensor_values()) {
      names.push_back(fmt::format("{}_{}", name, names.size()));
      feed_tensor(names.back(), type_of(part), part);
    }
    if (!names.empty()) {
      node("SequenceConstruct", names, name);
    } else {
      set(node("SequenceEmpty", {}, name), "dtype",
          std::int64_t{type.elem_type().tensor_type().elem_type()});
    }
  }

  void expect(const onnx::ValueInfoProto& info, int i) {
    const std::filesystem::path path = data_ / fmt::format("output_{}.pb", i);
    if (info.type().has_sequence_type()) {
      onnx::SequenceProto parts;
      if (read_proto(path, parts)) expect_sequence(info.name(), parts);
    } else if (info.type().has_optional_type()) {
      onnx::OptionalProto value;
      if (!read_proto(path, value)) return;
      const std::string name = info.name() + "_value";
      node("OptionalGetElement", {info.name()}, name);
      if (value.elem_type() == onnx::OptionalProto::SEQUENCE) {
        expect_sequence(name, value.sequence_value());
      } else {
        expect_tensor(name, value.tensor_value());
      }
    } else {
      onnx::TensorProto tensor;
      *result_.model.mutable_graph()->add_output() = info;
      if (read_proto(path, tensor)) result_.wants.emplace_back(info.name(), tensor);
    }
  }

  void expect_tensor(const std::string& name, const onnx::TensorProto& tensor) {
    onnx::ValueInfoProto& output = *result_.model.mutable_graph()->add_output();
    output.set_name(name);
    *output.mutable_type() = type_of(tensor);
    result_.wants.emplace_back(name, tensor);
  }

  void expect_sequence(const std::string& name, const onnx::SequenceProto& parts) {
    const auto integer = [](std::int64_t value) {
      onnx::TensorProto tensor;
      tensor.set_data_type(onnx::TensorProto::INT64);
      tensor.add_int64_data(value);
      return tensor;
    };
    const std::string length = name + "_length";
    node("SequenceLength", {name}, length);
    expect_tensor(length, integer(parts.tensor_values_size()));
    for (int k = 0; k < parts.tensor_values_size(); ++k) {
      onnx::TensorProto position = integer(k);
      position.set_name(fmt::format("{}_position_{}", name, k));
      *result_.model.mutable_graph()->add_initializer() = position;
      const std::string part = fmt::format("{}_{}", name, k);
      node("SequenceAt", {name, position.name()}, part);
      expect_tensor(part, parts.tensor_values(k));
    }
  }

  std::filesystem::path data_;
  NodeCase result_;
};

}  // namespace

NodeCase read_case(const std::filesystem::path& folder) { return Reading(folder).run(); }

}  // namespace tandem::testing
