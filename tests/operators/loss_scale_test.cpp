// LossScale and Adam against PyTorch's GradScaler over scripted gradients, some of them not finite.
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/harness/folders.h"
#include "tests/operators/network_cases.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<HostTensor>;

Json fixture() {
  std::ifstream file(source_folder() + "/tests/data/loss_scale.json");
  return Json::parse(file);
}

HostTensor integer_scalar(std::int64_t value) {
  return HostTensor::from<std::int64_t>({}, {value});
}

HostTensor floats_of(const Json& values) {
  const auto numbers = values.get<std::vector<float>>();
  return HostTensor::from<float>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// The gradient times the scale, as the backward pass makes it.
HostTensor scaled(const Json& gradient, float scale) {
  std::vector<float> values;
  for (const Json& text : gradient) values.push_back(std::stof(text.get<std::string>()) * scale);
  return HostTensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

HostTensor sum_of_squares(const HostTensor& x) {
  float sum = 0;
  for (const float v : x.as<float>()) sum += v * v;
  return scalar_of(sum);
}

struct Inputs {
  Tensors scale;   // scale, good_steps, skipped_steps, step, sum
  Tensors update;  // master, grad, exp_avg, exp_avg_sq, lr, step, scale, skip
};

Inputs start_of(const Json& file) {
  const HostTensor master = floats_of(file["start"]);
  const HostTensor zeros(master.type());
  return {{scalar_of(65536), integer_scalar(0), integer_scalar(0), integer_scalar(1), scalar_of(0)},
          {master, zeros, zeros, zeros, scalar_of(file["rate"].get<float>()), integer_scalar(1),
           scalar_of(1), HostTensor::from<bool>({}, {false})}};
}

void check_run(const Json& file, const Json& run, const Kernel& scaling, const Graph& scale_graph,
               const Kernel& updating, const Graph& update_graph) {
  Inputs now = start_of(file);
  std::int64_t step = 0, skipped = 0;
  for (const Json& expected : run["steps"]) {
    SCOPED_TRACE("step " + std::to_string(++step));
    now.update[1] = scaled(expected["gradient"], now.scale[0].as<float>()[0]);
    now.scale[3] = integer_scalar(step);
    now.scale[4] = sum_of_squares(now.update[1]);
    const Tensors made = run_node(scaling, scale_graph, scale_graph.nodes[0], now.scale);
    std::copy_n(made.begin(), 3, now.scale.begin());
    now.update[5] = made[5];
    now.update[6] = made[3];
    now.update[7] = made[4];
    const Tensors next = run_node(updating, update_graph, update_graph.nodes[0], now.update);

    const bool skips = expected["norm"].is_null();
    skipped += skips;
    EXPECT_EQ(made[0].as<float>()[0], expected["scale"].get<float>());
    EXPECT_EQ(made[1].as<std::int64_t>()[0], expected["good_steps"].get<std::int64_t>());
    EXPECT_EQ(made[2].as<std::int64_t>()[0], skipped);
    EXPECT_EQ(made[4].as<bool>()[0], skips);
    if (skips) {
      EXPECT_EQ(made[3].as<float>()[0], 0);
      EXPECT_TRUE(same_bytes(next[0], now.update[0]));
      EXPECT_TRUE(same_bytes(next[1], now.update[2]) && same_bytes(next[2], now.update[3]));
    } else {
      EXPECT_EQ(made[5].as<std::int64_t>()[0], expected["taken"].get<std::int64_t>());
      const double norm = expected["norm"].get<double>();
      EXPECT_NEAR(made[6].as<float>()[0], norm, 1e-6 * norm);
    }
    EXPECT_EQ(compare(next[0], floats_of(expected["weight"]), 2e-6), "") << "weight";
    EXPECT_EQ(compare(next[1], floats_of(expected["exp_avg"]), 2e-6), "") << "exp_avg";
    EXPECT_EQ(compare(next[2], floats_of(expected["exp_avg_sq"]), 2e-6), "") << "exp_avg_sq";
    now.update[0] = next[0];
    now.update[2] = next[1];
    now.update[3] = next[2];
  }
  EXPECT_EQ(skipped, 4);
}

TEST(LossScale, FollowsGradScaler) {
  const Json file = fixture();
  ASSERT_EQ(file["runs"].size(), 2u);
  for (const Json& run : file["runs"]) {
    const Inputs start = start_of(file);
    const Graph scale_graph =
        single_node("LossScale", start.scale,
                    {{"max_norm", run["max_norm"].get<double>()},
                     {"growth_interval", file["growth_interval"].get<std::int64_t>()}});
    const Graph update_graph = single_node("AdamUpdate", start.update, {});
    each_kernel(scale_graph, [&](const Kernel& scaling) {
      each_kernel(update_graph, [&](const Kernel& updating) {
        check_run(file, run, scaling, scale_graph, updating, update_graph);
      });
    });
  }
}

TEST(LossScale, AFixedScaleStaysAndStillSkips) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensors inputs{scalar_of(512),     integer_scalar(7), integer_scalar(2),
                       integer_scalar(10), scalar_of(4),      scalar_of(infinity)};
  const Graph graph = single_node("LossScale", inputs, {{"growth_interval", std::int64_t{0}}});
  each_kernel(graph, [&](const Kernel& kernel) {
    const Tensors y = run_node(kernel, graph, graph.nodes[0], inputs);
    EXPECT_EQ(y[0].as<float>()[0], 512);
    EXPECT_EQ(y[1].as<std::int64_t>()[0], 0);
    EXPECT_EQ(y[2].as<std::int64_t>()[0], 3);
    EXPECT_TRUE(y[4].as<bool>()[0]);
    EXPECT_EQ(y[5].as<std::int64_t>()[0], 8);
  });
}

// Like PyTorch, keeps a scale whose growth would not be finite.
TEST(LossScale, GrowsToNoInfinity) {
  const Tensors inputs{scalar_of(0x1p127f), integer_scalar(0), integer_scalar(0), integer_scalar(1),
                       scalar_of(4)};
  const Graph graph = single_node("LossScale", inputs, {{"growth_interval", std::int64_t{1}}});
  each_kernel(graph, [&](const Kernel& kernel) {
    const Tensors y = run_node(kernel, graph, graph.nodes[0], inputs);
    EXPECT_EQ(y[0].as<float>()[0], 0x1p127f);
    EXPECT_EQ(y[1].as<std::int64_t>()[0], 0);
  });
}

}  // namespace
}  // namespace tandem::testing
