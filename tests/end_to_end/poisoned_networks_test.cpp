// NaN and infinities through whole training steps and through each node that lowering made: results
// are not finite in the same places as in the imported graph, run node by node on reference
// kernels. One element is poisoned in each feed and in each state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "tests/end_to_end/policy_cases.h"
#include "tests/harness/folders.h"
#include "tests/harness/poisoned_case.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using Tensors = std::map<std::string, HostTensor>;

/// Small bench networks: those of the fixtures, and the models of the examples.
std::vector<PolicyCase> networks_to_poison() {
  std::vector<PolicyCase> all = policy_networks();
  for (const char* more : {"resnet18", "digits", "wide_deep", "dlrm"}) all.push_back({more, 1});
  return all;
}

HostTensor random_numbers(const TensorType& type, std::uint64_t below) {
  std::mt19937_64 random(5);
  HostTensor numbers(TensorType{DType::float64, type.shape});
  for (double& x : numbers.as<double>()) {
    x = is_float(type.dtype) ? static_cast<double>(random() % 1000) / 1000
                             : static_cast<double>(random() % below);
  }
  return numbers.converted(type.dtype);
}

NetworkCase network_of(const PolicyCase& of) {
  constexpr std::int64_t batch = 8;
  NetworkCase network;
  const auto feed = [&](const std::string& name, DType dtype, Shape shape, std::uint64_t below) {
    network.feeds[name] = random_numbers({dtype, std::move(shape)}, below);
  };
  std::string loss = "binary_cross_entropy\", logits=\"logits\", labels=\"label\"";
  if (of.network == "digits") {
    loss = "softmax_cross_entropy\", logits=\"logits\", labels=\"labels\"";
    feed("image", DType::float32, {batch, 1, 8, 8}, 0);
    feed("labels", DType::int64, {batch}, 10);
  } else if (of.network == "wide_deep") {
    feed("ids", DType::int64, {batch, 39}, 5000);
    feed("label", DType::float32, {batch}, 0);
  } else if (of.network == "dlrm") {
    feed("dense", DType::float32, {batch, 13}, 0);
    feed("categories", DType::int64, {batch, 26}, 100);
    feed("label", DType::float32, {batch}, 0);
  } else {
    return NetworkCase(of);
  }
  network.model = source_folder() + "/models/" + of.network + "/model.onnx";
  network.batch = batch;
  network.settings = {"optimizer.kind=adam", "optimizer.lr=1e-3",
                      "loss.terms=[{name=\"loss\", kind=\"" + loss + "}]"};
  return network;
}

std::int64_t count_not_finite(const HostTensor& x) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) count += !std::isfinite(x.number(i));
  return count;
}

/// The loss as "loss", and all states, after a step of the graph on reference kernels.
Tensors reference_step(const Graph& graph, const Tensors& states, const Tensors& fed) {
  std::vector<std::pair<std::string, HostTensor>> feeds(states.begin(), states.end());
  for (const NamedValue& input : graph.inputs) {
    const auto found = fed.find(input.name);
    HostTensor value;
    if (found != fed.end()) {
      value = found->second.converted(graph.type(input.value).dtype);
    } else {  // a step's number, a learning rate
      const HostTensor number = HostTensor::from<double>({}, {input.name == step_input ? 1 : 1e-3});
      value = number.converted(graph.type(input.value).dtype);
    }
    feeds.emplace_back(input.name, std::move(value));
  }
  std::vector<std::string> names;
  std::vector<ValueId> wanted;
  for (const NamedValue& output : graph.outputs) {
    if (output.name != "loss") continue;
    names.push_back(output.name);
    wanted.push_back(output.value);
  }
  for (const State& state : graph.states) {
    names.push_back(state.name);
    wanted.push_back(state.final);
  }
  const std::vector<HostTensor> values = evaluate(graph, feeds, wanted);
  Tensors results;
  for (std::size_t i = 0; i < names.size(); ++i) results[names[i]] = values[i];
  return results;
}

class PoisonedNetwork : public ::testing::TestWithParam<PolicyCase> {
 protected:
  PoisonedNetwork() : network_(network_of(GetParam())) {
    PlacedOptions options;
    for (const GraphPass& pass : forward_passes()) options.without.push_back(pass.name);
    plain_.reset(new PlacedTraining(network_.training("", {}, options)));
  }

  static Tensors states_of(PlacedTraining& training) {
    Tensors states;
    for (const std::string& name : training.states().names())
      states[name] = training.states().read(name).clone();
    return states;
  }

  /// Poisons one element of each tensor in turn; compares the optimized program with the plain
  /// graph.
  void check(const std::string& rules, const std::vector<std::string>& more) {
    const TemporaryFolder folder;
    const std::string policy = folder / "policy.toml";
    if (!rules.empty()) {
      std::ofstream(policy) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = "
                               "\"256MiB\" } }\nrules = [\n"
                            << rules << "\n]\n";
    }
    PlacedTraining training = network_.training(rules.empty() ? "" : policy, more);
    const Tensors states = states_of(training);
    const Tensors fed = network_.batch_of(0);
    std::uint64_t turn = 0;
    const auto poison_in = [&](const Tensors& tensors, const std::string& name) {
      const HostTensor& tensor = tensors.at(name);
      if (!is_float(tensor.dtype()) || tensor.type().elements() == 0) return;
      const Poison& poison = poisons[turn % 3 == 2 ? 1 : 0];  // every third is infinity
      SCOPED_TRACE(name + " " + poison.name);
      const HostTensor bad = poisoned(tensor, poisoned_place(tensor, turn++), poison.value);
      Tensors bad_states = states, bad_fed = fed;
      (&tensors == &fed ? bad_fed : bad_states)[name] = bad;
      expect_not_finite_as_in_plain(training, bad_states, bad_fed);
    };
    for (const auto& [name, tensor] : fed) poison_in(fed, name);
    // A step on reference kernels takes long: only some of the states, at even distances.
    std::vector<std::string> names;
    for (const auto& [name, tensor] : states) names.push_back(name);
    constexpr std::size_t most = 12;
    const std::size_t step = (names.size() + most - 1) / most;
    for (std::size_t i = 0; i < names.size(); i += step) poison_in(states, names[i]);
    EXPECT_GT(turn, 3u);
  }

  NetworkCase network_;
  std::unique_ptr<PlacedTraining> plain_;

 private:
  void expect_not_finite_as_in_plain(PlacedTraining& training, const Tensors& states,
                                     const Tensors& fed) {
    for (const auto& [name, value] : states) training.states().write(name, value);
    const double loss = training.step(fed);
    training.synchronize();
    const Tensors got = states_of(training);
    const Tensors expected = reference_step(plain_->graph(), states, fed);
    EXPECT_EQ(std::isfinite(loss), count_not_finite(expected.at("loss")) == 0) << "loss " << loss;
    for (const auto& [name, value] : got) {
      const auto wanted = expected.find(name);
      ASSERT_NE(wanted, expected.end()) << name;
      std::int64_t differing = 0;
      for (std::int64_t i = 0; i < value.type().elements(); ++i) {
        differing += std::isfinite(value.number(i)) != std::isfinite(wanted->second.number(i));
      }
      EXPECT_EQ(differing, 0) << name << ": " << count_not_finite(value) << " instead of "
                              << count_not_finite(wanted->second) << " of "
                              << value.type().elements() << " are not finite";
    }
  }
};

TEST_P(PoisonedNetwork, StepIsNotFiniteWhereThePlainGraphIs) { check("", {}); }

TEST_P(PoisonedNetwork, OnTheEmulatedDeviceToo) { check("{ at = \"**\", on = \"gpu\" }", {}); }

/// Runs each node of the program that is not on a reference kernel with a step's inputs, one
/// element poisoned.
TEST_P(PoisonedNetwork, NodesAreNotFiniteWhereTheReferenceIs) {
  PlacedTraining training = network_.training();
  const Lowered& lowered = training.program().lowered();
  const Graph& graph = lowered.graph;
  Tensors fed = network_.batch_of(0);
  std::vector<std::pair<std::string, HostTensor>> feeds;
  for (const NamedValue& input : graph.inputs) {
    const auto found = fed.find(input.name);
    const HostTensor number = HostTensor::from<double>({}, {1});
    feeds.emplace_back(
        input.name,
        (found != fed.end() ? found->second : number).converted(graph.type(input.value).dtype));
  }
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    all.push_back(ValueId{static_cast<std::int32_t>(i)});
  const std::vector<HostTensor> values = evaluate(graph, feeds, all);

  PoisonExceptions exceptions;
  std::uint64_t turn = 0;
  int checked = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Kernel* kernel = lowered.nodes[n].kernel;
    if (kernel == nullptr || kernel->reference) continue;
    const Kernel* reference = choose_kernel(reference_list(), plain_request(graph, node));
    ASSERT_NE(reference, nullptr) << node.op->name;
    RunOptions options;
    if (kernel->refuse && kernel->refuse(plain_request(graph, node))) options.only_output = 0;
    std::vector<HostTensor> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id ? values[id.index] : HostTensor());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      // Kernels are prepared for the value of a constant, which must not change.
      if (!node.inputs[i] || graph.is_constant(node.inputs[i])) continue;
      if (!is_float(inputs[i].dtype()) || inputs[i].type().elements() == 0) continue;
      for (const Poison& poison : poisons) {
        const std::string name = node.op->inputs[std::min(i, node.op->inputs.size() - 1)].name;
        const std::string what =
            node.op->name + " " + kernel->name + " " + name + " " + poison.name + ": ";
        SCOPED_TRACE(node.path + ", " + what + (node.body ? to_text(*node.body) : ""));
        std::vector<HostTensor> bad = inputs;
        bad[i] = poisoned(inputs[i], poisoned_place(inputs[i], turn++), poison.value);
        const auto expected = run_node(*reference, graph, node, bad);
        const auto got = run_node(*kernel, graph, node, bad, options);
        ++checked;
        for (const std::string& deviation :
             deviations(got, expected, std::numeric_limits<double>::infinity())) {
          EXPECT_TRUE(exceptions.allows(what + deviation)) << what << deviation;
        }
      }
    }
  }
  EXPECT_GT(checked, 10);
}

INSTANTIATE_TEST_SUITE_P(Networks, PoisonedNetwork, ::testing::ValuesIn(networks_to_poison()),
                         [](const auto& param) { return param.param.network; });

}  // namespace
}  // namespace tandem::testing
