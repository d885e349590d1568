// What an operator is: name, normal form, shapes, gradient, cost, aliases and views, as one value.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

class GraphBuilder;

/// A node with the graph that gives its operands types; what `infer`, `cost` and `view` read.
struct NodeView {
  const Graph& graph;
  const Node& node;

  bool has_input(std::size_t i) const {
    return i < node.inputs.size() && static_cast<bool>(node.inputs[i]);
  }
  const TensorType& input(std::size_t i) const { return graph.type(node.inputs[i]); }
  const TensorType& output(std::size_t i) const { return graph.type(node.outputs[i]); }
  std::size_t input_count() const { return node.inputs.size(); }
  const Attributes& attributes() const { return node.attributes; }
  /// Throws Error{usage} with the node's path and operator.
  [[noreturn]] void fail(std::string message, std::string expected = "", std::string got = "",
                         std::string fix = "") const;
};

struct Cost {
  double flops = 0;  // floating point operations, 2 per multiply-add
  double bytes = 0;  // read and written
};

struct AttributeSpec {
  std::string name;
  AttributeValue value;   // the default; its type is the attribute's type
  bool required = false;  // no default: `value` gives the type only
};

struct Port {
  std::string name;
  bool optional = false;
  bool variadic = false;   // only the last input or output
  bool statistic = false;  // float32 also where the other operands have 16 bits
};

/// Output `output` overwrites the storage of input `input`.
struct Alias {
  int output = 0;
  int input = 0;
};

/// What `gradient` gets. It appends nodes to `g`, which holds the forward graph; forward ids stay
/// valid in it. Returns one value per input of the node: its gradient with the input's type, or -1
/// where none flows (integer inputs, masks, inputs not in `wanted`).
struct GradientContext {
  GraphBuilder& g;
  const Node node;                  // a copy: appending to g moves the graph's vectors
  std::span<const ValueId> dy;      // one per output; -1 where no gradient arrives
  const std::vector<bool>& wanted;  // per input: does anything need its gradient

  ValueId x(std::size_t i) const { return node.inputs[i]; }
  ValueId y(std::size_t i) const { return node.outputs[i]; }
};
using Gradients = std::vector<ValueId>;

/// What an element-wise operator computes: scalar_functions.h has the list. ScalarFunction{} is
/// none.
enum class ScalarFunction : std::uint8_t;

/// In which type a node computes where 16-bit floats are asked for: what gains from them, what
/// loses too much, and what takes the type of its operands. See engine/lower/precision.cpp.
enum class Precision : std::uint8_t { follow, low, float32 };

/// What a node is to the phases after import: they ask for this, not for names. An operator that no
/// phase asks for has none; scalar functions are recognised by `scalar`, reductions by `reducer`.
enum class Role : std::uint8_t {
  none,
  reshape,                 // the same elements in the same order
  transpose,               // the same elements, axes in another order
  concatenation,           // operands side by side along an axis
  transfer,                // moves values from one device to another
  collective,              // runs over all ranks: engine/operators/collectives/collective.h
  lookup,                  // rows, or slices along an axis, that indices name
  lookup_gradient,         // its gradient as a dense tensor
  embedding_bag,           // sums of rows that ids name
  embedding_bag_gradient,  // its gradient as a dense tensor
  product,                 // a product of matrices, and nothing else
  convolution,             // a forward convolution, and nothing else
  pooling,                 // forward
  class_loss,              // a loss of scores and integer labels, one a position
  fused,                   // its body is element-wise, with at most one reduction
  fused_convolution,       // with bias, residual and activation
  grouped_update,          // several updates of one kind
  rows_update,             // updates the rows of a table that ids name
  rows_norm,               // the sum of squares of the gradients of those rows
  id_groups,               // the rows that ids name, each once, and where
  id_split,                // splits ids into those that a cache holds and the others
  cached_lookup,           // looks up rows that a cache holds, and adds them to the others
  row_marks,               // the rows that occur in the micro-batches of a step
  marked_rows,             // groups of the rows that were marked
  packed_rows,             // the rows that occur, one after the other
  row_plan,                // plans which rows were not fetched ahead
  product_update,          // updates a weight by a product that is its gradient
};

/// What a reduction makes of the elements that go into one result.
enum class Reducer : std::uint8_t { none, sum, mean, maximum, product, sum_of_squares };

struct Operator {
  std::string name;
  Role role = Role::none;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<AttributeSpec> attributes;

  /// Types of all outputs; throws through NodeView::fail. node.outputs is still empty.
  std::vector<TensorType> (*infer)(const NodeView& node) = nullptr;

  /// Null only together with a reason in `not_differentiable`.
  Gradients (*gradient)(GradientContext& context) = nullptr;
  std::string not_differentiable;

  Cost (*cost)(const NodeView& node) = nullptr;  // null: bytes of all operands, one flop an element

  std::vector<Alias> aliases;  // state updates: which output overwrites which input
  /// Like `aliases`, for operators where they depend on the node; then `aliases` is empty.
  std::vector<Alias> (*node_aliases)(const Node& node) = nullptr;
  ScalarFunction scalar{};
  Reducer reducer = Reducer::none;
  /// Views: the layout of output 0 seen through the layout of input 0, or nothing where these
  /// strides cannot express it (then lowering copies). Null for operators that are not views.
  std::optional<Layout> (*view)(const NodeView& node, const Layout& x) = nullptr;
  Precision precision = Precision::follow;
  /// Results depend on inputs of the shape of output 0 element by element, and on scalars: kernels
  /// may run on any range of elements by itself.
  bool elementwise_ranges = false;
  /// Elements of an operand may be missing in the result: another operand chooses among them, or
  /// they are cut away. Windows that leave gaps are not meant.
  bool drops_elements = false;
  /// Whether the gradient asks where the result equals an operand, to the bit. Null: it never does.
  bool (*gradient_compares)(const Attributes& attributes) = nullptr;
  bool random = false;       // reads the step's seed and counters; keyed by the node's path
  bool engine_only = false;  // not an ONNX operator: gradients, optimizers, lowering products
  /// Operands may be 8-bit floats: elements are moved by their size, or converted. All others
  /// refuse them before `infer` is asked.
  bool takes_float8 = false;

  bool is_scalar() const { return scalar != ScalarFunction{}; }
  /// One scalar function, or a body of them.
  bool is_elementwise() const { return is_scalar() || role == Role::fused; }
};

/// Whether a node may have that many outputs: optional ones at the end may be missing.
bool has_outputs(const Operator& op, std::size_t count);

/// An ordered, owning list; addresses stay valid for its life. A value of Engine, passed in.
class OperatorSet {
 public:
  OperatorSet() = default;
  OperatorSet(OperatorSet&&) = default;
  OperatorSet& operator=(OperatorSet&&) = default;
  OperatorSet(const OperatorSet&) = delete;

  void add(Operator op);
  const Operator* find(std::string_view name) const;  // null if unknown
  const Operator& get(std::string_view name) const;   // asserts
  const std::deque<Operator>& all() const { return operators_; }

 private:
  std::deque<Operator> operators_;
};

/// Every operator of the list engine/operators/all_operators.inl.
OperatorSet all_operators();

Cost cost_of(const Graph& graph, const Node& node);

}  // namespace tandem
