#include "kernels/cuda/pointwise/fused/fused_body.h"

#include <cmath>

#include "engine/device/kernel_forms.h"
#include "engine/graph/host_tensor.h"
#include "engine/operators/scalar_functions.h"
#include "kernels/cuda/pointwise/fused/fused_arguments.h"

namespace tandem::cuda {
namespace {

std::optional<double> known_number(const HostTensor* constant) {
  if (constant == nullptr || constant->type().elements() != 1) return std::nullopt;
  const double number = constant->number(0);
  // Larger integers may not be what the double says.
  if (!is_float(constant->dtype()) && std::abs(number) > 0x1p53) return std::nullopt;
  return number;
}

bool is_reduction(const Node& node) {
  const Reducer reducer = node.op->reducer;
  return reducer == Reducer::sum || reducer == Reducer::mean || reducer == Reducer::maximum;
}

// Why a function does not take operands of these types.
std::optional<std::string> refuse_types(const Graph& graph, const Node& node) {
  const DType first = graph.type(node.inputs[0]).dtype;
  const ScalarFunction f = node.op->scalar;
  if (types_of(f) == ScalarTypes::own) {
    for (ValueId input : node.inputs) {
      if (f == ScalarFunction::pow && graph.type(input).dtype == DType::boolean)
        return refused_type(DType::boolean);
    }
    return std::nullopt;
  }
  if (!takes(types_of(f), first)) return refused_type(first);
  for (ValueId input : node.inputs) {
    if (graph.type(input).dtype != first) return "two types";
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const KernelRequest& request, FusedBody& body)
      : request_(request), graph_(*request.node->body), body_(body) {}

  std::optional<std::string> run() {
    if (request_.inputs.size() + request_.outputs.size() > most_fused_operands) {
      return "more than " + std::to_string(most_fused_operands) + " operands";
    }
    for (const Operand& input : request_.inputs) {
      if (!input.present) return "an absent input";
    }
    read_values();
    for (const Node& node : graph_.nodes) {
      if (auto reason = read_node(node)) return reason;
    }
    if (body_.steps.empty() && !body_.reduction) return "an empty body";
    if (auto reason = read_outputs()) return reason;
    drop_unread();
    return std::nullopt;
  }

 private:
  void read_values() {
    for (const Value& value : graph_.values) {
      body_.values.push_back({value.type.dtype, known_number(value.constant.get()), -1});
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      FusedValue& value = body_.values[graph_.inputs[i].value.index];
      value.input = static_cast<int>(i);
      value.number = known_number(request_.inputs[i].constant);
    }
    body_.input_used.assign(graph_.inputs.size(), 0);
  }

  std::optional<std::string> read_node(const Node& node) {
    if (body_.reduction) return "a reduction inside";
    if (node.outputs.size() != 1) return "operator " + node.op->name;
    for (ValueId input : node.inputs) {
      if (!input) return "an absent operand of " + node.op->name;
      if (auto reason = check_known(input.index)) return reason;
    }
    if (is_reduction(node)) return read_reduction(node);
    if (!node.op->is_scalar()) return "operator " + node.op->name;
    if (auto reason = refuse_types(graph_, node)) return reason;
    if (auto reason = check_space(graph_.type(node.outputs[0]).shape)) return reason;
    FusedStep step{&node, {}, node.outputs[0].index};
    for (ValueId input : node.inputs) step.inputs.push_back(input.index);
    body_.steps.push_back(std::move(step));
    return std::nullopt;
  }

  std::optional<std::string> check_space(const Shape& shape) {
    if (!has_space_) body_.space = shape;
    has_space_ = true;
    if (body_.space != shape) return "several index spaces";
    return std::nullopt;
  }

  std::optional<std::string> read_reduction(const Node& node) {
    const TensorType& type = graph_.type(node.inputs[0]);
    if (!is_float(type.dtype)) return "a reduction of " + std::string(name_of(type.dtype));
    if (auto reason = check_space(type.shape)) return reason;
    FusedReduction reduction;
    reduction.source = node.inputs[0].index;
    if (node.op->reducer == Reducer::mean) reduction.kind = FusedReduction::Kind::mean;
    if (node.op->reducer == Reducer::maximum) reduction.kind = FusedReduction::Kind::maximum;
    reduction.axes.assign(type.shape.size(), 0);
    for (std::int64_t axis : node.attributes.integers("axes")) reduction.axes[axis] = 1;
    body_.reduction = std::move(reduction);
    reduced_ = node.outputs[0].index;
    return std::nullopt;
  }

  // Values that come from outside are inputs, or numbers.
  std::optional<std::string> check_known(int index) const {
    const FusedValue& value = body_.values[index];
    const bool made = graph_.values[index].producer.index >= 0;
    if (made || value.number || value.input >= 0) return std::nullopt;
    return "a constant inside that is no small number";
  }

  std::optional<std::string> read_outputs() {
    int reduced_outputs = 0;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const int value = graph_.outputs[i].value.index;
      if (value == reduced_) {
        ++reduced_outputs;
        body_.reduction->output = static_cast<int>(i);
        body_.outputs.push_back(-1);
        continue;
      }
      if (graph_.values[value].type.shape != body_.space) return "several index spaces";
      if (auto reason = check_known(value)) return reason;
      body_.outputs.push_back(value);
    }
    if (body_.reduction && reduced_outputs != 1) return "a reduction that is no output, or several";
    return std::nullopt;
  }

  // Keeps only what an output needs that is read.
  void drop_unread() {
    std::vector<char> needed(body_.values.size(), 0);
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      if (body_.outputs[i] >= 0 && request_.outputs[i].present) needed[body_.outputs[i]] = 1;
    }
    if (body_.reduction && !request_.outputs[body_.reduction->output].present)
      body_.reduction.reset();
    if (body_.reduction) needed[body_.reduction->source] = 1;
    for (auto step = body_.steps.rbegin(); step != body_.steps.rend(); ++step) {
      if (!needed[step->output]) continue;
      for (int input : step->inputs) needed[input] = 1;
    }
    std::erase_if(body_.steps, [&](const FusedStep& step) { return !needed[step.output]; });
    for (std::size_t v = 0; v < body_.values.size(); ++v) {
      const FusedValue& value = body_.values[v];
      if (value.input >= 0 && needed[v] && !value.number) body_.input_used[value.input] = 1;
    }
  }

  const KernelRequest& request_;
  const Graph& graph_;
  FusedBody& body_;
  bool has_space_ = false;
  int reduced_ = -1;
};

}  // namespace

std::optional<std::string> read_body(const KernelRequest& request, FusedBody& body) {
  if (!request.node->body) return "no body";
  body = {};
  return Reader(request, body).run();
}

}  // namespace tandem::cuda
