#include "engine/training/initialise.h"

#include <cmath>
#include <map>
#include <random>

#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"

namespace tandem {
namespace {

/// SplitMix64, seeded from the run's seed and the parameter's name.
class Random {
 public:
  Random(std::uint64_t seed, const std::string& name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

/// PyTorch's fans: [out, in, kernel...].
struct Fans {
  double in = 1, out = 1;
};
Fans fans_of(const Shape& shape) {
  if (shape.size() < 2) return {static_cast<double>(element_count(shape)), 1};
  double field = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) field *= static_cast<double>(shape[i]);
  return {shape[1] * field, shape[0] * field};
}

HostTensor initial(const InitRule& rule, std::uint64_t seed, const std::string& name,
                   const Shape& shape) {
  HostTensor tensor(TensorType{DType::float32, shape});
  Random random(seed, name);
  const Fans fans = fans_of(shape);
  auto uniform = [&](double bound) { return bound * (2 * random.uniform() - 1); };
  for (float& x : tensor.as<float>()) {
    double value = 0;
    switch (rule.kind) {
      case InitKind::zeros:
        break;
      case InitKind::ones:
        value = 1;
        break;
      case InitKind::constant:
        value = rule.value;
        break;
      case InitKind::normal:
        value = rule.mean + rule.std * random.normal();
        break;
      case InitKind::uniform:
        value = rule.low + (rule.high - rule.low) * random.uniform();
        break;
      case InitKind::kaiming_uniform:
        value = uniform(std::sqrt(6 / fans.in));
        break;
      case InitKind::kaiming_normal:
        value = std::sqrt(2 / fans.in) * random.normal();
        break;
      case InitKind::xavier_uniform:
        value = uniform(std::sqrt(6 / (fans.in + fans.out)));
        break;
      case InitKind::xavier_normal:
        value = std::sqrt(2 / (fans.in + fans.out)) * random.normal();
        break;
    }
    x = static_cast<float>(value);
  }
  return tensor;
}

Diagnostic at(const Where& where, std::string message, std::string path = "") {
  Diagnostic d;
  d.message = std::move(message);
  d.file = where.file;
  d.line = where.line;
  d.column = where.column;
  d.path = std::move(path);
  return d;
}

std::map<std::string, HostTensor> read_weights(const std::string& path) {
  std::map<std::string, HostTensor> weights;
  if (path.ends_with(".npz")) {
    for (const NamedTensor& t : read_npz(path)) weights[t.name] = t.tensor;
  } else {
    const SafetensorsFile file(path);
    for (const NamedTensor& t : file.tensors()) weights[t.name] = t.tensor;
    for (const auto& [key, name] : file.metadata()) {  // tied weights under their other names
      if (const HostTensor* tensor = file.find(name); tensor && key.starts_with("alias:"))
        weights.emplace(key.substr(6), *tensor);
    }
  }
  return weights;
}

}  // namespace

std::vector<std::string> initialise_parameters(const ParametersConfig& config, std::uint64_t seed,
                                               const Graph& graph, StateStore& states) {
  std::vector<std::string> notes;
  std::vector<Diagnostic> problems;
  for (const InitRule& rule : config.init) {
    const Selector selector(rule.at);
    int matched = 0;
    for (const State& state : graph.states) {
      if (state.kind != StateKind::parameter || !selector.covers_parameter(state.path, state.name))
        continue;
      states.write(state.name, initial(rule, seed, state.name, state.start.shape()));
      ++matched;
    }
    if (matched == 0)
      problems.push_back(at(rule.where, "\"" + rule.at + "\" matches no parameter"));
    notes.push_back("initialised " + std::to_string(matched) + " parameters: " + rule.at);
  }
  for (const LoadRule& rule : config.load) {
    const std::map<std::string, HostTensor> weights = read_weights(rule.from);
    const Selector selector(rule.at);
    int matched = 0, loaded = 0;
    for (const State& state : graph.states) {
      const bool model = state.kind == StateKind::parameter || state.kind == StateKind::buffer;
      if (!model || !selector.covers_parameter(state.path, state.name)) continue;
      ++matched;
      const auto found = weights.find(state.name);
      if (found == weights.end()) {
        if (rule.missing_is_error)
          problems.push_back(
              at(rule.where, rule.from + " does not hold this parameter", state.name));
        continue;
      }
      if (found->second.shape() != state.start.shape()) {
        Diagnostic d = at(rule.where, rule.from + " holds another shape", state.name);
        d.expected = to_string(state.start.shape());
        d.got = to_string(found->second.shape());
        problems.push_back(std::move(d));
        continue;
      }
      states.write(state.name, found->second.converted(state.start.dtype()));
      ++loaded;
    }
    if (matched == 0)
      problems.push_back(at(rule.where, "\"" + rule.at + "\" matches no parameter"));
    notes.push_back("loaded " + std::to_string(loaded) + " parameters from " + rule.from);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return notes;
}

}  // namespace tandem
