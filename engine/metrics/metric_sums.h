// What metrics that are sums have in common: sums as bytes, and means over elements.
#pragma once

#include <cassert>
#include <cstring>
#include <limits>
#include <string>

#include "engine/metrics/exact_sum.h"
#include "engine/metrics/metric.h"

namespace tandem::metrics {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Numbers as bytes, for other ranks of the run: they have the same program.
template <class... T>
std::string bytes_of(const T&... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof(T)), ...);
  return bytes;
}

template <class T>
T taken_from(const std::string& bytes, std::size_t& at) {
  assert(at + sizeof(T) <= bytes.size());
  T number;
  std::memcpy(static_cast<void*>(&number), bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return number;
}

/// Adds to each number the one that `bytes_of` has written in its place.
template <class... T>
void add_numbers(const std::string& bytes, T&... numbers) {
  std::size_t at = 0;
  ((numbers += taken_from<T>(bytes, at)), ...);
  assert(at == bytes.size());
}

/// Calls f(value, label) for each element.
template <class F>
void each_element(const MetricInput& input, F f) {
  const std::int64_t elements = input.values.type().elements();
  assert(input.labels.type().elements() == elements);
  for (std::int64_t i = 0; i < elements; ++i) f(input.values.number(i), input.labels.number(i));
}

/// Mean of f(value, label) over all elements, then `finish` of it.
template <double (*f)(double value, double label), double (*finish)(double mean) = nullptr>
class MeanOfElements final : public Metric {
 public:
  void add(const MetricInput& input) override {
    each_element(input, [&](double value, double label) { sum_ += f(value, label); });
    count_ += input.values.type().elements();
  }
  std::string sums() const override { return bytes_of(sum_, count_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, sum_, count_); }
  double value() override {
    const double mean = count_ == 0 ? 0 : sum_.value() / static_cast<double>(count_);
    if constexpr (finish != nullptr) return finish(mean);
    return mean;
  }

 private:
  ExactSum sum_;
  std::int64_t count_ = 0;
};

/// `MetricKind::make` for a class without options.
template <class M>
std::unique_ptr<Metric> plain(const MetricConfig&, unsigned) {
  return std::make_unique<M>();
}

}  // namespace tandem::metrics
