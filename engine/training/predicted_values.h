// What is given out of a predicted value: itself, probabilities, or the class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// 1 / (1 + exp(-x)), without overflow.
double sigmoid(double x);

/// Numbers as they are given out: float32, float64 or int64.
DType given_out(DType dtype);

enum class PredictionForm : std::uint8_t {
  automatic,    // by the loss term: probability; class and its probability; the value
  values,       // as the graph has it
  classes,      // a number from 0
  probability,  // of class 1; of every class
};

/// An array of predictions: float32, float64 or int64.
struct PredictedArray {
  std::string name;
  TensorType sample;                    // without the axis of the samples
  std::vector<std::string> words = {};  // of classes, by number; empty: numbers alone
};

/// One value of the graph on its way out, by the scores that its loss says it is. With x a binary
/// logit, the probability is 1 / (1 + exp(-x)); of binary scores, the class is 1 where x > 0. With
/// logits of classes, the probability of a class is its share in the softmax over the axis of the
/// classes; of class scores, the class is the first one with the greatest score. All of it is
/// computed in double precision. Scores that are no logits are given out as they are, unless their
/// class is asked for.
class PredictedValue {
 public:
  /// `term`: the loss term that takes the value; may be null. `class_axis`: where the classes are,
  /// the samples being axis 0; negative: axis 1 of two, the last of three, as losses have it where
  /// both fit, which `note` says; else unknown. Throws Error{usage} where there is no such form of
  /// the value.
  PredictedValue(const std::string& name, const TensorType& type, const LossTerm* term,
                 PredictionForm form, int class_axis);

  const std::vector<PredictedArray>& arrays() const { return arrays_; }
  /// For people: what was assumed; "" where nothing was.
  const std::string& note() const { return note_; }
  /// What classes are called, where the value gives any.
  void name_classes(const std::vector<std::string>& words);
  /// Appends a tensor for each array, axis 0 counting the samples as in `value`.
  void convert(const HostTensor& value, std::vector<HostTensor>& to) const;

 private:
  enum class Made : std::uint8_t { value, sigmoid, sign, softmax, greatest_share, greatest };
  void find_classes(const std::string& name, const TensorType& type, int class_axis);
  void add(const std::string& name, DType dtype, Made made, bool without_classes);
  HostTensor make(Made made, const TensorType& type, const HostTensor& value) const;

  std::vector<PredictedArray> arrays_;
  std::vector<Made> made_;  // by array
  std::string note_;
  Shape sample_;  // of the value
  std::size_t class_axis_ = 0;
};

}  // namespace tandem
