#include "tests/harness/test_device.h"

#include <cstring>

#include "engine/graph/host_tensor.h"
#include "kernels/reference/reference_kernels.h"

namespace tandem::testing {
namespace {

class HostMemory final : public Memory {
 public:
  explicit HostMemory(std::size_t bytes)
      : block_(TensorType{DType::uint8, {static_cast<std::int64_t>(bytes)}}) {
    std::memset(block_.data(), 0xff, bytes);  // NaN in every floating point type
  }
  void* address() override { return block_.data(); }
  std::size_t bytes() const override { return block_.bytes(); }

 private:
  HostTensor block_;
};

class NoEvent final : public Event {
 public:
  void synchronize(std::uint64_t) override {}
  bool reached(std::uint64_t) const override { return true; }
};

class InlineStream final : public Stream {
 public:
  void run(const KernelCall& call) override { call.kernel->run(call.arguments); }
  void copy(void* to, const void* from, std::size_t bytes, const Operation&) override {
    std::memcpy(to, from, bytes);
  }
  void record(Event&, std::uint64_t) override {}
  void wait(Event&, std::uint64_t) override {}
  void synchronize() override {}
};

class TestDevice final : public Device {
 public:
  explicit TestDevice(KernelList kernels) : kernels_(std::move(kernels)) {}
  const std::string& name() const override { return name_; }
  const DeviceFacts& facts() const override { return facts_; }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return std::size_t{1} << 30; }
  std::unique_ptr<Memory> allocate(std::size_t bytes) override {
    return std::make_unique<HostMemory>(bytes);
  }
  std::unique_ptr<Stream> make_stream(StreamKind, const std::string&) override {
    return std::make_unique<InlineStream>();
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<NoEvent>(); }
  void to_device(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void on_lane(const std::function<void()>& f) override { f(); }

 private:
  std::string name_ = "cpu";
  DeviceFacts facts_;
  KernelList kernels_;
};

// Requests channels-last for these operands, and any strides for the others.
void want_channels_last(Kernel& kernel, std::vector<std::size_t> inputs,
                        std::vector<std::size_t> outputs) {
  kernel.propose = [inputs, outputs](const KernelRequest& request) {
    Proposal proposal;
    proposal.inputs.resize(request.inputs.size());
    proposal.outputs.resize(request.outputs.size());
    for (std::size_t i : inputs) proposal.inputs[i].kind = LayoutConstraint::Kind::channels_last;
    for (std::size_t i : outputs) proposal.outputs[i].kind = LayoutConstraint::Kind::channels_last;
    return std::vector<Proposal>{proposal};
  };
}

}  // namespace

std::unique_ptr<Device> make_test_device(KernelList kernels) {
  return std::make_unique<TestDevice>(std::move(kernels));
}

KernelList reference_kernels_as_fast() {
  KernelList list = reference_kernels();
  for (Kernel& kernel : list) kernel.reference = false;
  return list;
}

KernelList channels_last_kernels() {
  KernelList list = reference_kernels_as_fast();
  for (Kernel& kernel : list) {
    if (kernel.op == "Conv" || kernel.op == "ConvFused") want_channels_last(kernel, {0, 1}, {0});
    if (kernel.op == "ConvGradInput") want_channels_last(kernel, {0, 1}, {0});
    if (kernel.op == "ConvGradWeight") want_channels_last(kernel, {0, 1}, {0});
  }
  return list;
}

}  // namespace tandem::testing
