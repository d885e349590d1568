// Softmax, cross-entropy, likelihood and dropout against the reference.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

TEST(Softmax, AllAxes) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (std::int64_t axis : {0, 1, 2}) {
      check({op, {{random_tensor({3, 70, 33}, 1, -9, 9)}}, {{"axis", axis}}});
      check({std::string(op) + "Grad",
             {{random_tensor({3, 70, 33})}, {random_tensor({3, 70, 33}, 2, -2, 0.5)}},
             {{"axis", axis}}});
    }
    check({.op = op,
           .inputs = {{random_tensor({64, 1000}, 1, -90, 90)}},
           .attributes = {{"axis", std::int64_t{1}}},
           .tolerance = 2e-6});
    check({.op = op,
           .inputs = {{random_tensor({64, 10})}},
           .attributes = {{"axis", std::int64_t{1}}},
           .in_place = true});
  }
}

TEST(SoftmaxCrossEntropy, LabelsWeightsSmoothing) {
  for (const Shape& tail : {Shape{}, Shape{5}, Shape{3, 4}}) {
    for (double smoothing : {0.0, 0.1}) {
      for (DType dtype : {DType::int32, DType::int64}) {
        Shape logits{33, 65}, labels{33};
        logits.insert(logits.end(), tail.begin(), tail.end());
        labels.insert(labels.end(), tail.begin(), tail.end());
        const Attributes attributes{{"label_smoothing", smoothing}};
        const NodeInput x{random_tensor(logits, 1, -4, 4)},
            label{random_integers(labels, dtype, 0, 65)};
        const NodeInput weights{random_integers(labels, DType::float32, 0, 3, 9)};
        check({"SoftmaxCrossEntropy", {x, label}, attributes});
        check({"SoftmaxCrossEntropy", {x, label, weights}, attributes});
        const NodeInput dy{random_tensor(labels, 5)}, lse{random_tensor(labels, 6, 3, 5)};
        check({"SoftmaxCrossEntropyGrad", {dy, x, label, absent_input(), lse}, attributes});
        check({"SoftmaxCrossEntropyGrad", {dy, x, label, weights, lse}, attributes});
        check({"SoftmaxCrossEntropyWithGrad", {dy, x, label, absent_input()}, attributes});
        for (const std::vector<int>& unread :
             {std::vector<int>{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}}) {
          check({.op = "SoftmaxCrossEntropyWithGrad",
                 .inputs = {dy, x, label, weights},
                 .attributes = attributes,
                 .unread = unread});
        }
        check({"NegativeLogLikelihood", {x, label, weights}});
        check({"NegativeLogLikelihoodGrad", {dy, label, weights}, {{"shape", logits}}});
        check({"LabelWeights",
               {label, {random_tensor({65})}},
               {{"ignore_index", std::int64_t{4}},
                {"ignore", std::int64_t{1}},
                {"classes", std::int64_t{65}}}});
      }
    }
  }
  // A bad label is replaced by the nearest class; with weight 0 it does not count.
  check({"SoftmaxCrossEntropy",
         {{random_tensor({4, 3})},
          {HostTensor::from<std::int64_t>({4}, {-1, 9, 1, -100})},
          {HostTensor::from<float>({4}, {1, 1, 1, 0})}},
         {{"label_smoothing", 0.0}}});
  check({"SoftmaxCrossEntropyWithGrad",
         {{random_tensor({4}, 5)},
          {random_tensor({4, 3})},
          {HostTensor::from<std::int64_t>({4}, {-1, 9, 1, -100})},
          {HostTensor::from<float>({4}, {1, 1, 1, 0})}},
         {{"label_smoothing", 0.0}}});
}

/// Classes before other axes: incomplete vectors, several tiles of columns, more classes than a
/// block of sums has.
TEST(SoftmaxCrossEntropy, Columns) {
  for (const Shape& logits : {Shape{1, 4, 8}, Shape{3, 4, 2500}, Shape{2, 21, 13, 17},
                              Shape{2, 131, 70}, Shape{5, 1, 16}, Shape{1, 700, 9}}) {
    Shape labels = logits;
    labels.erase(labels.begin() + 1);
    const NodeInput x{random_tensor(logits, 1, -9, 9)};
    const NodeInput label{random_integers(labels, DType::int64, 0, logits[1])};
    const NodeInput weights{random_integers(labels, DType::float32, 0, 3, 9)};
    const NodeInput dy{random_tensor(labels, 5)}, lse{random_tensor(labels, 6, 3, 5)};
    for (const double smoothing : {0.0, 0.1}) {
      const auto same_of_any_threads = [&](const char* op, std::vector<NodeInput> inputs) {
        check({.op = op,
               .inputs = std::move(inputs),
               .attributes = {{"label_smoothing", smoothing}},
               .same_of_any_threads = true});
      };
      for (const NodeInput& weight : {absent_input(), weights}) {
        same_of_any_threads("SoftmaxCrossEntropy", {x, label, weight});
        same_of_any_threads("SoftmaxCrossEntropyGrad", {dy, x, label, weight, lse});
        same_of_any_threads("SoftmaxCrossEntropyWithGrad", {dy, x, label, weight});
      }
    }
  }
}

/// Labels that are no class are replaced by the nearest one. With weight 0 they do not count, even
/// if the logits are not finite.
TEST(SoftmaxCrossEntropy, ColumnsOfBadLabels) {
  HostTensor x = random_tensor({1, 3, 9});
  x.as<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  for (const double smoothing : {0.0, 0.1}) {
    const std::vector<NodeInput> inputs{
        {x},
        {HostTensor::from<std::int64_t>({1, 9}, {-1, 9, 1, -100, 2, 3, 0, 7, -7})},
        {HostTensor::from<float>({1, 9}, {1, 1, 1, 0, 2, 1, 1, 0, 0})}};
    std::vector<NodeInput> with_gradient = inputs;
    with_gradient.insert(with_gradient.begin(), {random_tensor({1, 9}, 5)});
    const Attributes attributes{{"label_smoothing", smoothing}};
    check({.op = "SoftmaxCrossEntropy", .inputs = inputs, .attributes = attributes, .unread = {1}});
    check({.op = "SoftmaxCrossEntropyWithGrad",
           .inputs = with_gradient,
           .attributes = attributes,
           .unread = {1}});
  }
}

TEST(Dropout, SameMaskAsReference) {
  for (double ratio : {0.0, 0.1, 0.5}) {
    for (std::int64_t n : {1, 257, 40003}) {
      check({.op = "Dropout",
             .inputs = {{random_tensor({n})}},
             .attributes = {{"ratio", ratio}},
             .tolerance = 1e-6});
      check({.op = "Dropout",
             .inputs = {{random_tensor({n})}},
             .attributes = {{"ratio", ratio}},
             .unread = {1}});
      check({"DropoutGrad",
             {{random_tensor({n})}, {random_integers({n}, DType::boolean, 0, 2)}},
             {{"ratio", ratio}}});
    }
  }
}

}  // namespace
}  // namespace tandem::testing
