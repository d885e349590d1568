// Properties of the basic operators that case tables cannot express: views, how ties share a
// gradient, gradients without NaN, the form of matrix gradients, indices out of range, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/harness/operator_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

// The gradients of a node of float64 inputs for a dy of ones.
struct Differentiated {
  GraphBuilder g{operator_set()};
  std::vector<ValueId> x;
  Gradients dx;
  std::vector<std::pair<std::string, HostTensor>> feeds;

  ValueId input(const HostTensor& tensor) {
    const std::string name = "x" + std::to_string(x.size());
    feeds.emplace_back(name, tensor);
    x.push_back(g.input(name, tensor.type()));
    return x.back();
  }

  void differentiate(const std::string& op, std::vector<ValueId> inputs,
                     Attributes attributes = {}) {
    const ValueId y = g.add_node(op, inputs, std::move(attributes));
    const Node node = g.graph().nodes.back();
    const std::vector<ValueId> dy{g.filled(1, g.type(y))};
    const std::vector<bool> wanted(inputs.size(), true);
    GradientContext context{g, node, dy, wanted};
    dx = node.op->gradient(context);
    verify(g.graph());
  }

  std::vector<double> value(ValueId id) { return numbers_of(evaluate(g.graph(), feeds, {id})[0]); }
  int count(std::string_view op) {
    int n = 0;
    for (const Node& node : g.graph().nodes) n += node.op->name == op;
    return n;
  }
};

TEST(Pow, SlopeAtZeroIsFinite) {
  Differentiated d;
  const ValueId x = d.input(HostTensor::from<double>({2}, {0, -3}));
  d.differentiate("Pow", {x, d.g.scalar(2, DType::float64)});
  EXPECT_EQ(d.value(d.dx[0]), (std::vector<double>{0, -6}));
}

TEST(Pow, ConstantSlopes) {
  for (const auto& [exponent, slope] :
       std::vector<std::pair<double, double>>{{1, 1}, {3, 12}, {0.5, 0.5 / std::sqrt(2)}}) {
    Differentiated d;
    const ValueId x = d.input(HostTensor::from<double>({1}, {2}));
    d.differentiate("Pow", {x, d.g.scalar(exponent, DType::float64)});
    EXPECT_NEAR(d.value(d.dx[0])[0], slope, 1e-12) << exponent;
  }
  Differentiated d;
  d.differentiate("Pow",
                  {d.input(HostTensor::from<double>({1}, {0})), d.g.scalar(0, DType::float64)});
  EXPECT_FALSE(d.dx[0]) << "x^0 is constant";
}

TEST(Pow, ExponentsOfZeroHaveNoNaN) {
  Differentiated d;
  const ValueId x = d.input(HostTensor::from<double>({3}, {0, 0, 2}));
  const ValueId e = d.input(HostTensor::from<double>({3}, {0, 2, 3}));
  d.differentiate("Pow", {x, e});
  EXPECT_EQ(d.value(d.dx[0]), (std::vector<double>{0, 0, 12}));
  EXPECT_EQ(d.value(d.dx[1])[0], 0);
  EXPECT_EQ(d.value(d.dx[1])[1], 0);
  EXPECT_NEAR(d.value(d.dx[1])[2], 8 * std::log(2), 1e-12);
}

TEST(Max, TiesShareEvenly) {
  Differentiated d;
  const ValueId a = d.input(HostTensor::from<double>({3}, {1, 2, 3}));
  const ValueId b = d.input(HostTensor::from<double>({3}, {1, 1, 4}));
  d.differentiate("Max", {a, b});
  EXPECT_EQ(d.value(d.dx[0]), (std::vector<double>{0.5, 1, 0}));
  EXPECT_EQ(d.value(d.dx[1]), (std::vector<double>{0.5, 0, 1}));
}

TEST(ReduceMax, TiesShareEvenly) {
  Differentiated d;
  const ValueId x = d.input(HostTensor::from<double>({2, 3}, {1, 3, 3, 2, 2, 2}));
  d.differentiate("ReduceMax", {x}, {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
  const double third = 1.0 / 3;
  EXPECT_EQ(d.value(d.dx[0]), (std::vector<double>{0, 0.5, 0.5, third, third, third}));
}

// The gradient of a weight that a batch shares is one product over all rows.
TEST(MatMul, SharedMatrixGradientIsOneProduct) {
  Differentiated d;
  const ValueId a = d.input(HostTensor(TensorType{DType::float64, {2, 3, 4}}));
  const ValueId b = d.input(HostTensor(TensorType{DType::float64, {4, 5}}));
  d.differentiate("MatMul", {a, b});
  EXPECT_EQ(d.count("ReduceSum"), 0);
  EXPECT_EQ(d.count("MatMul"), 3);
  for (const Node& node : d.g.graph().nodes) {
    if (node.op->name == "MatMul" && node.outputs[0] == d.dx[1]) {
      EXPECT_EQ(d.g.shape(node.inputs[0]), (Shape{4, 6}));
      EXPECT_EQ(d.g.shape(node.inputs[1]), (Shape{6, 5}));
    }
  }
}

TEST(Sum, BroadcastGradientIsOneReduction) {
  Differentiated d;
  const ValueId a = d.input(HostTensor(TensorType{DType::float64, {2, 3, 4}}));
  const ValueId b = d.input(HostTensor(TensorType{DType::float64, {3, 1}}));
  d.differentiate("Add", {a, b});
  EXPECT_EQ(d.count("ReduceSum"), 1);
  EXPECT_EQ(d.value(d.dx[1]), (std::vector<double>{8, 8, 8}));
}

TEST(Split, GradientOfAnUnusedPieceIsZero) {
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float64, {3}});
  const auto y = g.node("Split", {x}, {{"axis", std::int64_t{0}}, {"sizes", Ints{1, 2}}});
  const Node node = g.graph().nodes.back();
  const std::vector<ValueId> dy{ValueId{}, g.filled(5, g.type(y[1]))};
  GradientContext context{g, node, dy, {true}};
  const Gradients dx = node.op->gradient(context);
  const auto result = evaluate(g.graph(), {{"x", HostTensor(g.type(x))}}, {dx[0]});
  EXPECT_EQ(numbers_of(result[0]), (std::vector<double>{0, 5, 5}));
}

// Every element that a view addresses must be the one that the reference kernel moves there.
void expect_view(const std::string& op, const Shape& shape, const Attributes& attributes,
                 const Layout& x_layout, bool expressible = true) {
  SCOPED_TRACE(op + " of " + to_string(shape) + " with " + to_string(x_layout));
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float32, shape});
  const ValueId y = g.add_node(op, {x}, attributes);
  const Node& node = g.graph().nodes.back();
  const auto layout = node.op->view(NodeView{g.graph(), node}, x_layout);
  ASSERT_EQ(layout.has_value(), expressible);
  if (!layout) return;
  ASSERT_EQ(layout->strides.size(), g.shape(y).size());

  // Each element of the storage holds its own position; x, read through its layout, holds
  // positions.
  const auto places = [](const Shape& s, const Layout& l) {
    HostTensor result(TensorType{DType::float32, s});
    std::vector<std::int64_t> index(s.size(), 0);
    for (float& v : result.as<float>()) {
      std::int64_t place = l.offset;
      for (std::size_t k = 0; k < s.size(); ++k) place += index[k] * l.strides[k];
      v = static_cast<float>(place);
      for (std::size_t k = s.size(); k-- > 0;) {
        if (++index[k] < s[k]) break;
        index[k] = 0;
      }
    }
    return result;
  };
  const auto moved = evaluate(g.graph(), {{"x", places(shape, x_layout)}}, {y});
  EXPECT_EQ(compare(places(g.shape(y), *layout), moved[0], 0), "");
}

Attributes shaped(Shape shape) { return {{"shape", std::move(shape)}}; }

TEST(Views, Reshape) {
  const auto view = [](Shape from, Shape to) {
    expect_view("Reshape", from, shaped(to), row_major(from));
  };
  view({2, 3, 4}, {6, 4});
  view({2, 3, 4}, {24});
  view({24}, {2, 1, 3, 4});
  view({2, 3, 4}, {4, 6});
  view({1, 6, 1}, {3, 2, 1});
  view({}, {1, 1});
  view({0, 3}, {3, 0, 2});

  // Columns come first in memory: axes can be split, but not joined.
  const Layout columns = permuted({4, 6}, {1, 0});
  expect_view("Reshape", {4, 6}, shaped({2, 2, 3, 2}), columns);
  expect_view("Reshape", {4, 6}, shaped({24}), columns, false);
  expect_view("Reshape", {4, 6}, shaped({4, 1, 6}), columns);
  // Channels-last maps: the spatial axes can be joined, but not with the channels.
  const Layout last = channels_last({2, 3, 4, 5});
  expect_view("Reshape", {2, 3, 4, 5}, shaped({2, 3, 20}), last);
  expect_view("Reshape", {2, 3, 4, 5}, shaped({2, 60}), last, false);
  // Broadcast axes can be joined.
  expect_view("Reshape", {2, 3, 4}, shaped({6, 4}), Layout{2, {0, 0, 1}});
  expect_view("Reshape", {2, 3, 4}, shaped({6, 4}), Layout{0, {0, 4, 1}}, false);
  // Parts of a larger matrix, as the heads of attention.
  expect_view("Reshape", {2, 5, 8}, shaped({2, 5, 2, 4}), Layout{8, {120, 24, 1}});
  expect_view("Reshape", {2, 5, 8}, shaped({10, 8}), Layout{8, {120, 24, 1}});
}

TEST(Views, TransposeSliceExpandIdentity) {
  const Layout gaps{3, {50, 11, 2}};
  const Shape shape{2, 3, 4};
  expect_view("Transpose", shape, {{"perm", Ints{2, 0, 1}}}, gaps);
  expect_view("Identity", shape, {}, gaps);
  expect_view("Expand", {3, 1}, shaped({2, 3, 4}), Layout{5, {7, 1}});
  expect_view("Slice", shape,
              {{"starts", Ints{1, 2, 0}}, {"sizes", Ints{1, 2, 2}}, {"steps", Ints{1, -2, 3}}},
              gaps);
  expect_view("Slice", shape,
              {{"starts", Ints{2, 0, 0}}, {"sizes", Ints{0, 3, 4}}, {"steps", Ints{1, 1, 1}}},
              gaps);
}

TEST(Views, OpaqueStorageHasNone) {
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float32, {2, 3}});
  Layout opaque;
  opaque.token = "blocked";
  for (const ValueId y : {g.transpose(x, {1, 0}), g.reshape(x, {6}), g.expand(x, {4, 2, 3})}) {
    const Node& node = g.graph().node(g.graph().value(y).producer);
    EXPECT_FALSE(node.op->view(NodeView{g.graph(), node}, opaque)) << node.op->name;
  }
}

TEST(Gather, IndexOutOfRangeIsReportedAndClamped) {
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float32, {3}});
  const ValueId ids = g.input("ids", {DType::int64, {3}});
  g.add_node("Gather", {x, ids});
  const Graph& graph = g.graph();
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  ErrorWord error;
  RunOptions options;
  options.error = &error;
  const auto y = run_node(
      *kernel, graph, graph.nodes[0],
      {HostTensor::from<float>({3}, {1, 2, 3}), HostTensor::from<std::int64_t>({3}, {-1, 7, -9})},
      options);
  EXPECT_EQ(numbers_of(y[0]), (std::vector<double>{3, 3, 1}));
  EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
  EXPECT_EQ(error.value.load(), 7);
}

std::string usage_error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Types, MessagesNameOperatorAndBothSides) {
  GraphBuilder g(operator_set());
  g.set_scope({"block/op"});
  const ValueId a = g.input("a", {DType::float32, {2, 3}});
  const ValueId b = g.input("b", {DType::float32, {4, 5}});
  const ValueId i = g.input("i", {DType::int32, {2, 3}});
  EXPECT_EQ(usage_error_of([&] { g.matmul(a, b); }),
            "block/op: MatMul: the inner extents differ: expected [2, 3], got [4, 5]");
  EXPECT_THAT(usage_error_of([&] { g.add(a, b); }), HasSubstr("[2, 3] and [4, 5]"));
  EXPECT_THAT(usage_error_of([&] { g.add(a, i); }), HasSubstr("expected float32, got int32"));
  EXPECT_THAT(usage_error_of([&] { g.add_node("Exp", {i}); }), HasSubstr("got int32"));
  EXPECT_THAT(usage_error_of([&] { g.reshape(a, {7}); }), HasSubstr("expected [7], got [2, 3]"));
  EXPECT_THAT(usage_error_of([&] {
                g.add_node("Concat", {a, b}, {{"axis", std::int64_t{0}}});
              }),
              HasSubstr("expected [4, 3], got [4, 5]"));
  EXPECT_THAT(usage_error_of([&] { g.add_node("Gather", {a, b}); }), HasSubstr("int32 or int64"));
  EXPECT_THAT(usage_error_of([&] { g.reduce_sum(a, {2}, true); }), HasSubstr("axes"));
  EXPECT_THAT(usage_error_of([&] { g.transpose(a, {1, 1}); }), HasSubstr("perm"));
  EXPECT_THAT(usage_error_of([&] { g.add_node("Add", {a}); }), HasSubstr("input 'b' is missing"));
  EXPECT_THAT(usage_error_of([&] { g.add_node("Neg", {a, b}); }), HasSubstr("too many inputs"));
  verify(g.graph());  // a refused node leaves the graph as it was
}

TEST(Costs, ProductsAndViews) {
  GraphBuilder g(operator_set());
  const ValueId a = g.input("a", {DType::float32, {2, 3, 4}});
  const ValueId b = g.input("b", {DType::float32, {4, 5}});
  g.matmul(a, b);
  EXPECT_EQ(cost_of(g.graph(), g.graph().nodes.back()).flops, 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(cost_of(g.graph(), g.graph().nodes.back()).bytes, 4.0 * (24 + 20 + 30));
  g.transpose(b, {1, 0});
  EXPECT_EQ(cost_of(g.graph(), g.graph().nodes.back()).bytes, 0);
  g.neg(b);
  EXPECT_EQ(cost_of(g.graph(), g.graph().nodes.back()).bytes, 4.0 * 40);
}

// Only looked-up rows count, not the whole table; the marks of its rows do not count either.
TEST(Costs, LookupsDoNotReadTheWholeTable) {
  GraphBuilder g(operator_set());
  constexpr std::int64_t rows = 1 << 20, columns = 16, ids = 10;
  const ValueId table = g.input("table", {DType::float32, {rows, columns}});
  const ValueId which = g.input("ids", {DType::int64, {ids}});
  g.add_node("Gather", {table, which});
  const auto bytes = [&] { return cost_of(g.graph(), g.graph().nodes.back()).bytes; };
  EXPECT_EQ(bytes(), 2.0 * 4 * ids * columns + 8 * ids);
  g.add_node("Gather", {table, which}, {{"to", std::string("float64")}});
  EXPECT_EQ(bytes(), (4.0 + 8) * ids * columns + 8 * ids);

  const ValueId marks = g.input("marks", {DType::int64, {rows / 64}});
  const ValueId ranks = g.input("ranks", {DType::int32, {rows / 64}});
  g.add_node("SplitIds", {which, marks, ranks}, {{"rows", rows}});
  EXPECT_EQ(bytes(), ids * (8.0 + 8 + 4 + 8 + 4));

  const ValueId touched = g.input("touched", {DType::boolean, {rows}});
  g.add_node("MarkRows", {touched, which}, {{"first", std::int64_t{1}}});
  EXPECT_EQ(bytes(), rows + ids * (8.0 + 1));
  g.add_node("MarkRows", {touched, which}, {{"first", std::int64_t{0}}});
  EXPECT_EQ(bytes(), ids * (8.0 + 1));
}

TEST(Layouts, Satisfies) {
  using Kind = LayoutConstraint::Kind;
  const Shape shape{2, 3, 4};
  const Layout plain = row_major(shape), gaps{0, {24, 8, 2}}, columns = permuted(shape, {2, 1, 0});
  const Layout broadcast{0, {0, 4, 1}}, moved{5, {12, 4, 1}};
  const auto check = [&](Kind kind, const Layout& layout) {
    return satisfies({kind, {}}, layout, shape);
  };
  EXPECT_TRUE(check(Kind::any, broadcast));
  EXPECT_TRUE(check(Kind::unit_stride, columns));
  EXPECT_FALSE(check(Kind::unit_stride, gaps));
  EXPECT_FALSE(check(Kind::unit_stride, broadcast));
  EXPECT_TRUE(check(Kind::dense, columns));
  EXPECT_FALSE(check(Kind::dense, gaps));
  EXPECT_TRUE(check(Kind::row_major, moved));
  EXPECT_FALSE(check(Kind::row_major, columns));
  EXPECT_TRUE(check(Kind::channels_last, channels_last(shape)));
  EXPECT_TRUE(satisfies({Kind::exact, columns}, columns, shape));
  EXPECT_FALSE(satisfies({Kind::exact, columns}, plain, shape));
  Layout opaque;
  opaque.token = "blocked";
  EXPECT_FALSE(check(Kind::any, opaque));
  EXPECT_TRUE(satisfies({Kind::exact, opaque}, opaque, shape));
}

}  // namespace
}  // namespace tandem::testing
