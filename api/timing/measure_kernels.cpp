// Times each kernel of a program by itself on its device: medians of several runs.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "api/timing/measure_kernels.h"
#include "engine/graph/error.h"
#include "engine/plan/planning_steps.h"
#include "engine/runtime/layout_copy.h"

namespace tandem::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int samples = 5;
// The minimum time of a sample, so that the clock's resolution does not matter.
constexpr double sample_seconds = 200e-6;
constexpr int most_repeats = 1000;

/// One kernel with operands of zeros in the device's own memory.
class Bench {
 public:
  Bench(const CompiledProgram& program, const std::vector<char>& needed, NodeId id, Device& device)
      : lowered_(program.lowered), device_(device), stream_(device.make_stream()) {
    const Node& node = lowered_.graph.node(id);
    for (const ValueId value : node.inputs) inputs_.push_back(value ? allocate(value) : nullptr);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const std::vector<int>& in_place = lowered_.nodes[id.index].in_place;
      const int over = o < in_place.size() ? in_place[o] : -1;
      const ValueId value = node.outputs[o];
      if (needed[value.index] == 0) {
        outputs_.push_back(nullptr);
      } else {
        outputs_.push_back(over >= 0 ? const_cast<void*>(inputs_[over]) : allocate(value));
      }
    }
    PreparedKernel* kernel = program.kernels[id.index].get();
    void* workspace =
        kernel->workspace_bytes > 0 ? allocate_bytes(kernel->workspace_bytes) : nullptr;
    context_.error = &error_;
    context_.step = 1;
    call_.kernel = kernel;
    call_.arguments = {inputs_.data(), outputs_.data(), workspace, &context_};
    call_.inputs = static_cast<int>(inputs_.size());
    call_.outputs = static_cast<int>(outputs_.size());
    call_.operation.name = node.path;
  }

  double median_seconds() {
    run(3);  // starts threads and maps pages
    int repeats = 1;
    double once = run(1);
    while (once * repeats < sample_seconds && repeats < most_repeats) repeats *= 2;
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) times.push_back(run(repeats) / repeats);
    std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
    return times[samples / 2];
  }

 private:
  double run(int repeats) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) stream_->run(call_);
    stream_->synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void* allocate_bytes(std::size_t bytes) {
    memory_.push_back(device_.allocate(std::max<std::size_t>(bytes, 64)));
    const std::vector<std::byte> zeros(bytes);
    device_.to_device(memory_.back()->address(), zeros.data(), bytes);
    return memory_.back()->address();
  }

  void* allocate(ValueId value) {
    const TensorType& type = lowered_.graph.type(value);
    const Layout& layout = lowered_.values[value.index].layout;
    return static_cast<std::byte*>(allocate_bytes(buffer_bytes(type, layout))) +
           static_cast<std::size_t>(layout.offset) * size_of(type.dtype);
  }

  const Lowered& lowered_;
  Device& device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  ErrorWord error_;
  StepContext context_;
  KernelCall call_;
  std::unique_ptr<Stream> stream_;  // last: its destructor waits before the operands are freed
};

}  // namespace

void measure_kernels(const CompiledProgram& program, int device, DeviceProfile& profile) {
  const Lowered& lowered = program.lowered;
  const std::vector<char> needed = needed_values(lowered);
  DeviceProfile roofline = profile;
  roofline.measured.clear();
  double measured = 0, assumed = 0;
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    if (lowered.nodes[n].kernel == nullptr || lowered.nodes[n].device != device) continue;
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string request = request_text(lowered.graph, lowered.graph.node(id));
    auto known = profile.measured.find(request);
    if (known == profile.measured.end()) {
      try {
        const double seconds =
            Bench(program, needed, id, *lowered.devices[device]).median_seconds();
        known = profile.measured.emplace(request, seconds).first;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::does_not_fit) throw;
        continue;  // keeps the roofline's estimate
      }
    }
    Instruction instruction;
    instruction.node = id;
    assumed += seconds_of(instruction, lowered, roofline);
    measured += known->second;
  }
  if (measured <= 0) return;
  profile.flops *= assumed / measured;
  profile.bandwidth *= assumed / measured;
}

}  // namespace tandem::api
