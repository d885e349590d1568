// PyTorch's cosine_embedding_loss: 1 - cos(a, b) for samples with label 1, max(0, cos(a, b) -
// margin) for those with label -1. The cosine is over the last axis.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct CosineEmbeddingOptions final : KindOptions {
  double margin = 0;
  void visit(KeyVisitor& v) override {
    v.key("margin", margin, between(-1, 1), "cosine below which the loss is 0");
  }
};

std::optional<Losses> build_cosine_embedding(LossBuilder& b) {
  GraphBuilder& g = b.g;
  if (!b.same_shapes(2)) return std::nullopt;
  const ValueId x = b.values[0], y = b.values[1];
  const Ints last{static_cast<std::int64_t>(g.shape(x).size()) - 1};
  const auto dot = [&](ValueId p, ValueId q) { return g.reduce_sum(g.mul(p, q), last, false); };
  constexpr double eps = 1e-12;  // PyTorch's
  const ValueId norms = b.op("Sqrt", g.mul(b.plus(dot(x, x), eps), b.plus(dot(y, y), eps)));
  const ValueId cosine = g.div(dot(x, y), norms);
  const auto sign = b.labels_like(cosine);
  if (!sign) return std::nullopt;
  const ValueId alike = b.op("Relu", *sign), differ = b.op("Relu", g.neg(*sign));
  const ValueId apart = b.op("Relu", b.plus(cosine, -b.options<CosineEmbeddingOptions>().margin));
  return Losses{g.add(g.mul(alike, b.one_minus(cosine)), g.mul(differ, apart)), {}};
}

}  // namespace

LossKind cosine_embedding() {
  return {
      .name = "cosine_embedding",
      .source = "PyTorch: cosine_embedding_loss",
      .help = "1 - cos(input1, input2) where the label is 1, max(0, cos - margin) where it is -1",
      .values = {{"input1", "value of the graph"}, {"input2", "value of the graph"}},
      .labels = {LabelForm::signs, "labels", "data field: -1 or 1, one a sample"},
      .options = CosineEmbeddingOptions{},
      .build = build_cosine_embedding};
}

}  // namespace tandem::losses
