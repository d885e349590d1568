// Fused: its body node by node on reference kernels, with every value in the workspace.
#include <cassert>

#include "engine/graph/align.h"
#include "engine/operators/operator.h"
#include "kernels/reference/support.h"

namespace tandem::reference {

#define TANDEM_REFERENCE(name) void add_##name(KernelList& list);
#include "kernels/reference/all_kernels.inl"

namespace {

constexpr std::size_t alignment = 64;

struct Step {
  std::unique_ptr<PreparedKernel> kernel;
  std::vector<ValueId> inputs, outputs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
};

// Where each value of the body lies in the workspace, for computed ones.
std::vector<std::size_t> places(const Graph& body, std::size_t& bytes) {
  std::vector<std::size_t> result(body.values.size());
  for (std::size_t i = 0; i < body.values.size(); ++i) {
    if (body.values[i].kind != ValueKind::computed) continue;
    result[i] = bytes;
    bytes += align_up(body.values[i].type.bytes(), alignment);
  }
  return result;
}

// The node's request with operands as they lie: inputs as given, all else row-major.
KernelRequest inner_request(const KernelRequest& outer, const Node& node) {
  const Graph& body = *outer.node->body;
  const auto operand = [&](ValueId id) {
    Operand result;
    result.present = static_cast<bool>(id);
    if (!id) return result;
    result.type = body.type(id);
    result.layout = row_major(result.type.shape);
    result.constant = body.value(id).constant.get();
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      if (body.inputs[i].value == id) result.layout = outer.inputs[i].layout;
    }
    return result;
  };
  KernelRequest request;
  request.node = &node;
  request.node_index = outer.node_index;
  for (ValueId id : node.inputs) request.inputs.push_back(operand(id));
  for (ValueId id : node.outputs) request.outputs.push_back(operand(id));
  request.facts = outer.facts;
  return request;
}

KernelList inner_kernels() {
  KernelList list;
  add_elementwise(list);
  add_moves(list);
  add_reductions(list);
  return list;
}

std::optional<std::string> refuse(const KernelRequest& request) {
  if (!request.node->body) return "no body";
  const KernelList kernels = inner_kernels();
  for (const Node& node : request.node->body->nodes) {
    if (choose_kernel(kernels, inner_request(request, node)) == nullptr) {
      return "no reference kernel for " + node.op->name + " in a body";
    }
  }
  return std::nullopt;
}

class FusedKernel final : public PreparedKernel {
 public:
  explicit FusedKernel(const KernelRequest& request) : body_(request.node->body) {
    const KernelList kernels = inner_kernels();
    places_ = places(*body_, workspace_bytes);
    data_.resize(body_->values.size());
    for (const Node& node : body_->nodes) {
      const KernelRequest inner = inner_request(request, node);
      Step step;
      step.kernel = choose_kernel(kernels, inner)->prepare(inner);
      assert(step.kernel->workspace_bytes == 0);
      step.inputs = node.inputs;
      step.outputs = node.outputs;
      step.input_data.resize(node.inputs.size());
      step.output_data.resize(node.outputs.size());
      steps_.push_back(std::move(step));
    }
    for (std::size_t i = 0; i < body_->outputs.size(); ++i) {
      Operand from;
      from.type = request.outputs[i].type;
      from.layout = row_major(from.type.shape);
      for (std::size_t k = 0; k < body_->inputs.size(); ++k) {
        if (body_->inputs[k].value == body_->outputs[i].value) from = request.inputs[k];
      }
      Operand to = request.outputs[i];
      if (!to.present) to.layout = row_major(to.type.shape);
      sources_.push_back(walk(from));
      targets_.push_back(walk(to));
    }
  }

  void run(const KernelArguments& arguments) noexcept override {
    char* workspace = static_cast<char*>(arguments.workspace);
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const Value& value = body_->values[i];
      data_[i] =
          value.constant ? const_cast<void*>(value.constant->data()) : workspace + places_[i];
    }
    for (std::size_t i = 0; i < body_->inputs.size(); ++i) {
      data_[body_->inputs[i].value.index] = const_cast<void*>(arguments.inputs[i]);
    }
    for (Step& step : steps_) {
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        step.input_data[i] = step.inputs[i] ? data_[step.inputs[i].index] : nullptr;
      }
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        step.output_data[i] = data_[step.outputs[i].index];
      }
      step.kernel->run(
          {step.input_data.data(), step.output_data.data(), nullptr, arguments.context});
    }
    for (std::size_t i = 0; i < body_->outputs.size(); ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      const ValueId id = body_->outputs[i].value;
      copy_elements(data_[id.index], sources_[i], arguments.outputs[i], targets_[i],
                    size_of(body_->type(id).dtype));
    }
  }

 private:
  std::shared_ptr<const Graph> body_;
  std::vector<std::size_t> places_;
  std::vector<void*> data_;  // by value of the body
  std::vector<Step> steps_;
  std::vector<Position> sources_, targets_;
};

std::unique_ptr<PreparedKernel> prepare_fused(const KernelRequest& request) {
  return std::make_unique<FusedKernel>(request);
}

}  // namespace

void add_fused(KernelList& list) {
  list.push_back(reference_kernel("fused", "Fused", refuse, prepare_fused));
}

}  // namespace tandem::reference
