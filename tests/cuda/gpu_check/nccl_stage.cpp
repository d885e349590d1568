// NCCL with one rank: it starts, does each operation, also in a graph, and is aborted; nothing
// hangs.
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/cuda/collectives/nccl_communicator.h"
#include "kernels/cuda/device/cuda_device.h"
#include "tests/cuda/gpu_check/distance.h"
#include "tests/cuda/gpu_check/stages.h"

namespace tandem::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void run_nccl(CheckGpu& gpu, const Options& options, Report& report) {
  const std::size_t count = std::size_t{1} << (options.small ? 12 : 20);
  const cuda::GpuContext& shared = gpu.gpu();
  if (shared.libraries->nccl() == nullptr)
    return report.skipped("NCCL", "it cannot be used: see tandem doctor");
  CudaOptions of_device;
  of_device.ordinal = shared.gpu;
  const auto device = cuda::make_device(of_device, shared.runtime, shared.libraries);
  const auto stream = device->make_stream();
  HostTensor numbers(TensorType{DType::float32, {static_cast<std::int64_t>(count)}});
  for (std::size_t i = 0; i < count; ++i)
    numbers.as<float>()[i] = static_cast<float>(i % 1000) * 0.25f + 1;
  const auto from = device->allocate(numbers.bytes()), to = device->allocate(numbers.bytes());
  device->to_device(from->address(), numbers.data(), numbers.bytes());

  cuda::NcclOptions limits;
  limits.gpu = shared.gpu;
  limits.start_limit = limits.operation_limit = std::chrono::seconds(20);
  const auto one = cuda::make_nccl_communicator(
      limits, std::shared_ptr<Rendezvous>(make_rendezvous({})), shared.runtime, shared.libraries);
  report.passed("a communicator of one rank");

  const RankElements elements{from->address(), to->address(), count, DType::float32};
  // With one rank the result of every operation equals its input.
  const auto check = [&](const std::string& name, const std::function<void()>& enqueue) {
    HostTensor found(numbers.type());
    std::memset(found.data(), 0xff, found.bytes());
    device->to_device(to->address(), found.data(), found.bytes());
    enqueue();
    one->wait(*stream);
    device->to_host(found.data(), to->address(), found.bytes());
    report.measured(name, distance(found, numbers), 0);
  };
  check("a sum over one rank", [&] { one->all_reduce(*stream, "sum", elements, Reduction::sum); });
  check("a mean over one rank",
        [&] { one->all_reduce(*stream, "mean", elements, Reduction::mean); });
  check("a gather over one rank", [&] { one->all_gather(*stream, "gather", elements); });
  check("a scattered sum over one rank",
        [&] { one->reduce_scatter(*stream, "scatter", elements, Reduction::sum); });
  // As above, but with two operands, which are sent as one group.
  const auto halves = [&] {
    const std::size_t half = count / 2;
    auto* const x = static_cast<float*>(from->address());
    auto* const y = static_cast<float*>(to->address());
    return std::vector<RankParts>{{x, y, {half, half}},
                                  {x + half, y + half, {count - half, count - half}}};
  };
  check("a gather of two operands",
        [&] { one->gather_parts(*stream, "gather", DType::float32, halves()); });
  check("a scattered sum of two operands",
        [&] { one->scatter_parts(*stream, "scatter", DType::float32, halves(), Reduction::sum); });
  check("an exchange over one rank", [&] { one->all_to_all(*stream, "exchange", elements); });
  check("a broadcast over one rank", [&] { one->broadcast(*stream, "broadcast", elements, 0); });

  stream->begin_capture();
  one->all_reduce(*stream, "captured sum", elements, Reduction::sum);
  {
    const std::unique_ptr<Captured> captured = stream->end_capture();
    check("a captured sum", [&] {
      for (int i = 0; i < 3; ++i) stream->launch(*captured);
      one->watch(*stream, "captured sum");
    });
  }

  for (int i = 0; i < 50; ++i) one->all_reduce(*stream, "sum", elements, Reduction::sum);
  const auto begin = Clock::now();
  one->abort("the check wants it");
  device->synchronize();
  report.value("aborting", std::chrono::duration<double>(Clock::now() - begin).count(), "s");
  report.passed("a communicator aborted while it works");
}

}  // namespace tandem::gpu_check
