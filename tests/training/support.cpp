#include "tests/training/support.h"

#include <cstring>
#include <fstream>
#include <random>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

HostTensor random_numbers(Shape shape, std::uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  for (float& x : tensor.as<float>())
    x = scale * (static_cast<float>(random() >> 40) / (1 << 23) - 1);
  return tensor;
}

ValueId linear(GraphBuilder& g, const std::string& name, ValueId x, std::int64_t out,
               std::uint64_t seed) {
  const std::int64_t in = g.shape(x).back();
  auto parameter = [&](const std::string& role, Shape shape, std::uint64_t k) {
    State state;
    state.name = name + "." + role;
    state.path = name + ":" + role;
    state.trainable = true;
    state.start = random_numbers(std::move(shape), k, 0.6f);
    return g.state(std::move(state));
  };
  g.set_scope({name + ".Gemm", Phase::forward, {}});
  const ValueId weight = parameter("weight", {out, in}, seed);
  const ValueId bias = parameter("bias", {out}, seed + 1);
  return g.add(g.matmul(x, g.transpose(weight, {1, 0})), bias);
}

}  // namespace

Graph small_network(const OperatorSet& operators, std::int64_t batch,
                    const std::vector<std::int64_t>& hidden) {
  GraphBuilder g(operators);
  ValueId x = g.input("x", {DType::float32, {batch, 6}});
  std::uint64_t seed = 11;
  int number = 1;
  for (const std::int64_t width : hidden) {
    x = linear(g, "fc" + std::to_string(number), x, width, seed);
    g.set_scope(
        {"relu" + (number > 1 ? std::to_string(number) : "") + ".Relu", Phase::forward, {}});
    x = g.add_node("Relu", {x});
    ++number;
    seed += 10;
  }
  g.output("logits", linear(g, "fc" + std::to_string(number), x, 3, seed));
  return g.finish();
}

std::shared_ptr<const DataSource> small_data(std::int64_t samples, std::uint64_t seed, bool holes) {
  const HostTensor x = random_numbers({samples, 6}, seed, 1);
  HostTensor labels(TensorType{DType::int64, {samples}});
  for (std::int64_t i = 0; i < samples; ++i) {
    const float* row = x.as<float>().data() + 6 * i;
    const bool first = row[0] + row[1] > row[2], second = row[3] > row[4] * row[5];
    labels.as<std::int64_t>()[i] = holes && i % 5 == 3 ? -1 : first + (first && second);
  }
  return make_array_source({{"x", x}, {"labels", labels}});
}

SmallEngine::SmallEngine() : cpu(make_cpu_device(1)) {}

RunParts SmallEngine::parts() {
  RunParts parts;
  parts.operators = &operators;
  parts.devices = {cpu.get()};
  auto model = std::make_shared<TestModel>();
  model->make_graph = [this](const ForwardKey& key) {
    return small_network(operators, key.samples);
  };
  model->make_placement = on_one_device;
  parts.model = std::move(model);
  return parts;
}

LoadingParts TestModel::loading_parts() {
  LoadingParts parts;
  parts.aliases = aliases;
  return parts;
}

TestModel& own_model(RunParts& parts) {
  auto model = std::make_shared<TestModel>(
      parts.model ? dynamic_cast<const TestModel&>(*parts.model) : TestModel{});
  parts.model = model;
  return *model;
}

RunConfig small_config(const std::string& folder, const std::vector<std::string>& keys) {
  const char* const text = R"(model = "model.onnx"
batch_size = 8
steps = 6
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[log]
every = "1 steps"
)";
  RunConfig config = parse_run_config(text, folder + "/small.toml", keys);
  if (!config.data) config.data = DataConfig{};
  return config;
}

TrainingPosition position_at(std::uint64_t step, std::int64_t batch_size) {
  TrainingPosition position;
  position.step = step;
  position.samples = step * static_cast<std::uint64_t>(batch_size);
  position.data = {0, static_cast<std::int64_t>(position.samples)};
  position.batch_size = batch_size;
  position.batches = {{0, batch_size, std::int64_t{1} << 40, false}};
  return position;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string error_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::pair<std::string, HostTensor>> states_of(const StateStore& states) {
  std::vector<std::pair<std::string, HostTensor>> all;
  for (const std::string& name : states.names()) all.emplace_back(name, states.read(name));
  return all;
}

std::string difference(const StateStore& a, const StateStore& b) {
  const auto first = states_of(a), second = states_of(b);
  if (first.size() != second.size()) return "another number of states";
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto& [name, x] = first[i];
    if (!b.has(name)) return name + " is missing";
    const HostTensor y = b.read(name);
    if (x.type() != y.type() || std::memcmp(x.data(), y.data(), x.bytes()) != 0)
      return name + " differs";
  }
  return "";
}

}  // namespace tandem::testing
