// The networks of lora_expectations.py and distillation_expectations.py, from the files that they
// write.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/graph/builder.h"
#include "engine/passes/lora.h"
#include "tests/harness/folders.h"
#include "tests/training/support.h"

namespace tandem::testing {

inline nlohmann::json expectations(const std::string& file) {
  std::ifstream stream(source_folder() + "/tests/data/" + file);
  return nlohmann::json::parse(stream);
}

inline HostTensor tensor_in(const nlohmann::json& json) {
  return HostTensor::from<float>(json["shape"].get<Shape>(),
                                 json["numbers"].get<std::vector<float>>());
}

/// The samples of a file: fields x and labels.
inline std::shared_ptr<const DataSource> samples_in(const nlohmann::json& json) {
  const auto labels = json["labels"].get<std::vector<std::int64_t>>();
  return make_array_source({{"x", tensor_in(json["x"])},
                            {"labels", HostTensor::from<std::int64_t>(
                                           {static_cast<std::int64_t>(labels.size())}, labels)}});
}

/// Layers whose weights are those of a file: "fc1.weight", with the path "fc1:weight".
class FileLayers {
 public:
  FileLayers(GraphBuilder& g, const nlohmann::json& weights) : g_(g), weights_(weights) {}

  /// A layer like an imported Gemm with transB, or like MatMul if the weight is stored as [in,
  /// out].
  ValueId linear(const std::string& name, ValueId x, bool in_out = false) {
    g_.set_scope({name + ".Gemm", Phase::forward, {}});
    const ValueId weight = parameter(name, "weight");
    const ValueId product = g_.matmul(x, in_out ? weight : g_.transpose(weight, {1, 0}));
    return g_.add(product, parameter(name, "bias"));
  }
  ValueId convolution(const std::string& name, ValueId x) {
    g_.set_scope({name + ".Conv", Phase::forward, {}});
    return g_.add_node(
        "Conv", {x, parameter(name, "weight"), parameter(name, "bias")},
        {{"strides", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"dilations", Ints{1, 1}}});
  }
  ValueId relu(const std::string& name, ValueId x) {
    g_.set_scope({name + ".Relu", Phase::forward, {}});
    return g_.add_node("Relu", {x});
  }

 private:
  ValueId parameter(const std::string& layer, const std::string& role) {
    State state;
    state.name = layer + "." + role;
    state.path = layer + ":" + role;
    state.trainable = true;
    state.start = tensor_in(weights_.at(state.name));
    return g_.state(std::move(state));
  }

  GraphBuilder& g_;
  const nlohmann::json& weights_;
};

/// Network of lora_expectations.py.
inline Graph convolutional_network(const OperatorSet& operators, const nlohmann::json& json,
                                   std::int64_t batch) {
  GraphBuilder g(operators);
  FileLayers layers(g, json["weights"]);
  ValueId x = g.input("x", {DType::float32, {batch, 2, 4, 4}});
  x = layers.relu("relu1", layers.convolution("conv", x));
  g.set_scope({"pool.MaxPool", Phase::forward, {}});
  x = g.add_node("MaxPool", {x},
                 {{"kernel_shape", Ints{2, 2}},
                  {"strides", Ints{2, 2}},
                  {"pads", Ints{0, 0, 0, 0}},
                  {"dilations", Ints{1, 1}}});
  x = layers.relu("relu2", layers.linear("middle", g.reshape(x, {batch, 16}), true));
  g.output("logits", layers.linear("last", x));
  return g.finish();
}

/// Student and teacher of distillation_expectations.py.
inline Graph two_layers(const OperatorSet& operators, const nlohmann::json& weights,
                        std::int64_t batch) {
  GraphBuilder g(operators);
  FileLayers layers(g, weights);
  const ValueId x = g.input("x", {DType::float32, {batch, 6}});
  g.output("logits", layers.linear("fc2", layers.relu("relu", layers.linear("fc1", x))));
  return g.finish();
}

/// Rules and start values of lora_expectations.py.
inline LoraRequest lora_request(const nlohmann::json& json) {
  LoraRequest request;
  for (const char* at : {"conv", "middle", "last"}) {
    AdapterRule& rule = request.rules.emplace_back();
    rule.at = at;
    rule.rank = json["rank"].get<std::int64_t>();
    rule.alpha = json["alpha"].get<double>();
  }
  request.draw = [json](const std::string& name, const TensorType&, double) {
    return tensor_in(json["start"].at(name.substr(0, name.find('.')) + "_a"));
  };
  return request;
}

}  // namespace tandem::testing
