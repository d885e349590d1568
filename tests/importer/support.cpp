#include "tests/importer/support.h"
#include "tests/harness/folders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

#include "engine/operators/grouped_update.h"
#include "kernels/reference/reference_kernels.h"
#include "onnx/defs/parser.h"

namespace tandem::testing {

const OperatorSet& engine_operators() {
  static const OperatorSet operators = all_operators();
  return operators;
}

Evaluator reference_evaluator() {
  return [](const Graph& graph, const Node& node, const std::vector<HostTensor>& inputs) {
    static const KernelList kernels = reference_kernels();
    const DeviceFacts facts;
    KernelRequest request;
    request.node = &node;
    request.facts = &facts;
    std::vector<const void*> from;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Operand operand;
      operand.present = static_cast<bool>(node.inputs[i]);
      if (operand.present) {
        operand.type = inputs[i].type();
        operand.layout = row_major(operand.type.shape);
      }
      request.inputs.push_back(operand);
      from.push_back(operand.present ? inputs[i].data() : nullptr);
    }
    std::vector<HostTensor> outputs;
    std::vector<void*> to;
    for (ValueId id : node.outputs) {
      Operand operand;
      operand.type = graph.type(id);
      operand.layout = row_major(operand.type.shape);
      outputs.emplace_back(operand.type);
      to.push_back(outputs.back().data());
      request.outputs.push_back(std::move(operand));
    }
    // An output that overwrites an input begins with the input's elements.
    for (const Alias& alias : aliases_of(node)) {
      const auto output = static_cast<std::size_t>(alias.output),
                 input = static_cast<std::size_t>(alias.input);
      if (outputs[output].bytes() == 0 || !node.inputs[input]) continue;
      outputs[output] = inputs[input].clone();
      to[output] = outputs[output].data();
      from[input] = to[output];
    }
    std::vector<std::string> refusals;
    const Kernel* kernel = choose_kernel(kernels, request, &refusals);
    if (kernel == nullptr) {
      throw std::runtime_error(node.op->name + ": " +
                               (refusals.empty() ? "no kernel" : refusals.back()));
    }
    const auto prepared = kernel->prepare(request);
    HostTensor workspace(
        TensorType{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes)}});
    ErrorWord error;
    StepContext context;
    context.step = 1;
    context.error = &error;
    prepared->run({from.data(), to.data(), workspace.data(), &context});
    if (error.packed.load() != 0) outputs.clear();
    return outputs;
  };
}

NamedTensors run_graph(const Graph& graph, const NamedTensors& inputs) {
  std::vector<HostTensor> values(graph.values.size());
  const auto set_value = [&](ValueId id, HostTensor tensor) {
    values[static_cast<std::size_t>(id.index)] = std::move(tensor);
  };
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].constant) values[i] = *graph.values[i].constant;
  }
  for (const State& state : graph.states) set_value(state.initial, state.start);
  for (const NamedValue& input : graph.inputs) {
    for (const auto& [name, tensor] : inputs) {
      if (name == input.name) set_value(input.value, tensor);
    }
  }
  const Evaluator evaluate = reference_evaluator();
  for (const Node& node : graph.nodes) {
    std::vector<HostTensor> operands;
    for (ValueId id : node.inputs) {
      operands.push_back(id ? values[static_cast<std::size_t>(id.index)] : HostTensor());
    }
    std::vector<HostTensor> results = evaluate(graph, node, operands);
    for (std::size_t i = 0; i < results.size(); ++i)
      set_value(node.outputs[i], std::move(results[i]));
  }
  NamedTensors outputs;
  for (const NamedValue& output : graph.outputs) {
    outputs.emplace_back(output.name, values[static_cast<std::size_t>(output.value.index)]);
  }
  return outputs;
}

std::string model_bytes(const std::string& text) {
  onnx::ModelProto model;
  const onnx::Common::Status status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.SerializeAsString();
}

ImportOptions with_evaluator(ImportOptions options) {
  options.evaluate = reference_evaluator();
  return options;
}

ModelMaker::ModelMaker(int opset) {
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  graph().set_name("graph");
}

ModelMaker& ModelMaker::input(const std::string& name, const std::vector<std::int64_t>& shape,
                              std::int32_t type) {
  onnx::ValueInfoProto& info = *graph().add_input();
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (std::int64_t extent : shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  return *this;
}

ModelMaker& ModelMaker::free_input(const std::string& name, const std::vector<std::string>& dims,
                                   std::int32_t type) {
  input(name, {}, type);
  auto& shape = *graph()
                     .mutable_input(graph().input_size() - 1)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  for (const std::string& dim : dims) {
    const bool number = !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos;
    if (number) {
      shape.add_dim()->set_dim_value(std::stoll(dim));
    } else {
      shape.add_dim()->set_dim_param(dim);
    }
  }
  return *this;
}

ModelMaker& ModelMaker::output(const std::string& name) {
  onnx::ValueInfoProto& info = *graph().add_output();
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  info.mutable_type()->mutable_tensor_type()->mutable_shape();
  return *this;
}

ModelMaker& ModelMaker::weight(const std::string& name, const std::vector<std::int64_t>& shape,
                               float first) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::vector<float> values;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    values.push_back(first + 0.125f * static_cast<float>(i % 16));
  }
  for (std::int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return *this;
}

ModelMaker& ModelMaker::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (std::int64_t value : values) tensor.add_int64_data(value);
  return *this;
}

onnx::NodeProto& ModelMaker::node(const std::string& op, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return node;
}

OnnxFile ModelMaker::file(const FileLimits& limits) const {
  return OnnxFile::from_bytes(bytes(), {}, limits);
}

namespace {
onnx::AttributeProto& add(onnx::NodeProto& node, const std::string& name,
                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}
}  // namespace

void set(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  add(node, name, onnx::AttributeProto::INT).set_i(value);
}
void set(onnx::NodeProto& node, const std::string& name, double value) {
  add(node, name, onnx::AttributeProto::FLOAT).set_f(static_cast<float>(value));
}
void set(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  add(node, name, onnx::AttributeProto::STRING).set_s(value);
}
void set(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  auto& attribute = add(node, name, onnx::AttributeProto::INTS);
  for (std::int64_t value : values) attribute.add_ints(value);
}

std::int64_t count_nodes(const Graph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op->name == op; });
}

std::string error_of(const std::function<void()>& body, ErrorKind kind) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a scratch folder");
  path_ = name;
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::filesystem::path ScratchFolder::write(const std::string& name,
                                           const std::string& bytes) const {
  std::ofstream(path_ / name, std::ios::binary) << bytes;
  return path_ / name;
}

std::filesystem::path fixtures() {
  return std::filesystem::path(source_folder()) / "tests/data/parity";
}

std::filesystem::path folder_from(const char* variable, const std::filesystem::path& fallback) {
  const char* given = std::getenv(variable);
  const std::filesystem::path path = given != nullptr ? std::filesystem::path(given) : fallback;
  return std::filesystem::is_directory(path) ? path : std::filesystem::path();
}

}  // namespace tandem::testing
