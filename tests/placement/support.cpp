#include "tests/placement/support.h"

#include <gtest/gtest.h>

namespace tandem::testing {
namespace {

ValueId add_state(GraphBuilder& b, const std::string& scope, const std::string& role, Shape shape,
                  StateKind kind = StateKind::parameter) {
  State state;
  state.name = scope + "." + role;
  if (kind == StateKind::parameter) state.path = scope + ":" + role;
  state.kind = kind;
  state.trainable = kind == StateKind::parameter;
  state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
  return b.state(std::move(state));
}

}  // namespace

Graph forward_graph(const OperatorSet& operators) {
  GraphBuilder b(operators);
  const auto at = [&](const std::string& path) { b.set_scope({path, Phase::forward, {}}); };
  const ValueId ids = b.input("ids", {DType::int64, {4}});
  at("embed.Gather");
  ValueId x = b.add_node("Gather", {add_state(b, "embed", "weight", {100, 8}), ids},
                         {{"axis", std::int64_t{0}}});
  for (const std::string layer : {"layers.0", "layers.1", "layers.10"}) {
    at(layer + ".MatMul");
    x = b.matmul(x, add_state(b, layer, "weight", {8, 8}));
    at(layer + ".Add");
    x = b.add(x, add_state(b, layer, "bias", {8}));
    at(layer + ".Relu");
    x = b.add_node("Relu", {x});
  }
  b.rename(x, "hidden");
  at("norm.Add");
  x = b.add(x, add_state(b, "norm", "running_mean", {8}, StateKind::buffer));
  at("head.Transpose");
  const ValueId weight = b.transpose(add_state(b, "head", "weight", {3, 8}), {1, 0});
  at("head.MatMul");
  b.output("logits", b.matmul(x, weight));
  Graph graph = b.finish();
  verify(graph);
  return graph;
}

const Graph& shared_graph() {
  static const Graph graph = forward_graph(shared_operators());
  return graph;
}

const OperatorSet& shared_operators() {
  static const OperatorSet operators = all_operators();
  return operators;
}

ValueId add_weight(GraphBuilder& b, const std::string& scope, Shape shape) {
  return add_state(b, scope, "weight", std::move(shape));
}

std::string rules(const std::string& lines) { return "rules = [\n" + lines + "\n]\n"; }

ResolvedPolicy resolve_text(const std::string& text, const std::vector<std::string>& place,
                            ResolveOptions options, const PlacementFacts& facts,
                            const Graph& graph) {
  if (options.bindings.empty() && options.machine.empty()) {
    options.bindings = parse_device_arguments({"gpu=emulated:0"});
  }
  const Policy policy =
      parse_policy("policy = 1\n" + text, "folder/policy.toml", place, &options.earlier);
  return resolve(policy, graph, options, facts);
}

std::vector<Diagnostic> errors_of(const std::string& text, const std::vector<std::string>& place,
                                  ResolveOptions options, const PlacementFacts& facts) {
  try {
    resolve_text(text, place, std::move(options), facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.diagnostics();
  }
  return {};
}

std::string only_error(const std::string& text, const std::vector<std::string>& place,
                       ResolveOptions options, const PlacementFacts& facts) {
  const std::vector<Diagnostic> errors = errors_of(text, place, std::move(options), facts);
  if (errors.empty()) return "no error";
  std::string all;
  for (const Diagnostic& d : errors) {
    all += all.empty() ? "" : "\n";
    all += std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.message;
    if (!d.fix.empty()) all += " (" + d.fix + ")";
  }
  return all;
}

std::string run_of(const ResolvedPolicy& resolved, const std::string& path) {
  const OperatorAttributes* found = resolved.find_node(path);
  return found ? resolved.devices[found->run.value].name : "nowhere";
}

std::string home_of(const ResolvedPolicy& resolved, const std::string& name) {
  const ParameterAttributes* found = resolved.find_parameter(name);
  if (!found) return "nowhere";
  return resolved.devices[found->param.value].name + "/" +
         resolved.devices[found->state.value].name;
}

}  // namespace tandem::testing
