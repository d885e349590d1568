#include "tests/cuda/gpu_check/networks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "tests/end_to_end/parity_support.h"

namespace tandem::gpu_check {
namespace {

constexpr int steps_of_data = 20;

Network fixture(const std::string& parity, const std::string& name, std::size_t optimizer) {
  const testing::Json json = testing::read_fixture(name, parity);
  Network network;
  network.name = name + " with " + json["optimizers"][optimizer]["name"].get<std::string>();
  network.model = parity + json["files"]["logits"]["torchscript"].get<std::string>();
  network.batch = json["batch"];
  network.settings = testing::settings_of(json["optimizers"][optimizer], json, false);
  network.plain_settings = testing::settings_of(json["optimizers"][0], json, false);
  network.feeds = testing::read_feeds(json, parity);
  return network;
}

Network wide_deep(const std::string& model) {
  constexpr std::int64_t batch = 64, fields = 39, rows = 5000;
  Network network;
  network.name = "wide_deep with ftrl and lazy_adam";
  network.model = model;
  network.batch = batch;
  const std::string loss =
      "loss.terms=[{name=\"loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}]";
  network.settings = {
      "optimizer.kind=adam", "optimizer.lr=5e-4",
      "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, beta=0.0, "
      "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
      loss};
  network.plain_settings = {"optimizer.kind=sgd", "optimizer.lr=0.1", loss};
  HostTensor ids(TensorType{DType::int64, {steps_of_data * batch, fields}});
  HostTensor label(TensorType{DType::float32, {steps_of_data * batch}});
  std::uint32_t state = 9;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (std::int64_t& id : ids.as<std::int64_t>()) {
    const std::int64_t all = next() % rows, few = next() % 40;  // some rows occur in most samples
    id = next() % 2 == 0 ? all : few;
  }
  for (float& y : label.as<float>()) y = next() % 4 == 0 ? 1.0f : 0.0f;
  network.feeds = {{"ids", ids}, {"label", label}};
  return network;
}

}  // namespace

std::map<std::string, HostTensor> Network::batch_of(int step) const {
  std::map<std::string, HostTensor> fed;
  for (const auto& [name, tensor] : feeds) {
    TensorType type = tensor.type();
    type.shape[0] = batch;
    HostTensor part(type);
    std::memcpy(part.data(),
                static_cast<const std::byte*>(tensor.data()) +
                    static_cast<std::size_t>(step) * part.bytes(),
                part.bytes());
    fed[name] = std::move(part);
  }
  return fed;
}

std::vector<Network> check_networks(const std::string& fixtures) {
  const std::string parity = fixtures + "/tests/data/parity/";
  const std::string tables = fixtures + "/models/wide_deep/model.onnx";
  if (!std::filesystem::is_directory(parity) || !std::filesystem::exists(tables))
    throw std::runtime_error("no fixtures in " + fixtures +
                             ": expected tests/data/parity and models/wide_deep/model.onnx");
  return {fixture(parity, "mlp", 0),    fixture(parity, "conv_bn", 1),
          fixture(parity, "lenet5", 3), fixture(parity, "encoder", 2),
          fixture(parity, "gpt", 4),    wide_deep(tables)};
}

std::string policy_text(const std::string& use, const std::vector<std::string>& rules) {
  std::string text = "policy = 1\ndevices = { gpu = { use = \"" + use + "\" } }\nrules = [\n";
  for (const std::string& rule : rules) text += "  { " + rule + " },\n";
  return text + "]\n";
}

std::string write_policy(const std::string& folder, const std::string& name,
                         const std::string& text) {
  const std::string path = folder + "/" + name + ".toml";
  std::ofstream(path) << text;
  return path;
}

std::vector<double> session_losses(const Network& network, const std::vector<std::string>& settings,
                                   const std::string& policy, int steps) {
  std::vector<std::string> keys = settings;
  if (!policy.empty()) keys.push_back("policy=" + testing::Json(policy).dump());
  api::Session session(network.model, network.batch, keys);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    api::Tensors fed;
    for (const auto& [name, tensor] : network.feeds)
      fed[name] = testing::array_of(tensor, step * network.batch, network.batch);
    losses.push_back(session.step(fed));
  }
  return losses;
}

double limit_of_losses(const RunsBeside& runs) {
  constexpr double eta = 1e-5;
  const double step =
      runs.adaptive ? 2 * std::sqrt(runs.parameters) : runs.gradient_norm / (1 - runs.momentum);
  return eta * (1 + runs.steps * runs.rate * step * runs.gradient_norm / runs.loss);
}

double worst_difference(const std::vector<double>& a, const std::vector<double>& b,
                        std::size_t count) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (count == 0 || a.size() < count || b.size() < count) return infinity;
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = std::fabs(a[i] - b[i]) / std::max(std::fabs(b[i]), 1e-12);
    if (!std::isfinite(difference)) return infinity;
    worst = std::max(worst, difference);
  }
  return worst;
}

}  // namespace tandem::gpu_check
