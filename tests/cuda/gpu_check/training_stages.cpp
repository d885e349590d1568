// Whole trainings: the GPU against the host, models split between both, and with graphs on and off.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include "api/program/policy_files.h"
#include "tests/cuda/gpu_check/counted_captures.h"
#include "tests/cuda/gpu_check/networks.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"

namespace tandem::gpu_check {
namespace {

constexpr double first_limit = 1e-4, all_limit = 1e-3, gradient_limit = 1e-4;
constexpr int first_steps = 5;
constexpr int plain_steps = 2;  // first steps, which run without graphs

template <class Check>
void each_network(const Options& options, Report& report, Check check) {
  for (const Network& network : check_networks(options.fixtures)) {
    if (!is_wanted(options, network.name)) continue;
    report.run(
        network.name, [&] { check(network); }, options.is_broken);
  }
}

std::string whole_policy(const Options& options) {
  return write_policy(options.out, "all_on_card",
                      policy_text(options.use, {"at = \"**\", on = \"gpu\""}));
}

using Tensors = std::map<std::string, std::vector<float>>;

Tensors parameters_of(const api::Session& session) {
  Tensors all;
  for (const auto& [name, array] : session.parameters()) {
    if (array.dtype() == DType::float32) all[name] = array.floats();
  }
  return all;
}

/// The change after one step of plain SGD: the gradients times the rate.
Tensors first_update(const Network& network, const std::string& policy) {
  std::vector<std::string> keys = network.plain_settings;
  if (!policy.empty()) keys.push_back("policy=" + testing::Json(policy).dump());
  api::Session session(network.model, network.batch, keys);
  Tensors before = parameters_of(session);
  api::Tensors fed;
  for (const auto& [name, tensor] : network.feeds)
    fed[name] = testing::array_of(tensor, 0, network.batch);
  session.step(fed);
  Tensors update = parameters_of(session);
  for (auto& [name, values] : update) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= before.at(name)[i];
  }
  return update;
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

/// The worst tensor's error, relative to the tensor's norm. Gradients that are nothing but
/// rounding, such as that of a bias before a normalisation, count as a thousandth of the largest.
double worst_update(const Tensors& a, const Tensors& b) {
  double largest = 0, worst = 0;
  for (const auto& [name, values] : b) largest = std::max(largest, norm_of(values));
  if (!(largest > 0) || a.size() != b.size()) return HUGE_VAL;
  for (const auto& [name, values] : b) {
    std::vector<float> difference = a.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) difference[i] -= values[i];
    const double found = norm_of(difference) / std::max(norm_of(values), 1e-3 * largest);
    if (!std::isfinite(found)) return HUGE_VAL;
    worst = std::max(worst, found);
  }
  return worst;
}

}  // namespace

void run_gradients(const Options& options, Report& report) {
  const std::string policy = whole_policy(options);
  each_network(options, report, [&](const Network& network) {
    report.measured(network.name + ", gradients of the first step",
                    worst_update(first_update(network, policy), first_update(network, "")),
                    gradient_limit);
    const std::vector<double> host = session_losses(network, network.settings, "", options.steps);
    const std::vector<double> gpu =
        session_losses(network, network.settings, policy, options.steps);
    const auto first = static_cast<std::size_t>(std::min(first_steps, options.steps));
    report.measured(network.name + ", first losses", worst_difference(gpu, host, first),
                    first_limit);
    report.measured(network.name + ", all losses", worst_difference(gpu, host, host.size()),
                    all_limit);
  });
}

namespace {

struct Names {
  std::vector<std::string> operators, parameters;
};

Names names_of(const Network& network) {
  api::PolicyOptions options;
  options.model = network.model;
  options.bind = {{"batch", network.batch}};
  Names names;
  const testing::Json listed = testing::Json::parse(api::policy_names(options, "", "graph").json);
  for (const testing::Json& row : listed["names"]) {
    const std::string path = row["path"];
    if (path.empty()) continue;
    (row["op"] == "parameter" ? names.parameters : names.operators).push_back(path);
  }
  return names;
}

std::string rule(const std::string& at, const std::string& key, const std::string& value) {
  return "at = \"" + at + "\", " + key + " = \"" + value + "\"";
}

struct Cut {
  std::string name;
  std::vector<std::string> rules;
};

std::vector<Cut> cuts_of(const Network& network) {
  const Names names = names_of(network);
  const std::string all = rule("**", "on", "gpu");
  Cut states{"optimizer on the host", {all, rule("**", "state", "cpu")}};
  Cut half{"first half on the host", {all}};
  for (std::size_t i = 0; i < names.operators.size() / 2; ++i)
    half.rules.push_back(rule(names.operators[i], "run", "cpu"));
  Cut mixed{"every third operator and every other parameter on the host", {all}};
  for (std::size_t i = 0; i < names.operators.size(); i += 3)
    mixed.rules.push_back(rule(names.operators[i], "run", "cpu"));
  for (std::size_t i = 0; i < names.parameters.size(); i += 2)
    mixed.rules.push_back(rule(names.parameters[i], "param", "cpu"));
  return {states, half, mixed};
}

}  // namespace

namespace {

/// The value of a key in the network's settings; `otherwise` if it has none.
std::string setting(const std::vector<std::string>& settings, const std::string& key,
                    const std::string& otherwise) {
  for (const std::string& text : settings) {
    if (text.starts_with(key + "=")) return text.substr(key.size() + 1);
  }
  return otherwise;
}

/// The limit for losses of a split run, which rounds partly like the host and partly like the GPU.
double cut_limit(const Network& network, double loss, int steps) {
  const double plain_rate = std::stod(setting(network.plain_settings, "optimizer.lr", "1"));
  RunsBeside runs;
  double squares = 0;
  for (const auto& [name, update] : first_update(network, "")) {
    const double norm = norm_of(update) / plain_rate;
    squares += norm * norm;
    runs.parameters += static_cast<double>(update.size());
  }
  runs.gradient_norm = std::sqrt(squares);
  runs.rate = std::stod(setting(network.settings, "optimizer.lr", "1"));
  runs.momentum = std::stod(setting(network.settings, "optimizer.momentum", "0"));
  runs.adaptive = setting(network.settings, "optimizer.kind", "").find("adam") != std::string::npos;
  runs.loss = loss;
  runs.steps = steps - 1;
  return limit_of_losses(runs);
}

}  // namespace

void run_partitions(const Options& options, Report& report) {
  const std::string whole = whole_policy(options);
  each_network(options, report, [&](const Network& network) {
    const int steps = std::min(first_steps, options.steps);
    const std::vector<double> expected = session_losses(network, network.settings, whole, steps);
    const double limit = cut_limit(network, expected.at(0), steps);
    for (const Cut& cut : cuts_of(network)) {
      const std::string policy =
          write_policy(options.out, "cut", policy_text(options.use, cut.rules));
      try {
        const auto found = session_losses(network, network.settings, policy, steps);
        report.measured(network.name + ", " + cut.name,
                        worst_difference(found, expected, expected.size()), limit);
      } catch (const std::exception& error) {
        report.failed(network.name + ", " + cut.name, error.what());
        if (options.is_broken()) return;
      }
    }
  });
}

namespace {

/// Losses of all steps and the bytes of all states after them.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<std::byte>> states;
  std::uint64_t launches = 0;  // launches of captured segments

  bool operator==(const Outcome& other) const {
    return losses.size() == other.losses.size() &&
           std::memcmp(losses.data(), other.losses.data(), losses.size() * sizeof(double)) == 0 &&
           states == other.states;
  }
};

Outcome train(const Network& network, const Options& options, bool capture) {
  Outcome outcome;
  auto launches = std::make_shared<std::uint64_t>(0);
  testing::PlacedOptions placed;
  placed.placing.make_device = [&](const ResolvedDevice& device,
                                   const std::shared_ptr<OrderChecker>& monitor) {
    CudaOptions gpu;
    gpu.name = device.name;
    gpu.capture = capture;
    gpu.monitor = monitor;
    return count_captures(options.make_gpu(gpu), launches);
  };
  std::vector<std::string> keys = network.settings;
  keys.push_back("policy=" + testing::Json(whole_policy(options)).dump());
  testing::PlacedTraining training(network.model, network.batch, keys, network.batch_of(0), placed);
  for (int step = 0; step < options.steps; ++step)
    outcome.losses.push_back(training.step(network.batch_of(step)));
  training.synchronize();
  for (const std::string& name : training.states().names()) {
    const HostTensor value = training.states().read(name);
    const auto* from = static_cast<const std::byte*>(value.data());
    outcome.states.emplace_back(from, from + value.bytes());
  }
  outcome.launches = *launches;
  return outcome;
}

}  // namespace

void run_graphs(const Options& options, Report& report) {
  each_network(options, report, [&](const Network& network) {
    const Outcome off = train(network, options, false), off_again = train(network, options, false);
    const std::string repeats = network.name + ", the same run twice";
    if (off == off_again) {
      report.passed(repeats);
    } else {
      report.failed(repeats, "losses or states differ in their bits");
    }
    const Outcome on = train(network, options, true);
    const std::string both = network.name + ", with graphs and without";
    report.value(network.name + ", graphs launched", static_cast<double>(on.launches), "");
    if (off.launches != 0) return report.failed(both, "graphs were launched with capture off");
    if (!(on == off)) return report.failed(both, "losses or states differ in their bits");
    if (options.steps <= plain_steps) return report.skipped(both, "too few steps for a graph");
    if (on.launches == 0) return report.failed(both, "no part of the step was captured");
    report.passed(both);
  });
}

}  // namespace tandem::gpu_check
