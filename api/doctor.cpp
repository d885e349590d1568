// What this machine offers: processor, threads, measured rates, settings that hurt.
#include <chrono>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/engine.h"
#include "api/run_files.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Clock = std::chrono::steady_clock;

/// Best of some runs of a one-node graph over states of these shapes.
double best_seconds(const Engine& engine, Graph graph) {
  StateStore states;
  Program program(graph, place_everything(graph), engine.operators, engine.devices(), states,
                  make_arenas(), {});
  double best = 1e9;
  for (std::uint64_t i = 0; i < 8; ++i) {
    StepContext context;
    const auto start = Clock::now();
    program.run(context, i);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

State filled_state(const std::string& name, Shape shape) {
  State state;
  state.name = name;
  state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
  for (float& x : state.start.as<float>()) x = 0.5f;
  return state;
}

double gemm_gflops(const Engine& engine) {
  constexpr std::int64_t n = 1024;
  GraphBuilder g(engine.operators);
  g.set_scope({"doctor.matmul", Phase::forward, {}});
  const ValueId a = g.state(filled_state("a", {n, n})), b = g.state(filled_state("b", {n, n}));
  g.output("y", g.matmul(a, b));
  return 2.0 * n * n * n / best_seconds(engine, g.finish()) / 1e9;
}

/// In-place SGD: two reads and a write of 4 bytes an element.
double bandwidth_gb_s(const Engine& engine) {
  constexpr std::int64_t n = std::int64_t{32} << 20;
  GraphBuilder g(engine.operators);
  g.set_scope({"doctor.sgd", Phase::update, {}});
  const ValueId w = g.state(filled_state("w", {n})), dw = g.state(filled_state("dw", {n}));
  const std::vector<ValueId> made = g.node("SgdUpdate", {w,
                                                         dw,
                                                         {},
                                                         g.scalar(1e-3, DType::float32),
                                                         g.scalar(1, DType::int64),
                                                         g.scalar(1, DType::float32),
                                                         g.scalar(0, DType::boolean)});
  g.write_state(w, made[0]);
  return 12.0 * n / best_seconds(engine, g.finish()) / 1e9;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

Report doctor() {
  const Engine engine;
  const DeviceFacts& facts = engine.cpu->facts();
  const double gflops = gemm_gflops(engine), bandwidth = bandwidth_gb_s(engine);
  std::vector<std::string> warnings;
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (policy != nullptr && (std::string(policy) == "passive" || std::string(policy) == "PASSIVE")) {
    warnings.push_back(
        "OMP_WAIT_POLICY=passive costs about 60 us at every parallel region: unset it");
  }
  nlohmann::ordered_json json{{"version", version()},
                              {"devices",
                               {{{"name", "cpu"},
                                 {"processor", cpu_name()},
                                 {"features", facts.features},
                                 {"threads", facts.threads},
                                 {"memory_bytes", engine.cpu->memory_bytes()}}}},
                              {"gemm_gflops", gflops},
                              {"bandwidth_gb_s", bandwidth},
                              {"cuda", "not in this build"},
                              {"warnings", warnings}};
  std::string features;
  for (const std::string& feature : facts.features) features += " " + feature;
  Report report;
  report.json = json.dump(2);
  report.text = fmt::format(
      "tandem {}\ncpu       {}, {} threads,{}, {}\n"
      "measured  float32 products {:.0f} GF/s; in-place updates {:.1f} GB/s\ncuda      not in this "
      "build\n",
      version(), cpu_name(), facts.threads, features,
      bytes_text(static_cast<double>(engine.cpu->memory_bytes())), gflops, bandwidth);
  for (const std::string& warning : warnings) report.text += "warning   " + warning + "\n";
  return report;
}

}  // namespace tandem::api
