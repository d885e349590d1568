// What a prediction returns for a value: the value itself, probabilities, or the class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/host_tensor.h"

namespace tandem {

/// 1 / (1 + exp(-x)), without overflow.
double sigmoid(double x);

/// The type in which numbers are returned: float32, float64 or int64.
DType given_out(DType dtype);

enum class PredictionForm : std::uint8_t {
  automatic,    // by the loss term: probability; class and its probability; the value
  values,       // as the graph has it
  classes,      // a number from 0
  probability,  // for class 1, or for every class
};

/// An array of predictions: float32, float64 or int64.
struct PredictedArray {
  std::string name;
  TensorType sample;                    // without the axis of the samples
  std::vector<std::string> words = {};  // class names by number; empty: only numbers
};

/// One value of the graph that a prediction returns, interpreted by the scores that its loss says
/// it is. With x a binary logit, the probability is 1 / (1 + exp(-x)); of binary scores, the class
/// is 1 where x > 0. With logits of classes, the probability of a class is its share in the softmax
/// over the axis of the classes; of class scores, the class is the first one with the greatest
/// score. All of it is computed in double precision. Scores that are no logits are returned as they
/// are, unless their class is requested.
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
  /// Sets the names of the classes, where the value gives any.
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
  Shape sample_;  // shape of one sample of the value
  std::size_t class_axis_ = 0;
};

}  // namespace tandem
