// InfoNCE, with the negatives of the batch: the cross entropy that finds the positive of an anchor
// among the positives of all samples, and the extra negatives of all samples. As
// MultipleNegativesRankingLoss of sentence-transformers; with `symmetric` as its symmetric form,
// which without extra negatives is CLIP's loss.
#include <numeric>

#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct InfoNceOptions final : KindOptions {
  double temperature = 0.05;
  bool cosine = true;  // else dot products
  bool symmetric = false;
  void visit(KeyVisitor& v) override {
    v.key("temperature", temperature, between(1e-3, 1e6),
          "number by which similarities are divided: 1 / the scale");
    v.key("similarity", true_or_false(cosine, "cosine|dot"), "of two embeddings");
    v.key("symmetric", symmetric,
          "the mean with the loss that finds the anchor of a positive among all anchors");
  }
};

/// Whether the values are anchors [own, dim] and positives [own, dim] or [own, candidates, dim].
bool are_embeddings(LossBuilder& b) {
  const Shape &anchors = b.g.shape(b.values[0]), &positives = b.g.shape(b.values[1]);
  if (anchors.size() != 2) {
    b.fail("\"" + b.term.values[0] + "\" holds no embeddings", "[batch, dim]", to_string(anchors));
    return false;
  }
  const bool has_axes = positives.size() == 2 || (positives.size() == 3 && positives[1] > 0);
  if (has_axes && positives.front() == anchors[0] && positives.back() == anchors[1]) return true;
  b.fail("\"" + b.term.values[1] + "\" does not fit \"" + b.term.values[0] + "\"",
         to_string(anchors) + ", or [" + std::to_string(anchors[0]) + ", candidates, " +
             std::to_string(anchors[1]) + "] with the positive first",
         to_string(positives));
  return false;
}

/// x / |x| along the last axis, as PyTorch's normalize: 0 where x is 0.
ValueId normalised(LossBuilder& b, ValueId x) {
  GraphBuilder& g = b.g;
  const Ints last{static_cast<std::int64_t>(g.shape(x).size()) - 1};
  const ValueId squares = b.clip(g.reduce_sum(g.mul(x, x), last, true), 1e-24, 3.4e38);
  return g.div(x, b.op("Sqrt", squares));
}

/// -log softmax(rows columns^T / temperature)[label] of each row, whose label counts from `first`
/// in steps of `candidates`.
ValueId cross_entropy(LossBuilder& b, ValueId rows, ValueId columns, std::int64_t candidates) {
  GraphBuilder& g = b.g;
  const ValueId products = g.matmul(rows, g.transpose(columns, Ints{1, 0}));
  const ValueId logits = b.times(products, 1 / b.options<InfoNceOptions>().temperature);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(g.shape(rows)[0]));
  std::iota(labels.begin(), labels.end(), b.batch.first);
  for (std::int64_t& label : labels) label *= candidates;
  const Shape shape{g.shape(rows)[0]};
  return g.add_node("SoftmaxCrossEntropy",
                    {logits, g.constant(HostTensor::from<std::int64_t>(shape, labels))});
}

/// The positives [own, dim] among the candidates [own, candidates, dim].
ValueId first_candidates(GraphBuilder& g, ValueId all) {
  const Shape shape = g.shape(all);
  const Attributes first{
      {"starts", Ints{0, 0, 0}}, {"sizes", Ints{shape[0], 1, shape[2]}}, {"steps", Ints{1, 1, 1}}};
  return g.reshape(g.add_node("Slice", {all}, first), {shape[0], shape[2]});
}

std::optional<Losses> build_info_nce(LossBuilder& b) {
  if (!are_embeddings(b)) return std::nullopt;
  GraphBuilder& g = b.g;
  const auto& options = b.options<InfoNceOptions>();
  ValueId anchors = b.values[0], candidates = g.cast(b.values[1], g.dtype(anchors));
  const Shape own = g.shape(anchors);
  const std::int64_t each = g.shape(candidates).size() == 3 ? g.shape(candidates)[1] : 1;
  candidates = g.reshape(candidates, {own[0], each, own[1]});
  if (options.cosine) {
    anchors = normalised(b, anchors);
    candidates = normalised(b, candidates);
  }
  const ValueId all = b.of_all_samples(candidates);
  const std::int64_t samples = g.shape(all)[0];
  if (samples * each == 1)
    b.note("a batch of one sample without further candidates has no negatives: its loss is 0");
  const ValueId found = cross_entropy(b, anchors, g.reshape(all, {samples * each, own[1]}), each);
  if (!options.symmetric) return Losses{found, {}};
  const ValueId back =
      cross_entropy(b, first_candidates(g, candidates), b.of_all_samples(anchors), 1);
  return Losses{b.times(g.add(found, back), 0.5), {}};
}

}  // namespace

LossKind info_nce() {
  return {
      .name = "info_nce",
      .source =
          "sentence-transformers: MultipleNegativesRankingLoss and its symmetric form; CLIP's loss",
      .help =
          "-log softmax(similarity(anchor, all positives) / temperature)[own positive]: the "
          "positives of the other samples of the batch are the negatives. It needs whole "
          "batches, so no micro_batch; ranks exchange their embeddings",
      .values = {{"anchor", "value of the graph: [batch, dim]"},
                 {"positive",
                  "value of the graph: [batch, dim], or [batch, candidates, dim] with further "
                  "negatives behind the positive"}},
      .options = InfoNceOptions{},
      .compares_samples = true,
      .build = build_info_nce};
}

}  // namespace tandem::losses
