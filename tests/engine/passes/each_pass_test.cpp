// Random graphs of chains that the forward passes look for keep their values and gradients with all
// passes, with all but one, and with only one.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <random>
#include <set>

#include "api/model/engine.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"
#include "tests/harness/test_graphs.h"

namespace tandem {
namespace {

constexpr std::int64_t chain_rows = 4, chain_columns = 6, chain_table_rows = 5, chain_ids = 3;

/// Values of shape [rows, columns], each made of earlier ones.
class RandomChains {
 public:
  RandomChains(const OperatorSet& operators, std::uint64_t seed) : g_(operators), random_(seed) {}

  Graph make() {
    for (const char* name : {"x0", "x1", "x2"}) values_.push_back(g_.input(name, type_));
    State table;
    table.name = "table";
    table.kind = StateKind::parameter;
    table.start = uniform({DType::float64, {chain_table_rows, chain_columns}});
    table_ = g_.state(std::move(table));
    ids_ = g_.input("ids", {DType::int64, {chain_rows, chain_ids}});
    const int count = 4 + pick(8);
    for (int i = 0; i < count; ++i) {
      path_ = "n" + std::to_string(i);
      at(path_);
      // Small numbers, so that chains of chains stay in range.
      values_.push_back(g_.mul(g_.add_node("Tanh", {chain(any())}), number(1.5)));
    }
    at("loss");
    g_.output("sum", g_.reduce_mean(values_.back(), {0, 1}, false));
    g_.output("some", values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))]);
    // A chain whose inner value is read elsewhere has to keep that value.
    if (inner_) g_.output("inner", inner_);
    if (pick(2) == 0) g_.output("losses", losses(values_.back()));
    return g_.finish();
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  ValueId any() {
    return values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
  }
  ValueId number(double value) { return g_.scalar(value, DType::float64); }
  void at(const std::string& path) { g_.set_scope({path, Phase::forward, {}}); }
  HostTensor uniform(const TensorType& type) {
    HostTensor tensor(type);
    for (double& x : tensor.as<double>())
      x = std::uniform_real_distribution<double>(-1, 1)(random_);
    return tensor;
  }
  /// A product or sum with its operands in either order.
  ValueId either(const char* op, ValueId a, ValueId b) {
    return pick(2) == 0 ? g_.add_node(op, {a, b}) : g_.add_node(op, {b, a});
  }
  /// An inner value of a chain; some of them become outputs.
  ValueId of_chain(ValueId value) {
    if (pick(6) == 0) inner_ = value;
    return value;
  }
  ValueId softmax(ValueId x, std::int64_t axis) {
    return of_chain(g_.add_node("Softmax", {x}, {{"axis", axis}}));
  }

  ValueId gelu(ValueId x) {
    const ValueId erf = of_chain(g_.add_node("Erf", {g_.div(x, number(std::sqrt(2.0)))}));
    const ValueId one_more = either("Add", erf, number(1));
    return pick(2) == 0 ? either("Mul", either("Mul", x, one_more), number(0.5))
                        : either("Mul", either("Mul", x, number(0.5)), one_more);
  }
  ValueId layer_normalization(ValueId x) {
    const ValueId d = g_.sub(x, g_.reduce_mean(x, {1}, true));
    const ValueId square = pick(2) == 0 ? g_.mul(d, d) : g_.add_node("Pow", {d, number(2)});
    const ValueId variance = of_chain(g_.reduce_mean(square, {1}, true));
    const ValueId y = g_.div(d, g_.add_node("Sqrt", {either("Add", variance, number(1e-5))}));
    const auto constant = [&] { return g_.constant(uniform({DType::float64, {chain_columns}})); };
    return either("Add", either("Mul", y, constant()), constant());
  }
  ValueId attention(ValueId x) {
    const auto head = [&](ValueId v) {
      return g_.transpose(g_.reshape(v, {1, chain_rows, 2, chain_columns / 2}), {0, 2, 1, 3});
    };
    const ValueId scores =
        g_.mul(g_.matmul(head(x), g_.transpose_last_two(head(any()))), number(0.5));
    const ValueId y = g_.matmul(softmax(scores, 3), head(any()));
    return g_.reshape(g_.transpose(y, {0, 2, 1, 3}), {chain_rows, chain_columns});
  }
  ValueId entropy(ValueId x) {
    const ValueId p = softmax(x, 1);
    const ValueId product = either("Mul", p, g_.add_node("Log", {p}));
    return g_.add_node("Where", {g_.add_node("Equal", {p, number(0)}), number(0), product});
  }
  ValueId norm(ValueId x) {
    const ValueId y = any();
    const ValueId squares = pick(2) == 0
                                ? g_.reduce_sum(g_.mul(x, x), {pick(2)}, true)
                                : either("Add", g_.mul(x, x), g_.add_node("Pow", {y, number(2)}));
    return g_.add(x, g_.add_node("Sqrt", {of_chain(squares)}));
  }
  ValueId cut_logarithm(ValueId x) {
    const ValueId log = of_chain(g_.add_node("Log", {g_.mul(x, x)}));
    return pick(2) == 0 ? either("Max", log, number(-2))
                        : g_.add_node("Clip", {log}, {{"min", -2.0}, {"max", -0.5}});
  }
  /// sin(2x) / (2x)
  ValueId guarded_quotient(ValueId x) {
    const ValueId twice = either("Mul", x, number(2));
    const ValueId quotient = of_chain(g_.div(g_.add_node("Sin", {twice}), twice));
    return g_.add_node("Where", {g_.add_node("Equal", {x, number(0)}), number(1), quotient});
  }
  /// atan2(y, x)
  ValueId angle(ValueId x) {
    const ValueId y = any(), pi = number(std::numbers::pi);
    const ValueId a = of_chain(g_.add_node("Atan", {g_.div(y, x)}));
    const ValueId is_above = g_.add_node("Greater", {y, number(0)});
    const ValueId turned = g_.add_node("Where", {is_above, either("Add", a, pi), g_.sub(a, pi)});
    return g_.add_node("Where", {g_.add_node("Less", {x, number(0)}), turned, a});
  }
  ValueId logarithm(ValueId x) {
    switch (pick(6)) {
      case 0:
        return g_.add_node("Log", {of_chain(g_.add_node("Sigmoid", {x}))});
      case 1:
        return g_.add_node("Log", {softmax(x, pick(2))});
      case 2:
        return g_.add_node("Log", {of_chain(g_.add_node("Cosh", {x}))});
      case 3:
        return g_.add_node("Log", {of_chain(g_.add_node("CumSum", {g_.add_node("Exp", {x})},
                                                        {{"axis", std::int64_t{1}},
                                                         {"reverse", std::int64_t{pick(2)}}}))});
      case 4:
        return g_.add_node("Log", {either("Add", of_chain(g_.add_node("Exp", {x})), number(1))});
      default:
        return g_.sub(x, g_.add_node("Log", {g_.reduce_sum(g_.add_node("Exp", {x}), {1}, true)}));
    }
  }
  /// 1 / (1 + exp(-x)), exp(x) / sum(exp(x)), exp(x) - 1
  ValueId exponential(ValueId x) {
    const int form = pick(3);
    const ValueId power = of_chain(g_.add_node("Exp", {form == 0 ? g_.neg(x) : x}));
    if (form == 0) return g_.div(number(1), either("Add", power, number(1)));
    if (form == 1) return g_.div(power, g_.reduce_sum(power, {1}, true));
    return g_.sub(power, number(1));
  }
  ValueId bag(ValueId x) {
    at(path_ + ".gather");
    ValueId found = of_chain(g_.add_node("Gather", {table_, ids_}));
    at(path_);
    if (pick(2) == 0) {
      const ValueId weights = g_.constant(uniform({DType::float64, {chain_rows, chain_ids, 1}}));
      found = either("Mul", found, weights);
    }
    return g_.add(x, g_.reduce_sum(found, {1}, false));
  }
  /// 2x, with nodes that change nothing and a computed constant.
  ValueId idle(ValueId x) {
    const ValueId two = g_.mul(number(4), number(0.5));
    const ValueId same =
        g_.reshape(g_.reshape(x, {chain_rows * chain_columns}), {chain_rows, chain_columns});
    const ValueId turned = g_.transpose(g_.transpose(same, {1, 0}), {1, 0});
    return g_.add_node("Neg", {g_.add_node("Neg", {g_.mul(g_.add(turned, number(0)), two)})});
  }
  ValueId product(ValueId x) { return either("Mul", x, any()); }
  /// x times a matrix of bytes, or with its transpose.
  ValueId packed(ValueId x) {
    HostTensor bytes(TensorType{DType::uint8, {chain_columns, chain_columns}});
    for (std::uint8_t& byte : bytes.as<std::uint8_t>()) byte = static_cast<std::uint8_t>(pick(256));
    const ValueId scale = g_.constant(uniform({DType::float64, {1, 1}}));
    const ValueId matrix = g_.add_node("Unpack", {g_.constant(std::move(bytes)), scale},
                                       {{"kind", std::string("uint8")},
                                        {"columns", chain_columns},
                                        {"row_block", std::int64_t{0}},
                                        {"zero", std::int64_t{128}}});
    return g_.mul(g_.matmul(x, pick(2) == 0 ? matrix : g_.transpose(matrix, {1, 0})), number(0.01));
  }
  ValueId losses(ValueId x) {
    HostTensor labels(TensorType{DType::int64, {chain_rows}});
    for (std::int64_t& label : labels.as<std::int64_t>())
      label = pick(static_cast<int>(chain_columns));
    const ValueId scores = g_.add_node("LogSoftmax", {x}, {{"axis", std::int64_t{1}}});
    return g_.add_node("NegativeLogLikelihood", {scores, g_.constant(std::move(labels))});
  }

  ValueId chain(ValueId x) {
    using Chain = ValueId (RandomChains::*)(ValueId);
    static constexpr Chain chains[] = {
        &RandomChains::gelu,          &RandomChains::layer_normalization,
        &RandomChains::attention,     &RandomChains::entropy,
        &RandomChains::norm,          &RandomChains::logarithm,
        &RandomChains::bag,           &RandomChains::exponential,
        &RandomChains::idle,          &RandomChains::product,
        &RandomChains::packed,        &RandomChains::angle,
        &RandomChains::cut_logarithm, &RandomChains::guarded_quotient};
    return (this->*chains[pick(static_cast<int>(std::size(chains)))])(x);
  }

  const TensorType type_{DType::float64, {chain_rows, chain_columns}};
  GraphBuilder g_;
  std::mt19937_64 random_;
  std::string path_;
  std::vector<ValueId> values_;
  ValueId table_, ids_, inner_;
};

/// The outputs, then the gradients of `sum` by every input x0, x1, x2 and the table.
std::vector<HostTensor> values_of(const OperatorSet& operators, const Graph& graph,
                                  const testing::Feeds& feeds) {
  std::vector<ValueId> wanted, of;
  for (const NamedValue& output : graph.outputs) wanted.push_back(output.value);
  for (const NamedValue& input : graph.inputs) {
    if (is_float(graph.type(input.value).dtype)) of.push_back(input.value);
  }
  for (const State& state : graph.states) of.push_back(state.initial);
  GraphBuilder b(operators, graph);
  const ValueId sum = graph.find_output("sum")->value;
  const std::vector<GradientSeed> seeds{{sum, b.filled(1, b.type(sum))}};
  for (const ValueId gradient : add_gradients(b, seeds, of)) {
    if (gradient) wanted.push_back(gradient);
  }
  return testing::evaluate(b.finish(), feeds, wanted);
}

/// Sets of passes to leave out: none, all, each one, all but each one.
std::vector<std::set<std::string>> choices() {
  std::set<std::string> all;
  for (const GraphPass& pass : forward_passes()) all.insert(pass.name);
  std::vector<std::set<std::string>> result{{}, all};
  for (const std::string& name : all) {
    result.push_back({name});
    result.push_back(all);
    result.back().erase(name);
  }
  return result;
}

TEST(EachPass, KeepsValuesAndGradientsOfRandomGraphs) {
  const OperatorSet operators = all_operators();
  std::map<std::string, int> changed;  // by pass: how many graphs it changes as the only pass
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomChains(operators, seed).make();
    verify(graph);
    testing::Feeds feeds = testing::random_feeds(graph, seed, 1);
    for (const State& state : graph.states) feeds.emplace_back(state.name, state.start);
    const std::vector<HostTensor> expected = values_of(operators, graph, feeds);
    std::string untouched;
    for (const std::set<std::string>& left_out : choices()) {
      PassContext context{operators, api::reference_evaluator(), {}, {}};
      const Graph after = run_passes(graph, context, {left_out.begin(), left_out.end()});
      const std::string text = to_text(after);
      if (left_out.size() == forward_passes().size()) untouched = text;
      if (left_out.size() + 1 == forward_passes().size() && text != untouched) {
        for (const GraphPass& pass : forward_passes()) {
          if (left_out.count(pass.name) == 0) ++changed[pass.name];
        }
      }
      const std::vector<HostTensor> found = values_of(operators, after, feeds);
      ASSERT_EQ(found.size(), expected.size()) << text;
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(testing::compare(found[i], expected[i], 1e-9), "")
            << "value " << i << " without " << ::testing::PrintToString(left_out) << "\n"
            << to_text(graph) << "\nbecame\n"
            << text;
      }
    }
  }
  for (const GraphPass& pass : forward_passes()) {
    EXPECT_GE(changed[pass.name], 1) << pass.name << " has found nothing to do";
  }
}

}  // namespace
}  // namespace tandem
