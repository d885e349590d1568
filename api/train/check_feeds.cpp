#include "api/train/check_feeds.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/train/host_tensors.h"
#include "engine/data/array_set.h"
#include "engine/data/forwarding_source.h"
#include "engine/graph/dtype_dispatch.h"
#include "engine/graph/error.h"
#include "engine/train/divergence/divergence_cause.h"

namespace tandem::api {
namespace {

/// Whether all values are from `least` to `most`. Also false for types that it does not read, which
/// then need the slower check.
bool are_within(const HostTensor& tensor, double least, double most) {
  const auto all_of = [&](auto zero) {
    const auto values = tensor.as<decltype(zero)>();
    return std::all_of(values.begin(), values.end(), [&](auto value) {
      const auto number = static_cast<double>(value);
      return number >= least && number <= most;
    });
  };
  if (is_integer(tensor.dtype())) return with_type(integer_types, tensor.dtype(), all_of);
  const bool is_wide = tensor.dtype() == DType::float32 || tensor.dtype() == DType::float64;
  return is_wide && with_type(wide_floats, tensor.dtype(), all_of);
}

/// Arrays with equally many rows. One pass finds that all values are valid, which is the usual
/// case.
class FedSource final : public ForwardingSource {
 public:
  FedSource(std::shared_ptr<const tandem::DataSource> source, std::vector<HostTensor> arrays)
      : ForwardingSource(std::move(source)), arrays_(std::move(arrays)) {}

  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    if (!is_right(field, 0, static_cast<double>(limit) - 1))
      source_->check_range(field, limit, ignore);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    if (!is_right(field, least, most)) source_->check_numbers(field, least, most, expected);
  }

 private:
  bool is_right(int field, double least, double most) const {
    return are_within(arrays_[static_cast<std::size_t>(field)], least, most);
  }

  std::vector<HostTensor> arrays_;
};

/// Collects the feeds without copying them.
class FedArrays {
 public:
  void add(const std::string& name, const HostTensor& array) {
    TensorType sample = array.type();
    sample.shape.erase(sample.shape.begin());
    ArrayRows rows(name, std::move(sample));
    rows.append(array, "");
    set_->add(std::move(rows));
    arrays_.push_back(array);
  }
  /// Null where there are no feeds.
  std::shared_ptr<const tandem::DataSource> source() && {
    if (arrays_.empty()) return nullptr;
    std::vector<Diagnostic> problems;
    set_->finish(problems);
    if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
    return std::make_shared<FedSource>(source_of_arrays(std::move(set_)), std::move(arrays_));
  }

 private:
  std::shared_ptr<ArraySet> set_ = std::make_shared<ArraySet>();
  std::vector<HostTensor> arrays_;
};

/// Rewrites the problem for feeds: array and row instead of field and file. `has_rows`: whether the
/// array has a row for each sample.
Diagnostic of_feed(Diagnostic d, bool has_rows) {
  constexpr std::string_view of_data = "data.fields.";
  if (d.path.starts_with(of_data)) d.path.erase(0, of_data.size());
  if (d.file.starts_with(":")) set_place(d, std::string(d.file));
  if (d.file.empty() && d.line > 0 && has_rows)
    d.message = "row " + std::to_string(d.line) + ": " + d.message;
  d.line = d.file.empty() ? 0 : d.line;
  return d;
}

}  // namespace

void check_feeds(const FieldChecks& checks, const Tensors& feeds, const FieldTypes& types,
                 std::int64_t samples) {
  FedArrays by_sample, whole;
  for (const auto& [name, fed] : feeds) {
    const TensorType& type = types.at(name);
    const HostTensor tensor = host_tensor(fed, name);
    if (!type.shape.empty() && type.shape[0] == samples) {
      by_sample.add(name, tensor);
      continue;
    }
    Shape one_row = type.shape;
    one_row.insert(one_row.begin(), 1);
    whole.add(name, tensor.reshaped(std::move(one_row)));
  }
  std::vector<Diagnostic> problems;
  for (FedArrays* arrays : {&by_sample, &whole}) {
    const std::shared_ptr<const tandem::DataSource> source = std::move(*arrays).source();
    if (!source) continue;
    try {
      checks.check(*source);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics())
        problems.push_back(of_feed(d, arrays == &by_sample));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

std::vector<Diagnostic> not_finite_feeds(const Tensors& feeds, const FieldTypes& types) {
  std::vector<Diagnostic> found;
  for (const auto& [name, fed] : feeds) {
    const TensorType& type = types.at(name);
    if (!is_float(type.dtype) || type.shape.empty() || type.shape[0] == 0) continue;
    FedArrays one;
    one.add(name, host_tensor(fed, name));
    std::vector<std::int64_t> rows(static_cast<std::size_t>(type.shape[0]));
    std::iota(rows.begin(), rows.end(), 0);
    const std::shared_ptr<const tandem::DataSource> source = std::move(one).source();
    for (Diagnostic& d : not_finite_samples(*source, {0}, rows, nullptr))
      found.push_back(of_feed(std::move(d), true));
  }
  return found;
}

std::shared_ptr<const tandem::DataSource> source_of_feeds(const Tensors& feeds,
                                                          const FieldTypes& types) {
  FedArrays arrays;
  std::optional<std::int64_t> samples;
  std::vector<Diagnostic> problems;
  for (const auto& [name, fed] : feeds) {
    const Shape& shape = types.at(name).shape;
    const std::int64_t own = shape.empty() ? 0 : shape[0];
    if (own < 1 || samples.value_or(own) != own) {
      problems.push_back({.message = "this is not fed with one entry for each sample",
                          .path = name,
                          .expected = samples ? std::to_string(*samples) + " samples on axis 0"
                                              : "samples on axis 0",
                          .got = to_string(types.at(name))});
      continue;
    }
    samples = own;
    arrays.add(name, host_tensor(fed, name));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return std::move(arrays).source();
}

}  // namespace tandem::api
