// What only a real driver can show: copies that overlap kernels, captured graphs.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>

#include "tests/cuda/gpu_check/distance.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/cuda/gpu_check/timing.h"

namespace tandem::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int repeats = 3;  // the shortest run counts, since others may use the machine

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// One thing that keeps one queue, or the host, busy.
struct Load {
  std::string name;
  cudaStream_t stream = nullptr;  // null: the host's own work
  std::function<void()> enqueue;
  double alone = 0;  // seconds when it runs by itself
  // When all loads run at once: seconds since the first one began.
  double begin = 0, end = 0;
};

double wall_seconds(CheckGpu& gpu, std::vector<Load*> loads) {
  gpu.check(gpu.runtime().synchronize_gpu(), "waiting for the GPU");
  const auto begin = Clock::now();
  for (Load* load : loads) {
    if (load->stream != nullptr) load->enqueue();
  }
  for (Load* load : loads) {
    if (load->stream == nullptr) load->enqueue();
  }
  gpu.check(gpu.runtime().synchronize_gpu(), "waiting for the GPU");
  gpu.synchronize();
  return seconds_between(begin, Clock::now());
}

/// How many runs of a load that takes `one` seconds take `wanted` seconds.
int times_of(double one, double wanted) {
  return std::clamp(static_cast<int>(wanted / std::max(one, 1e-9) + 0.5), 1, 4096);
}

void write_trace(const std::string& path, const std::vector<Load>& loads) {
  Json events = Json::array();
  for (std::size_t i = 0; i < loads.size(); ++i) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", i + 1},
                      {"args", {{"name", loads[i].name}}}});
    events.push_back({{"name", loads[i].name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", i + 1},
                      {"ts", loads[i].begin * 1e6},
                      {"dur", (loads[i].end - loads[i].begin) * 1e6}});
  }
  std::ofstream(path) << Json{{"traceEvents", events}}.dump() << "\n";
}

void spin(double seconds) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < until) {
  }
}

void check_overlap(CheckGpu& gpu, const Options& options, Report& report,
                   const std::string& check) {
  const std::size_t bytes = std::size_t{options.small ? 1u : 32u} << 20;
  const std::int64_t n = options.small ? 32 : 2048;
  const double wanted = options.small ? 1e-3 : 30e-3;
  cuda::Runtime& runtime = gpu.runtime();
  gpu.operands().clear();
  const PreparedProduct product(gpu, n, n, n, DType::float32);
  const Pinned from(gpu, bytes), to(gpu, bytes);
  void* const in = gpu.operands().room(bytes);
  void* const out = gpu.operands().room(bytes);
  const OwnStream copy_in(gpu), copy_out(gpu);
  int products = 1, copies_in = 1, copies_out = 1;
  double host = wanted;
  std::vector<Load> loads(4);
  loads[0] = {"products", gpu.stream(), [&] {
                for (int i = 0; i < products; ++i) product.run();
              }};
  loads[1] = {"host to GPU", copy_in.get(), [&] {
                for (int i = 0; i < copies_in; ++i)
                  gpu.check(runtime.copy(in, from.data(), bytes, copy_in.get()), "a copy");
              }};
  loads[2] = {"GPU to host", copy_out.get(), [&] {
                for (int i = 0; i < copies_out; ++i)
                  gpu.check(runtime.copy(to.data(), out, bytes, copy_out.get()), "a copy");
              }};
  loads[3] = {"host", nullptr, [&] { spin(host); }};
  int* const counts[] = {&products, &copies_in, &copies_out};
  for (int i = 0; i < 3; ++i) {
    (void)wall_seconds(gpu, {&loads[i]});  // warms up
    *counts[i] = times_of(wall_seconds(gpu, {&loads[i]}), wanted);
  }
  double sum = 0;
  for (Load& load : loads) {
    load.alone = wall_seconds(gpu, {&load});
    for (int repeat = 1; repeat < repeats; ++repeat)
      load.alone = std::min(load.alone, wall_seconds(gpu, {&load}));
    report.value(load.name + " alone", load.alone * 1e3, "ms");
    sum += load.alone;
  }
  // How the bus divides itself between the directions depends on the machine, so the run of
  // everything is compared with both copies at once.
  double copies = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat)
    copies = std::min(copies, wall_seconds(gpu, {&loads[1], &loads[2]}));
  report.value("both copies at once", copies * 1e3, "ms");
  Timer start(gpu);
  Timer begins[3] = {Timer(gpu), Timer(gpu), Timer(gpu)};
  Timer ends[3] = {Timer(gpu), Timer(gpu), Timer(gpu)};
  double wall = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    gpu.check(runtime.synchronize_gpu(), "waiting for the GPU");
    start.record(gpu.stream());
    const auto begin = Clock::now();
    for (int i = 0; i < 3; ++i) {
      begins[i].record(loads[i].stream);
      loads[i].enqueue();
      ends[i].record(loads[i].stream);
    }
    const auto host_begin = Clock::now();
    loads[3].enqueue();
    const auto host_end = Clock::now();
    gpu.check(runtime.synchronize_gpu(), "waiting for the GPU");
    gpu.synchronize();
    const double now = seconds_between(begin, Clock::now());
    if (now >= wall) continue;
    wall = now;
    for (int i = 0; i < 3; ++i) {
      loads[i].begin = begins[i].seconds_since(start);
      loads[i].end = ends[i].seconds_since(start);
    }
    loads[3].begin = seconds_between(begin, host_begin);
    loads[3].end = seconds_between(begin, host_end);
  }
  write_trace(options.out + "/overlap_trace.json", loads);
  report.value("one after the other", sum * 1e3, "ms");
  report.value("at once", wall * 1e3, "ms");
  judge_overlap({.products = loads[0].alone,
                 .copy_in = loads[1].alone,
                 .copy_out = loads[2].alone,
                 .host = loads[3].alone,
                 .copies = copies,
                 .all = wall},
                check, report);
}

void check_captured(CheckGpu& gpu, Report& report, const std::string& check) {
  cuda::Runtime& runtime = gpu.runtime();
  gpu.operands().clear();
  const PreparedProduct product(gpu, 129, 65, 33, DType::float32);
  product.run();
  gpu.synchronize();
  const HostTensor direct = product.result();
  product.poison();
  gpu.check(runtime.begin_capture(gpu.stream()), "beginning a capture");
  for (int i = 0; i < 3; ++i) product.run();
  cudaGraphExec_t graph = nullptr;
  gpu.check(runtime.end_capture(gpu.stream(), graph), "ending a capture");
  gpu.synchronize();
  if (distance(product.result(), direct) == 0) report.failed(check, "it ran while it was captured");
  for (int i = 0; i < 10; ++i)
    gpu.check(runtime.launch_graph(graph, gpu.stream()), "launching a graph");
  gpu.synchronize();
  gpu.check(runtime.destroy_graph(graph), "destroying a graph");
  const HostTensor captured = product.result();
  if (std::memcmp(direct.data(), captured.data(), direct.bytes()) == 0) {
    report.passed(check);
  } else {
    report.failed(check, "the results differ in their bits");
  }
}

/// Limit for the time of all loads over that of the longest, where they share nothing but the GPU's
/// memory. Both copies take at most 2 * 64 GB/s (PCIe 5, 16 lanes) of 1.5 TB/s or more: 0.09;
/// clocks that vary under load and starting the loads: 0.05. Two loads that exclude each other take
/// 2.
constexpr double most_of_longest = 1.15;
/// As above, for copies in opposite directions, which share the bus, its acknowledgements and
/// the host's memory: 1 if they do not slow each other, 2 if they take turns. This is half way.
constexpr double most_of_copies = 1.5;

}  // namespace

void judge_overlap(const OverlapTimes& times, const std::string& check, Report& report) {
  report.measured("copies both ways at once, wall by the longer",
                  times.copies / std::max(times.copy_in, times.copy_out), most_of_copies);
  report.measured(check + ", wall by the longest of products, copies and host",
                  times.all / std::max({times.products, times.copies, times.host}),
                  most_of_longest);
}

void run_overlap(CheckGpu& gpu, const Options& options, Report& report) {
  const std::string check = "a kernel, copies both ways and the host at once";
  if (!is_wanted(options, check)) return;
  report.run(
      check, [&] { check_overlap(gpu, options, report, check); }, [&] { return gpu.is_broken(); });
}

void run_captured(CheckGpu& gpu, const Options& options, Report& report) {
  const std::string check = "a captured product, launched ten times";
  if (!is_wanted(options, check)) return;
  report.run(
      check, [&] { check_captured(gpu, report, check); }, [&] { return gpu.is_broken(); });
}

}  // namespace tandem::gpu_check
