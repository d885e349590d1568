// Twenty training steps of small networks, exported by both PyTorch exporters, against PyTorch's
// losses.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/end_to_end/parity_support.h"

namespace tandem {
namespace {

using namespace testing;

struct ParityCase {
  std::string network;   // "mlp"
  std::string graph;     // "logits" | "loss": the model's output
  std::string exporter;  // "torchscript" | "dynamo"
  std::size_t optimizer = 0;
};

std::string name_of_case(const ParityCase& c) {
  const std::string optimizer = read_fixture(c.network)["optimizers"][c.optimizer]["name"];
  return c.network + "_" + c.graph + "_" + c.exporter + "_" + optimizer;
}

// The case's name in lists of tests.
void PrintTo(const ParityCase& c, std::ostream* stream) { *stream << name_of_case(c); }

std::vector<ParityCase> parity_cases() {
  std::vector<ParityCase> cases;
  for (const char* network : {"mlp", "lenet5", "resnet18", "gpt", "conv_bn", "encoder",
                              "tied_decoder", "lstm", "gru", "tagger", "cell_loop", "cell_scan"}) {
    const Json fixture = read_fixture(network);
    for (const auto& [graph, files] : fixture["files"].items()) {
      for (const auto& [exporter, file] : files.items()) {
        for (std::size_t i = 0; i < fixture["optimizers"].size(); ++i) {
          if (graph == "loss" && i > 0) continue;
          cases.push_back({network, graph, exporter, i});
        }
      }
    }
  }
  return cases;
}

class ParityTest : public ::testing::TestWithParam<ParityCase> {};

TEST_P(ParityTest, LossesAreThoseOfPyTorch) {
  const ParityCase& c = GetParam();
  const Json fixture = read_fixture(c.network);
  const Json& optimizer = fixture["optimizers"][c.optimizer];
  const std::int64_t batch = fixture["batch"];
  const auto feeds = read_feeds(fixture);
  api::Session session(parity_folder() + fixture["files"][c.graph][c.exporter].get<std::string>(),
                       batch, settings_of(optimizer, fixture, c.graph == "loss"));
  for (int step = 0; step < fixture["steps"].get<int>(); ++step) {
    api::Tensors fed;
    for (const auto& [name, tensor] : feeds) fed[name] = array_of(tensor, step * batch, batch);
    const double loss = session.step(fed);
    const double expected = optimizer["losses"][step];
    ASSERT_NEAR(loss, expected, 1e-3 * std::abs(expected)) << "step " << step + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ParityTest, ::testing::ValuesIn(parity_cases()),
                         [](const auto& info) { return name_of_case(info.param); });

class FinalParametersTest : public ::testing::TestWithParam<const char*> {};

/// Compares sums and sums of squares of all parameters after 20 steps.
TEST_P(FinalParametersTest, AreThoseOfPyTorch) {
  const Json fixture = read_fixture(GetParam());
  const auto final = fixture["final"].items().begin();
  const Json* optimizer = nullptr;
  for (const Json& o : fixture["optimizers"]) {
    if (o["name"] == final.key()) optimizer = &o;
  }
  ASSERT_NE(optimizer, nullptr);
  const std::int64_t batch = fixture["batch"];
  const auto feeds = read_feeds(fixture);
  const Json& files = fixture["files"]["logits"];
  const char* const exporter = files.contains("dynamo") ? "dynamo" : "torchscript";
  const std::string model = parity_folder() + files[exporter].get<std::string>();
  api::Session session(model, batch, settings_of(*optimizer, fixture, false));
  for (int step = 0; step < fixture["steps"].get<int>(); ++step) {
    api::Tensors fed;
    for (const auto& [name, tensor] : feeds) fed[name] = array_of(tensor, step * batch, batch);
    session.step(fed);
  }
  const auto parameters = session.parameters();
  for (const auto& [name, sums] : final.value().items()) {
    double sum = 0, squares = 0;
    ASSERT_TRUE(parameters.count(name)) << name;
    for (const float x : parameters.at(name).floats()) {
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    EXPECT_NEAR(sum, sums[0].get<double>(), 2e-3 * std::sqrt(squares) + 1e-3)
        << name;  // key biases only accumulate rounding
    EXPECT_NEAR(squares, sums[1].get<double>(), 1e-3 * squares + 1e-5) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, FinalParametersTest,
                         ::testing::Values("mlp", "gpt", "lenet5", "lstm", "gru", "cell_loop"));

}  // namespace
}  // namespace tandem
