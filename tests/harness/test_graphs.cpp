#include "tests/harness/test_graphs.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"

namespace tandem::testing {
namespace {

HostTensor random_tensor(const TensorType& type, std::mt19937_64& random, double scale = 1) {
  std::uniform_real_distribution<double> uniform(-scale, scale);
  HostTensor numbers(TensorType{DType::float64, type.shape});
  for (double& number : numbers.as<double>()) number = uniform(random);
  return numbers.converted(type.dtype);
}

// A forward graph under construction, with its parameters.
class Network {
 public:
  Network(const OperatorSet& operators, std::uint64_t seed) : b(operators), random_(seed) {}

  void at(const std::string& path) { b.set_scope({path, Phase::forward, {}}); }

  ValueId state(const std::string& name, TensorType type, StateKind kind, double scale) {
    State state;
    state.name = name;
    state.path = name;
    state.kind = kind;
    state.trainable = kind == StateKind::parameter;
    state.start = random_tensor(type, random_, scale);
    const ValueId value = b.state(std::move(state));
    if (kind == StateKind::parameter) parameters_.push_back({name, value});
    return value;
  }

  ValueId parameter(const std::string& name, Shape shape, double scale = 0.5,
                    DType dtype = DType::float32) {
    return state(name, {dtype, std::move(shape)}, StateKind::parameter, scale);
  }

  // y = x weight^T + bias, weight [out, in]
  ValueId linear(const std::string& path, ValueId x, std::int64_t out) {
    at(path);
    const std::int64_t in = b.shape(x).back();
    const ValueId weight = parameter(path + ".weight", {out, in});
    const ValueId bias = parameter(path + ".bias", {out});
    return b.add(b.matmul(x, b.transpose(weight, {1, 0})), bias);
  }

  // Mean softmax cross-entropy, gradients, updates.
  Graph train(ValueId logits, Update update) {
    at("loss");
    const ValueId labels = b.input("labels", {DType::int64, {b.shape(logits)[0]}});
    const ValueId losses = b.node("SoftmaxCrossEntropy", {logits, labels, ValueId{}})[0];
    const ValueId loss = b.reduce_mean(losses, {0}, false);
    b.output("loss", loss);
    b.output("logits", logits);
    add_updates(loss, update);
    return b.finish();
  }

  void add_updates(ValueId loss, Update update) {
    b.set_scope({"", Phase::backward, {}});
    const ValueId one = b.filled(1, b.type(loss));
    std::vector<ValueId> wanted;
    for (const NamedValue& parameter : parameters_) wanted.push_back(parameter.value);
    const GradientSeed seed{loss, one};
    const std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, wanted);
    b.set_scope({"update", Phase::update, {}});
    const ValueId lr = b.input("lr", {DType::float32, {}});
    const ValueId step = b.input("step", {DType::int64, {}});
    const ValueId scale = b.scalar(1, DType::float32), skip = b.scalar(0, DType::boolean);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!gradients[i]) continue;
      const std::string& name = parameters_[i].name;
      auto moment = [&](const std::string& kind) {
        State state;
        state.name = name + "/" + kind;
        state.kind = StateKind::optimizer;
        state.parameter = name;
        state.start = HostTensor(b.type(wanted[i]));
        return b.state(std::move(state));
      };
      b.set_scope({"update." + name, Phase::update, {}});
      if (update == Update::adam) {
        const ValueId m = moment("exp_avg"), v = moment("exp_avg_sq");
        const auto out =
            b.node("AdamUpdate", {wanted[i], gradients[i], m, v, lr, step, scale, skip});
        b.write_state(wanted[i], out[0]);
        b.write_state(m, out[1]);
        b.write_state(v, out[2]);
        continue;
      }
      const bool momentum = update == Update::momentum;
      const ValueId buffer = momentum ? moment("momentum_buffer") : ValueId{};
      const auto out = b.node("SgdUpdate", {wanted[i], gradients[i], buffer, lr, step, scale, skip},
                              {{"momentum", momentum ? 0.9 : 0.0}});
      b.write_state(wanted[i], out[0]);
      if (momentum) b.write_state(buffer, out[1]);
    }
  }

  GraphBuilder b;

 private:
  std::mt19937_64 random_;
  std::vector<NamedValue> parameters_;
};

ValueId convolution(Network& net, const std::string& path, ValueId x, std::int64_t out,
                    std::int64_t kernel) {
  net.at(path);
  const ValueId weight = net.parameter(path + ".weight", {out, net.b.shape(x)[1], kernel, kernel});
  const std::int64_t pad = kernel / 2;
  return net.b.add_node(
      "Conv", {x, weight, ValueId{}},
      {{"strides", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}, {"dilations", Ints{1, 1}}});
}

ValueId normalised(Network& net, const std::string& path, ValueId x) {
  net.at(path);
  const Shape channels{net.b.shape(x)[1]};
  const ValueId scale = net.parameter(path + ".weight", channels);
  const ValueId bias = net.parameter(path + ".bias", channels);
  const TensorType type{DType::float32, channels};
  const ValueId mean = net.state(path + ".running_mean", type, StateKind::buffer, 0.1);
  const ValueId var = net.state(path + ".running_var", type, StateKind::buffer, 0.1);
  const auto out = net.b.node("BatchNormalizationTraining", {x, scale, bias, mean, var});
  net.b.write_state(mean, out[1]);
  net.b.write_state(var, out[2]);
  return out[0];
}

// Grows a random graph: values by shape, so that partners for binary nodes are easy to find.
class RandomNetwork {
 public:
  RandomNetwork(const OperatorSet& operators, std::uint64_t seed)
      : net_(operators, seed), random_(seed) {}

  Graph make(bool train) {
    GraphBuilder& b = net_.b;
    values_.push_back(b.input("x0", {DType::float64, {4, 6}}));
    values_.push_back(b.input("x1", {DType::float64, {2, 3, 4}}));
    for (int i = 0; i < 3; ++i) {
      const Shape shape = i == 0 ? Shape{6, 6} : i == 1 ? Shape{6} : Shape{4, 6};
      values_.push_back(net_.parameter("w" + std::to_string(i), shape, 0.5, DType::float64));
    }
    const int count = 12 + pick(25);
    for (int i = 0; i < count; ++i) {
      net_.at("n" + std::to_string(i));
      if (const ValueId value = grow()) values_.push_back(value);
    }
    net_.at("end");
    ValueId sum;
    for (int i = 0; i < 3; ++i) {
      const ValueId value = values_[values_.size() - 1 - i];
      Ints axes;
      for (std::size_t k = 0; k < b.shape(value).size(); ++k)
        axes.push_back(static_cast<std::int64_t>(k));
      const ValueId part = b.reduce_mean(b.add_node("Tanh", {value}), axes, false);
      sum = sum ? b.add(sum, part) : part;
    }
    b.output("sum", sum);
    b.output("last", values_.back());
    b.output("some", values_[values_.size() / 2]);
    if (train) net_.add_updates(sum, Update::sgd);
    return b.finish();
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  ValueId any() { return values_[pick(static_cast<int>(values_.size()))]; }

  ValueId grow() {
    GraphBuilder& b = net_.b;
    const ValueId x = any();
    const Shape shape = b.shape(x);
    const int rank = static_cast<int>(shape.size());
    switch (pick(12)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
      case 3:
      case 4:
        return binary(x);
      case 5: {
        if (rank < 2) return {};
        Ints perm(rank);
        for (int i = 0; i < rank; ++i) perm[i] = i;
        std::shuffle(perm.begin(), perm.end(), random_);
        return b.transpose(x, perm);
      }
      case 6: {
        const std::int64_t elements = element_count(shape);
        return b.reshape(
            x, elements % 6 == 0 && pick(2) == 0 ? Shape{elements / 6, 6} : Shape{elements});
      }
      case 7: {
        Ints starts(rank), sizes(rank), steps(rank, 1);
        for (int i = 0; i < rank; ++i) {
          starts[i] = pick(static_cast<int>(shape[i]));
          sizes[i] = 1 + pick(static_cast<int>(shape[i] - starts[i]));
          if (pick(4) == 0) {
            starts[i] += sizes[i] - 1;
            steps[i] = -1;
          }
        }
        return b.add_node("Slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
      }
      case 8: {
        if (rank == 0 || shape[0] < 2) return {};
        const int axis = pick(rank);
        if (shape[axis] < 2) return {};
        const std::int64_t first = 1 + pick(static_cast<int>(shape[axis] - 1));
        const auto parts =
            b.node("Split", {x},
                   {{"axis", std::int64_t{axis}}, {"sizes", Ints{first, shape[axis] - first}}});
        values_.push_back(parts[0]);
        return parts[1];
      }
      case 9: {
        if (rank == 0 || element_count(shape) > 200) return {};
        std::vector<ValueId> parts{unary(x), x, binary(x)};
        std::shuffle(parts.begin(), parts.end(), random_);
        for (ValueId part : parts) {
          if (b.shape(part) != shape) return {};
        }
        return b.add_node("Concat", parts, {{"axis", std::int64_t{pick(rank)}}});
      }
      case 10: {
        for (int attempt = 0; attempt < 8; ++attempt) {
          const ValueId y = any();
          if (rank != 2 || b.shape(y).size() != 2 || b.shape(y)[0] != shape[1]) continue;
          return b.add_node(
              "Tanh", {b.add(b.matmul(x, y), b.filled(0.1, {DType::float64, {b.shape(y)[1]}}))});
        }
        return {};
      }
      default: {
        if (rank == 0) return {};
        return b.reduce_sum(x, {pick(2) == 0 ? 0 : rank - 1}, pick(2) == 0);
      }
    }
  }

  ValueId unary(ValueId x) {
    static const char* const names[] = {"Neg", "Tanh", "Sigmoid", "Relu", "Abs", "Erf"};
    return net_.b.add_node(names[pick(6)], {x});
  }

  ValueId binary(ValueId x) {
    static const char* const names[] = {"Add", "Sub", "Mul", "Max"};
    for (int attempt = 0; attempt < 8; ++attempt) {
      const ValueId y = any();
      const auto shape = broadcast_shape(net_.b.shape(x), net_.b.shape(y));
      if (shape && element_count(*shape) <= 400) return net_.b.add_node(names[pick(4)], {x, y});
    }
    return unary(x);
  }

  Network net_;
  std::mt19937_64 random_;
  std::vector<ValueId> values_;
};

}  // namespace

Graph mlp_training(const OperatorSet& operators, std::int64_t batch,
                   const std::vector<std::int64_t>& widths, Update update) {
  Network net(operators, 1);
  ValueId x = net.b.input("x", {DType::float32, {batch, widths[0]}});
  for (std::size_t i = 1; i < widths.size(); ++i) {
    x = net.linear("fc" + std::to_string(i), x, widths[i]);
    if (i + 1 < widths.size()) x = net.b.add_node("Relu", {x});
  }
  return net.train(x, update);
}

Graph convolution_training(const OperatorSet& operators) {
  Network net(operators, 2);
  GraphBuilder& b = net.b;
  ValueId x = b.input("x", {DType::float32, {2, 3, 8, 8}});
  x = b.add_node("Relu", {normalised(net, "bn1", convolution(net, "conv1", x, 4, 3))});
  net.at("pool");
  x = b.node("MaxPool", {x},
             {{"kernel_shape", Ints{2, 2}},
              {"strides", Ints{2, 2}},
              {"pads", Ints{0, 0, 0, 0}},
              {"dilations", Ints{1, 1}}})[0];
  const ValueId y = normalised(net, "bn2", convolution(net, "conv2", x, 4, 3));
  net.at("block");
  x = b.add_node("Relu", {b.add(x, y)});
  x = b.reshape(b.reduce_mean(x, {2, 3}, true), {2, 4});
  return net.train(net.linear("fc", x, 3), Update::momentum);
}

Graph attention_training(const OperatorSet& operators) {
  Network net(operators, 3);
  GraphBuilder& b = net.b;
  const std::int64_t batch = 2, length = 5, width = 8, heads = 2;
  const ValueId x = b.input("x", {DType::float32, {batch, length, width}});
  const ValueId qkv = net.linear("qkv", x, 3 * width);
  net.at("attention");
  const auto parts =
      b.node("Split", {qkv}, {{"axis", std::int64_t{2}}, {"sizes", Ints{width, width, width}}});
  std::vector<ValueId> operands;
  for (ValueId part : parts) {
    operands.push_back(
        b.transpose(b.reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3}));
  }
  operands.push_back({});
  const ValueId y = b.node("Attention", operands, {{"scale", 0.5}, {"causal", std::int64_t{1}}})[0];
  ValueId h = b.reshape(b.transpose(y, {0, 2, 1, 3}), {batch, length, width});
  h = b.add(x, net.linear("out", h, width));
  h = net.linear("down", b.add_node("Gelu", {net.linear("up", h, 12)}), 3);
  net.at("head");
  return net.train(b.reshape(h, {batch * length, 3}), Update::momentum);
}

Graph random_graph(const OperatorSet& operators, std::uint64_t seed) {
  return RandomNetwork(operators, seed).make(seed % 2 == 1);
}

Feeds random_feeds(const Graph& graph, std::uint64_t seed, std::int64_t step) {
  std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(step));
  Feeds feeds;
  for (const NamedValue& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    HostTensor tensor(type);
    if (input.name == "lr") {
      tensor.as<float>()[0] = 0.1f;
    } else if (input.name == "step") {
      tensor.as<std::int64_t>()[0] = step;
    } else if (type.dtype == DType::int64) {
      for (std::int64_t& label : tensor.as<std::int64_t>())
        label = static_cast<std::int64_t>(random() % 3);
    } else {
      tensor = random_tensor(type, random);
    }
    feeds.push_back({input.name, std::move(tensor)});
  }
  return feeds;
}

}  // namespace tandem::testing
