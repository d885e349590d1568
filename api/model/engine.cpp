#include "api/model/engine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "engine/graph/error.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference_kernels.h"

namespace tandem::api {

Evaluator reference_evaluator() {
  auto kernels = std::make_shared<const KernelList>(reference_kernels());
  return [kernels](const Graph& graph, const Node& node, const std::vector<HostTensor>& inputs) {
    const DeviceFacts facts;
    KernelRequest request;
    request.node = &node;
    request.facts = &facts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Operand operand;
      operand.present = static_cast<bool>(node.inputs[i]);
      if (operand.present) {
        operand.type = inputs[i].type();
        operand.layout = row_major(operand.type.shape);
        operand.constant = &inputs[i];
      }
      request.inputs.push_back(std::move(operand));
    }
    std::vector<HostTensor> outputs;
    for (const ValueId id : node.outputs) {
      Operand operand;
      operand.type = graph.type(id);
      operand.layout = row_major(operand.type.shape);
      outputs.emplace_back(operand.type);
      request.outputs.push_back(std::move(operand));
    }
    std::vector<std::string> refusals;
    const Kernel* kernel = choose_kernel(*kernels, request, &refusals);
    if (kernel == nullptr) {
      Diagnostic d;
      d.path = node.path;
      d.message = "no kernel can compute this constant";
      d.got = refusals.empty() ? node.op->name : refusals.back();
      throw Error(ErrorKind::usage, std::move(d));
    }
    const std::unique_ptr<PreparedKernel> prepared = kernel->prepare(request);
    std::vector<const void*> from;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      from.push_back(node.inputs[i] ? inputs[i].data() : nullptr);
    }
    std::vector<void*> to;
    for (HostTensor& output : outputs) to.push_back(output.data());
    std::vector<std::byte> workspace(prepared->workspace_bytes + 64);
    ErrorWord error;
    StepContext context;
    context.error = &error;
    void* aligned = workspace.data();
    std::size_t space = workspace.size();
    std::align(64, prepared->workspace_bytes, aligned, space);
    prepared->run({from.data(), to.data(), aligned, &context});
    if (error.packed.load() != 0) outputs.clear();
    return outputs;
  };
}

Engine::Engine(int threads) : cpu(make_cpu_device(threads, monitor)) {}

void check_order(const Engine& engine) {
  const std::vector<std::string> errors = engine.monitor->order_errors();
  if (errors.empty()) return;
  Diagnostic d;
  d.message = "accesses out of order on an accelerator (please report this): " + errors.front();
  throw Error(ErrorKind::runtime, std::move(d));
}

Placement place_everything(const Graph& graph) {
  return {.devices = {"cpu"},
          .nodes = std::vector(graph.nodes.size(), PlacedNode{0, "default"}),
          .states = std::vector(graph.states.size(), PlacedState{0, 0, "default"})};
}

std::uint64_t peak_resident_bytes() {
  // getrusage may report the peak of the process that has started this one.
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::uint64_t kibibytes = 0;
    if (name == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace tandem::api
