#include "api/timing/machine_rates.h"

#include <chrono>

#include "engine/graph/builder.h"
#include "engine/runtime/program.h"

namespace tandem::api {
namespace {

using Clock = std::chrono::steady_clock;

/// The best of several runs of a one-node graph over states of these shapes.
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

}  // namespace

double gemm_gflops(const Engine& engine) {
  constexpr std::int64_t n = 1024;
  GraphBuilder g(engine.operators);
  g.set_scope({"doctor.matmul", tandem::Phase::forward, {}});
  const ValueId a = g.state(filled_state("a", {n, n})), b = g.state(filled_state("b", {n, n}));
  g.output("y", g.matmul(a, b));
  return 2.0 * n * n * n / best_seconds(engine, g.finish()) / 1e9;
}

double bandwidth_gb_s(const Engine& engine) {
  constexpr std::int64_t n = std::int64_t{32} << 20;
  GraphBuilder g(engine.operators);
  g.set_scope({"doctor.sgd", tandem::Phase::update, {}});
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

}  // namespace tandem::api
