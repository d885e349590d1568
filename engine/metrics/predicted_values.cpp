#include "engine/metrics/predicted_values.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/error.h"
#include "engine/losses/loss.h"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& name, std::string message, std::string expected,
                         std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = name,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

}  // namespace

DType given_out(DType dtype) {
  if (dtype == DType::float64) return DType::float64;
  return is_float(dtype) || is_float8(dtype) ? DType::float32 : DType::int64;
}

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

PredictedValue::PredictedValue(const std::string& name, const TensorType& type,
                               const LossTerm* term, PredictionForm form, int class_axis)
    : sample_(type.shape.begin() + 1, type.shape.end()) {
  const unsigned scores = term != nullptr ? term->kind->scores : other_scores;
  const bool only_class = form == PredictionForm::classes;
  const bool binary = (scores & (only_class ? binary_scores : binary_logits)) != 0;
  const bool classes = (scores & (only_class ? class_scores : class_logits)) != 0;
  if (form == PredictionForm::values ||
      (form == PredictionForm::automatic && !binary && !classes)) {
    add(name, given_out(type.dtype), Made::value, false);
    return;
  }
  if (!binary && !classes) {
    refuse(name, "no loss term says what is probable here",
           "the logits of a term of kind " + losses_with(only_class ? binary_scores | class_scores
                                                                    : binary_logits | class_logits),
           "", "write the values: --as values");
  }
  if (binary) {
    const bool sign = form == PredictionForm::classes;
    add(sign ? "class" : "probability", sign ? DType::int64 : DType::float64,
        sign ? Made::sign : Made::sigmoid, false);
    return;
  }
  find_classes(name, type, class_axis);
  if (form == PredictionForm::probability) {
    add("probability", DType::float64, Made::softmax, false);
    return;
  }
  add("class", DType::int64, Made::greatest, true);
  if (form == PredictionForm::automatic)
    add("probability", DType::float64, Made::greatest_share, true);
}

void PredictedValue::find_classes(const std::string& name, const TensorType& type, int class_axis) {
  const auto rank = static_cast<int>(type.shape.size());
  const std::string axes = rank > 1 ? "1 to " + std::to_string(rank - 1) : "an axis of classes";
  if (class_axis < 0 && rank == 3) {
    class_axis = 2;
    note_ = "the classes of \"" + name + "\", " + to_string(type) +
            ", are taken to be on the last axis; --class-axis 1 says that they are on axis 1";
  }
  if (class_axis < 0 && rank != 2) {
    refuse(name, "which axis of these logits counts the classes?", "--class-axis with " + axes,
           to_string(type), "or write the values: --as values");
  }
  if (class_axis >= rank || class_axis == 0) {
    refuse(name, "these logits have no such axis of classes", axes, std::to_string(class_axis), "");
  }
  class_axis_ = static_cast<std::size_t>(class_axis < 0 ? 1 : class_axis) - 1;
}

void PredictedValue::add(const std::string& name, DType dtype, Made made, bool without_classes) {
  Shape shape = sample_;
  if (without_classes) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(class_axis_));
  arrays_.push_back({name, {dtype, shape}});
  made_.push_back(made);
}

void PredictedValue::name_classes(const std::vector<std::string>& words) {
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    if (made_[a] == Made::sign || made_[a] == Made::greatest) arrays_[a].words = words;
  }
}

HostTensor PredictedValue::make(Made made, const TensorType& type, const HostTensor& value) const {
  if (made == Made::value) return value.converted(type.dtype);
  HostTensor result(type);
  if (made == Made::sigmoid || made == Made::sign) {
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double x = value.number(i);
      if (made == Made::sigmoid) {
        result.as<double>()[static_cast<std::size_t>(i)] = sigmoid(x);
      } else {
        result.as<std::int64_t>()[static_cast<std::size_t>(i)] = x > 0;
      }
    }
    return result;
  }
  const Shape& shape = value.shape();
  const std::size_t axis = class_axis_ + 1;
  const std::int64_t classes = shape[axis];
  std::int64_t outer = 1, inner = 1;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (a < axis) outer *= shape[a];
    if (a > axis) inner *= shape[a];
  }
  for (std::int64_t row = 0; row < outer * inner; ++row) {
    const std::int64_t first = row / inner * classes * inner + row % inner;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c) {
      if (value.number(first + c * inner) > value.number(first + best * inner)) best = c;
    }
    const auto at = static_cast<std::size_t>(row);
    if (made == Made::greatest) {
      result.as<std::int64_t>()[at] = best;
      continue;
    }
    const double greatest = value.number(first + best * inner);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c)
      sum += std::exp(value.number(first + c * inner) - greatest);
    if (made == Made::greatest_share) {
      result.as<double>()[at] = 1 / sum;
      continue;
    }
    for (std::int64_t c = 0; c < classes; ++c) {
      const std::int64_t i = first + c * inner;
      result.as<double>()[static_cast<std::size_t>(i)] = std::exp(value.number(i) - greatest) / sum;
    }
  }
  return result;
}

void PredictedValue::convert(const HostTensor& value, std::vector<HostTensor>& to) const {
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    TensorType type = arrays_[a].sample;
    type.shape.insert(type.shape.begin(), value.shape()[0]);
    to.push_back(make(made_[a], type, value));
  }
}

}  // namespace tandem
