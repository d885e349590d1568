#include "tests/importer/composed_cases.h"

#include "engine/operators/scalar_functions.h"

namespace tandem::testing {
namespace {

using Kind = ComposedInput::Kind;
using Inputs = std::vector<ComposedInput>;
using Settings = std::vector<std::pair<std::string, ComposedAttribute>>;

template <class... Extents>
ComposedInput x(Extents... extents) {
  return {Kind::numbers, Shape{extents...}, {}};
}
template <class... Extents>
ComposedInput positive(Extents... extents) {
  return {Kind::positive, Shape{extents...}, {}};
}
template <class... Extents>
ComposedInput apart(Extents... extents) {
  return {Kind::apart, Shape{extents...}, {}};
}
ComposedInput fixed(Shape shape, std::vector<double> values) {
  return {Kind::fixed, std::move(shape), std::move(values)};
}
ComposedInput window(std::vector<double> values) {
  return {Kind::window, {static_cast<std::int64_t>(values.size())}, std::move(values)};
}
ComposedInput ids(Shape shape, std::vector<double> values) {
  return {Kind::integers, std::move(shape), std::move(values)};
}
ComposedInput truths(std::vector<double> values) {
  return {Kind::booleans, {static_cast<std::int64_t>(values.size())}, std::move(values)};
}
const ComposedInput none{Kind::absent, {}, {}};

/// Adds cases, one operator after the other.
class Table {
 public:
  Table& of(const char* op, int opset = 20) {
    op_ = op;
    opset_ = opset;
    return *this;
  }
  Table& add(Inputs inputs, Settings settings = {}) {
    cases.push_back({op_, opset_, std::move(inputs), std::move(settings)});
    return *this;
  }
  std::vector<ComposedCase> cases;

 private:
  std::string op_;
  int opset_ = 20;
};

void add_composed_elementwise(Table& t) {
  for (const ComposedFunction& row : composed_functions())
    t.of(row.name, 24).add({x(7)}).add({x(2, 3)}).add({x(1, 1)});
  for (const char* op : {"Sum", "Mean"})
    t.of(op).add({x(2, 3), x(3), x(2, 1)}).add({x(4)}).add({x(), x(2, 2)});
  t.of("SwiGLU", 28);
  t.add({x(2, 5), x(2, 5)}).add({x(1), x(1)}, {{"alpha", 1.5}}).add({x(2, 1, 3), x(2, 1, 3)});
}

void add_composed_views(Table& t) {
  t.of("Flatten").add({x(2, 3, 2)}).add({x(3, 1)}, {{"axis", 0}}).add({x(2, 1, 3)}, {{"axis", 2}});
  t.of("Squeeze").add({x(2, 1, 3), ids({1}, {1})}).add({x(1, 1)}).add({x(1, 4), ids({1}, {0})});
  t.of("Unsqueeze").add({x(3), ids({1}, {0})}).add({x(2, 3), ids({2}, {1, 3})});
  t.add({x(), ids({1}, {0})});
  t.of("Tile").add({x(2, 3), ids({2}, {2, 1})}).add({x(3), ids({1}, {3})});
  t.add({x(1, 2, 2), ids({3}, {2, 1, 2})});
  t.of("DepthToSpace").add({x(1, 4, 2, 3)}, {{"blocksize", 2}});
  t.add({x(2, 8, 1, 1)}, {{"blocksize", 2}, {"mode", "CRD"}});
  t.add({x(1, 9, 1, 2)}, {{"blocksize", 3}});
  t.of("SpaceToDepth").add({x(1, 1, 2, 4)}, {{"blocksize", 2}});
  t.add({x(2, 2, 2, 2)}, {{"blocksize", 2}}).add({x(1, 1, 3, 3)}, {{"blocksize", 3}});
  t.of("CenterCropPad").add({x(5, 4), ids({2}, {3, 6})}).add({x(1), ids({1}, {4})});
  t.add({x(2, 3, 4), ids({1}, {2})}, {{"axes", Ints{2}}});
}

void add_composed_places(Table& t) {
  t.of("GatherND").add({x(3, 4), ids({2, 1}, {2, -1})});
  t.add({x(2, 3, 2), ids({2, 2}, {0, 1, 1, 2})});
  t.add({x(2, 3), ids({2, 1}, {2, 0})}, {{"batch_dims", 1}});
  t.of("GatherElements").add({x(3, 2), ids({2, 2}, {0, 1, 2, 0})});
  t.add({x(2, 3), ids({2, 1}, {2, -1})}, {{"axis", 1}}).add({x(5), ids({3}, {4, 4, 0})});
  t.of("ScatterND").add({x(4), ids({2, 1}, {1, 3}), x(2)});
  t.add({x(3, 2), ids({1, 1}, {2}), x(1, 2)});
  t.add({x(2, 2, 3), ids({2, 2}, {0, 1, 1, 0}), x(2, 3)}, {{"reduction", "add"}});
  t.of("ScatterElements").add({x(3, 2), ids({1, 2}, {2, 0}), x(1, 2)});
  t.add({x(5), ids({2}, {1, 1}), x(2)}, {{"reduction", "add"}});
  t.add({x(2, 3), ids({2, 1}, {0, 2}), x(2, 1)}, {{"axis", 1}});
  t.of("Scatter", 10).add({x(3, 2), ids({1, 2}, {2, 0}), x(1, 2)});
  t.add({x(5), ids({2}, {1, 4}), x(2)}).add({x(2, 3), ids({2, 1}, {0, 2}), x(2, 1)}, {{"axis", 1}});
  t.of("TensorScatter", 24).add({x(2, 1, 4, 3), x(2, 1, 2, 3), ids({2}, {0, 1})});
  t.add({x(1, 3, 2), x(1, 1, 2), ids({1}, {2})});
  t.add({x(2, 3, 2), x(2, 3, 2)}, {{"mode", "circular"}});
  t.of("Compress").add({x(4), truths({1, 0, 1, 1})}, {{"axis", 0}});
  t.add({x(2, 3), truths({0, 1, 1})}, {{"axis", 1}}).add({x(1, 4), truths({1, 0, 1})});
  t.of("ReverseSequence").add({x(4, 2), ids({2}, {3, 1})});
  t.add({x(2, 3, 2), ids({2}, {1, 2})}, {{"batch_axis", 0}, {"time_axis", 1}});
  t.add({x(1, 1), ids({1}, {1})});
  t.of("Col2Im").add({x(1, 4, 4), ids({2}, {3, 3}), ids({2}, {2, 2})});
  t.add({x(1, 6, 2), ids({2}, {1, 3}), ids({2}, {1, 2})});
  t.add({x(2, 2, 3), ids({1}, {4}), ids({1}, {2})});
  t.of("OneHot").add({ids({3}, {0, 2, -1}), ids({}, {3}), x(2)});
  t.add({ids({2, 2}, {0, 1, 1, 0}), ids({}, {2}), x(2)}, {{"axis", 0}});
  t.add({ids({}, {1}), ids({}, {4}), x(2)});
  t.of("CumProd", 26).add({positive(4), ids({}, {0})});
  t.add({positive(2, 3), ids({}, {1})}, {{"exclusive", 1}});
  t.add({positive(1, 2, 2), ids({}, {1})}, {{"reverse", 1}});
}

void add_composed_images(Table& t) {
  t.of("Resize").add({x(1, 1, 4, 3), none, fixed({4}, {1, 1, 2, 2})}, {{"mode", "linear"}});
  t.add({x(2, 3), none, none, ids({2}, {2, 5})}, {{"mode", "nearest"}});
  t.add({x(1, 1, 5), none, fixed({3}, {1, 1, 0.6f})}, {{"mode", "linear"}, {"antialias", 1}});
  t.of("Upsample", 9).add({x(1, 1, 2, 2), fixed({4}, {1, 1, 2, 2})});
  t.add({x(2, 3), fixed({2}, {1, 2})}, {{"mode", "linear"}}).add({x(3), fixed({1}, {3})});
  t.of("AffineGrid").add({x(1, 2, 3), ids({4}, {1, 1, 2, 3})});
  t.add({x(2, 2, 3), ids({4}, {2, 1, 1, 2})}, {{"align_corners", 1}});
  t.add({x(1, 3, 4), ids({5}, {1, 1, 2, 1, 2})});
  t.of("GlobalAveragePool").add({x(2, 3, 4)}).add({x(1, 2, 3, 3)}).add({x(1, 1, 2, 1, 2)});
  t.of("GlobalMaxPool").add({apart(2, 3, 4)}).add({apart(1, 2, 3, 3)}).add({apart(1, 1, 2, 1, 2)});
  t.of("GlobalLpPool").add({x(2, 3, 4)}).add({x(1, 2, 3, 3)}, {{"p", 3}});
  t.add({x(1, 1, 2, 1, 2)}, {{"p", 1}});
  t.of("LpPool").add({x(1, 1, 4)}, {{"kernel_shape", Ints{2}}});
  t.add({x(2, 1, 3, 3)}, {{"kernel_shape", Ints{2, 2}}, {"p", 3}});
  t.add({x(1, 2, 2, 3)}, {{"kernel_shape", Ints{2, 1}}, {"strides", Ints{1, 2}}, {"p", 1}});
  const Ints two{2}, four{2, 2};
  t.of("MaxUnpool")
      .add({x(1, 1, 2, 2), ids({1, 1, 2, 2}, {0, 3, 8, 15})},
           {{"kernel_shape", four}, {"strides", four}});
  t.add({x(1, 1, 3), ids({1, 1, 3}, {1, 2, 5})}, {{"kernel_shape", two}, {"strides", two}});
  t.add({x(1, 2, 1, 2), ids({1, 2, 1, 2}, {0, 3, 8, 10})},
        {{"kernel_shape", four}, {"strides", four}});
}

void add_composed_reductions(Table& t) {
  for (const char* op : {"ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"}) {
    t.of(op).add({x(2, 3), ids({1}, {1})}).add({x(4)});
    t.add({x(2, 1, 3), ids({2}, {0, 2})}, {{"keepdims", 0}});
  }
  t.of("ReduceLogSum").add({positive(2, 3), ids({1}, {1})}).add({positive(4)});
  t.add({positive(2, 1, 3), ids({2}, {0, 2})}, {{"keepdims", 0}});
  t.of("ReduceMin").add({apart(2, 3), ids({1}, {1})}).add({apart(4)});
  t.add({apart(2, 1, 3), ids({2}, {0, 2})}, {{"keepdims", 0}});
}

void add_composed_products(Table& t) {
  t.of("Gemm").add({x(3, 4), x(5, 4), x(5)}, {{"transB", 1}, {"alpha", 0.5}});
  t.add({x(4, 3), x(4, 2)}, {{"transA", 1}}).add({x(1, 2), x(2, 1), x()}, {{"beta", -2.0}});
  t.of("Einsum").add({x(2, 3), x(3, 4)}, {{"equation", "ij,jk->ik"}});
  t.add({x(2, 3, 3)}, {{"equation", "bii->bi"}});
  t.add({x(2, 3), x(2, 3), x(3)}, {{"equation", "ab,ab,b->a"}});
  t.of("ConvTranspose").add({x(1, 2, 3), x(2, 3, 2), x(3)});
  t.add({x(1, 1, 2, 2), x(1, 2, 2, 2)}, {{"strides", Ints{2, 1}}});
  t.add({x(2, 4, 3), x(4, 1, 3)}, {{"group", 2}, {"pads", Ints{1, 0}}});
  t.of("DeformConv", 19).add({x(1, 2, 3, 3), x(2, 2, 2, 2), x(1, 8, 2, 2)});
  t.add({x(1, 1, 2, 3), x(1, 1, 1, 2), x(1, 4, 2, 2), x(1), x(1, 2, 2, 2)});
  t.add({x(2, 2, 3, 2), x(2, 1, 2, 1), x(2, 4, 2, 2)}, {{"group", 2}});
  t.of("DFT").add({x(1, 4, 1)}).add({x(2, 3, 1), none, ids({}, {1})}, {{"onesided", 1}});
  t.add({x(1, 2, 4, 2), none, ids({}, {2})}, {{"inverse", 1}});
  t.of("STFT").add({x(1, 8, 1), ids({}, {2}), window({0.5, 1, 1, 0.25})});
  t.add({x(2, 6, 1), ids({}, {3}), none, ids({}, {3})});
  t.add({x(1, 5, 1), ids({}, {1}), window({1, 0.5})});
}

void add_composed_normalizations(Table& t) {
  t.of("RMSNormalization", 23).add({x(2, 3), x(3)}).add({x(1, 4), x(4)});
  t.add({x(2, 2, 3), x(2, 3)}, {{"axis", 1}});
  t.of("InstanceNormalization").add({x(2, 3, 4), x(3), x(3)}).add({x(1, 2, 2, 2), x(2), x(2)});
  t.add({x(3, 1, 5), x(1), x(1)});
  t.of("GroupNormalization", 21).add({x(2, 4, 3), x(4), x(4)}, {{"num_groups", 2}});
  t.add({x(1, 2, 2, 2), x(2), x(2)}, {{"num_groups", 1}});
  t.add({x(2, 3, 2), x(3), x(3)}, {{"num_groups", 3}});
  t.of("MeanVarianceNormalization").add({x(2, 3, 2, 2)}).add({x(2, 3, 2, 1)});
  t.add({x(3, 4)}, {{"axes", Ints{0}}});
  t.of("LpNormalization").add({x(3, 4)}).add({x(5)}, {{"axis", 0}, {"p", 1}});
  t.add({x(2, 1, 3)}, {{"axis", 2}});
  t.of("LRN").add({x(1, 4, 2)}, {{"size", 3}}).add({x(2, 3, 2, 2)}, {{"size", 2}, {"beta", 0.5}});
  t.add({x(1, 1, 3)}, {{"size", 1}});
  t.of("RotaryEmbedding", 23).add({x(1, 2, 3, 4), x(5, 2), x(5, 2), ids({1, 3}, {4, 0, 1})});
  t.add({x(2, 1, 6), x(2, 1, 1), x(2, 1, 1)}, {{"num_heads", 3}, {"interleaved", 1}});
  t.add({x(1, 1, 2, 6), x(1, 2, 2), x(1, 2, 2)}, {{"rotary_embedding_dim", 4}});
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    t.of(op).add({x(3, 4), ids({3}, {1, 3, 0})});
    t.add({x(2, 3, 2), ids({2, 2}, {0, 2, 1, 1})}, {{"reduction", "sum"}});
    t.add({x(1, 2), ids({1}, {1})}, {{"reduction", "none"}});
  }
}

}  // namespace

std::vector<ComposedCase> composed_cases() {
  Table table;
  for (const auto part :
       {add_composed_elementwise, add_composed_views, add_composed_places, add_composed_images,
        add_composed_reductions, add_composed_products, add_composed_normalizations}) {
    part(table);
  }
  return std::move(table.cases);
}

}  // namespace tandem::testing
