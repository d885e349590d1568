// Appends nodes to a graph: fills attribute defaults, infers types, names values, keeps paths.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

class GraphBuilder {
 public:
  explicit GraphBuilder(const OperatorSet& operators) : operators_(operators) {}
  /// Continues an existing graph; its ids stay valid.
  GraphBuilder(const OperatorSet& operators, Graph graph);

  // What the nodes added from now on get.
  struct Scope {
    std::string path;
    Phase phase = Phase::forward;
    std::vector<std::string> origins;  // empty = {path}
  };
  void set_scope(Scope scope) { scope_ = std::move(scope); }
  const Scope& scope() const { return scope_; }

  /// All outputs of a new node. Throws Error (path) where types do not fit.
  std::vector<ValueId> node(std::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes = {},
                            std::shared_ptr<const Graph> body = nullptr);
  /// The only (or first) output.
  ValueId add_node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return node(op, std::move(inputs), std::move(attributes))[0];
  }

  ValueId input(std::string name, TensorType type);
  ValueId constant(HostTensor tensor, std::string name = "");
  /// A constant scalar (shape []) of a float or integer type.
  ValueId scalar(double value, DType dtype);
  /// A constant of that type filled with one number.
  ValueId filled(double value, TensorType type);
  /// Adds a State with an `initial` value of start's type; final = initial until `write_state`.
  ValueId state(State state);
  void write_state(ValueId initial, ValueId final);
  void output(std::string name, ValueId value);
  void rename(ValueId value, std::string name);  // made unique where taken

  // Short forms, for gradients and losses. Broadcasting as in ONNX.
  ValueId add(ValueId a, ValueId b) { return add_node("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return add_node("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return add_node("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return add_node("Div", {a, b}); }
  ValueId neg(ValueId x) { return add_node("Neg", {x}); }
  ValueId cast(ValueId x, DType dtype);  // x itself where it has that type
  ValueId matmul(ValueId a, ValueId b) { return add_node("MatMul", {a, b}); }
  ValueId reshape(ValueId x, Shape shape);  // x itself where it has that shape
  ValueId expand(ValueId x, Shape shape);   // x itself where it has that shape
  ValueId transpose(ValueId x, Ints perm);
  ValueId transpose_last_two(ValueId x);
  ValueId reduce_sum(ValueId x, Ints axes, bool keepdims);
  ValueId reduce_mean(ValueId x, Ints axes, bool keepdims);
  /// Sums a broadcast result back to `shape`: the gradient of broadcasting.
  ValueId sum_to(ValueId x, const Shape& shape);

  const TensorType& type(ValueId id) const { return graph_.type(id); }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  DType dtype(ValueId id) const { return graph_.type(id).dtype; }
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  const OperatorSet& operators() const { return operators_; }
  Graph finish() { return std::move(graph_); }

 private:
  std::string unique_name(std::string wanted);
  ValueId new_value(Value value);

  const OperatorSet& operators_;
  Graph graph_;
  Scope scope_;
  struct Names;
  std::shared_ptr<Names> names_;
};

}  // namespace tandem
