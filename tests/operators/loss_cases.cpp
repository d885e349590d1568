// Cases of losses over labels.
#include <cmath>

#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

CaseInput magnitudes(Shape shape, int k) {
  CaseInput input = patterned(std::move(shape), k);
  for (double& v : input.values) v = std::fabs(v);
  return fixed(std::move(input));
}

const Shape scores{2, 5, 3}, marks{2, 3};

CaseInput torch_labels(DType dtype = DType::int64) {
  return valued(marks, {0, 4, 2, 1, 1, 3}, dtype);
}

void add_label_weights(Cases& cases) {
  const auto add = [&](const char* name, const CaseInput& labels, const CaseInput& weights,
                       std::int64_t ignore_index, std::int64_t ignore) {
    add_case(cases, "LabelWeights", name, {labels, weights},
             {{"ignore_index", ignore_index}, {"ignore", ignore}, {"classes", 5}});
  };
  add("torch_weighted", torch_labels(), magnitudes({5}, 6), 1, 1);
  add("weighted_int32", torch_labels(DType::int32), magnitudes({5}, 6), 1, 0);
  add("ignored", valued({4}, {-100, 2, 0, -100}, DType::int64), absent(), -100, 1);
  cases.back().expected = {0, 1, 1, 0};
  add("ignored_above", valued({2, 2}, {9, 2, 0, 9}, DType::int32), magnitudes({5}, 0), 9, 1);
  add_case(cases, "LabelWeights", "two_classes", {indices({7}, 2), magnitudes({2}, 6)},
           {{"ignore_index", 0}, {"ignore", 1}, {"classes", 2}});
  add("ones", torch_labels(), absent(), 0, 0);
  cases.back().expected = {1, 1, 1, 1, 1, 1};
}

void add_cross_entropy(Cases& cases) {
  for (const double smoothing : {0.0, 0.1}) {
    const std::string name = smoothing == 0.0 ? "torch_sharp" : "torch_smooth";
    const Attributes attributes{{"label_smoothing", smoothing}};
    const std::vector<CaseInput> inputs{patterned(scores), torch_labels(), magnitudes(marks, 5)};
    add_case(cases, "SoftmaxCrossEntropy", name, inputs, attributes);
    const std::vector<CaseInput> y = outputs_of("SoftmaxCrossEntropy", inputs, attributes);
    add_case(cases, "SoftmaxCrossEntropyGrad", name,
             {patterned(marks, 3), inputs[0], inputs[1], inputs[2], y[1]}, attributes);
    add_case(cases, "SoftmaxCrossEntropyWithGrad", name,
             {patterned(marks, 3), inputs[0], inputs[1], inputs[2]}, attributes);
  }
  struct Case {
    const char* name;
    Shape logits;
    DType labels;
    bool weighted;
    double smoothing;
  };
  const std::vector<Case> more{{"matrix", {4, 7}, DType::int64, false, 0.0},
                               {"matrix_int32", {4, 7}, DType::int32, false, 0.25},
                               {"matrix_weighted", {4, 7}, DType::int64, true, 0.0},
                               {"batch_one", {1, 10}, DType::int64, false, 0.0},
                               {"two_classes", {9, 2}, DType::int64, true, 1.0},
                               {"one_class", {3, 1}, DType::int64, false, 0.0},
                               {"maps", {2, 3, 2, 3}, DType::int32, true, 0.1},
                               {"columns", {2, 3, 4, 5}, DType::int64, true, 0.1},
                               {"six_axes", {1, 3, 2, 1, 2, 2}, DType::int64, false, 0.0},
                               {"wide", {5, 67}, DType::int64, false, 0.0},
                               {"empty_batch", {0, 4}, DType::int64, false, 0.0}};
  for (const Case& c : more) {
    Shape labels = c.logits;
    labels.erase(labels.begin() + 1);
    const Attributes attributes{{"label_smoothing", c.smoothing}};
    CaseInput logits = random_input(c.logits);
    logits.low = -4, logits.high = 4;
    const CaseInput weights = c.weighted ? magnitudes(labels, 5) : absent();
    const CaseInput label = indices(labels, static_cast<double>(c.logits[1]), c.labels);
    add_case(cases, "SoftmaxCrossEntropy", c.name, {logits, label, weights}, attributes);
    const std::vector<CaseInput> y =
        outputs_of("SoftmaxCrossEntropy", {patterned(c.logits), label, weights}, attributes);
    add_case(cases, "SoftmaxCrossEntropyGrad", c.name,
             {patterned(labels, 3), patterned(c.logits), label, weights, y[1]}, attributes);
    add_case(cases, "SoftmaxCrossEntropyWithGrad", c.name,
             {patterned(labels, 3), logits, label, weights}, attributes);

    add_case(cases, "NegativeLogLikelihood", c.name, {logits, label, weights});
    add_case(cases, "NegativeLogLikelihoodGrad", c.name, {patterned(labels, 3), label, weights},
             {{"shape", c.logits}});
  }
  // Logits so large that exp overflows.
  add_case(cases, "SoftmaxCrossEntropy", "large",
           {valued({2, 2}, {1000, 0, -1000, 500}), valued({2}, {0, 0}, DType::int64), absent()});
  cases.back().expected = {0, 1500};
  cases.back().gradient_tolerance = 1e-4;
  add_case(cases, "NegativeLogLikelihood", "torch_weighted",
           {patterned(scores), torch_labels(), magnitudes(marks, 5)});
  add_case(cases, "NegativeLogLikelihoodGrad", "torch_weighted",
           {patterned(marks, 3), torch_labels(), magnitudes(marks, 5)}, {{"shape", scores}});
  // A label that is not a class counts as nothing if its weight is 0.
  const CaseInput bad = valued({3}, {1, -100, 7}, DType::int64);
  const CaseInput weight = fixed(valued({3}, {2, 0, 0}));
  add_case(cases, "SoftmaxCrossEntropy", "ignored",
           {valued({3, 2}, {0, 0, 5, 1, 2, 3}), bad, weight});
  cases.back().expected = {2 * std::log(2.0), 0, 0};
  add_case(cases, "SoftmaxCrossEntropyWithGrad", "ignored",
           {patterned({3}, 3), valued({3, 2}, {0, 0, 5, 1, 2, 3}), bad, weight});
  cases.back().expected = {2 * std::log(2.0), 0, 0};
  add_case(cases, "NegativeLogLikelihood", "ignored",
           {valued({3, 2}, {-1, -3, 5, 1, 2, 3}), bad, weight});
  cases.back().expected = {6, 0, 0};
}

}  // namespace

void add_loss_cases(Cases& cases) {
  add_label_weights(cases);
  add_cross_entropy(cases);
}

}  // namespace tandem::testing
