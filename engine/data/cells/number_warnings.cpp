#include "engine/data/cells/number_warnings.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "engine/data/transforms.h"
#include "engine/formats/count_text.h"

namespace tandem {
namespace {

/// The functions of the array up to `normalize`; unset where another one comes before.
std::optional<TransformPlan> up_to_normalize(const TableField& field) {
  TransformPlan plan(field.stored);
  if (!is_float(field.stored.dtype)) return std::nullopt;
  for (const Transform& function : field.rest) {
    plan.append(function);
    if (function.kind->name == "normalize") return plan;
    if (!function.function->only_copies({plan.to().dtype, {}})) return std::nullopt;
  }
  return std::nullopt;
}

/// What the functions make of the column's mean, plus `more`, in each place of the column.
HostTensor normalized_means(const TransformPlan& plan, const std::vector<ColumnStatistics>& columns,
                            double more) {
  HostTensor means(plan.from());
  const std::int64_t each = means.type().elements() / static_cast<std::int64_t>(columns.size());
  for (std::int64_t i = 0; i < means.type().elements(); ++i) {
    const ColumnStatistics& found = columns[static_cast<std::size_t>(i / each)];
    const double mean = found.sum / static_cast<double>(std::max<std::int64_t>(found.values, 1));
    if (means.type().dtype == DType::float64)
      means.as<double>()[static_cast<std::size_t>(i)] = mean + more;
    else
      means.as<float>()[static_cast<std::size_t>(i)] = static_cast<float>(mean + more);
  }
  HostTensor normalized(plan.to());
  plan.run(means.data(), {}, normalized.data());
  return normalized;
}

}  // namespace

std::vector<std::string> far_numbers(const TablePlan& plan,
                                     const std::vector<std::vector<ColumnStatistics>>& fields) {
  constexpr double most_deviations = 5;
  constexpr std::int64_t least_values = 30;
  std::vector<std::string> warnings;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (field.stored.dtype != DType::float64 && field.stored.dtype != DType::float32) continue;
    const std::optional<TransformPlan> functions = up_to_normalize(field);
    if (!functions || field.stored.elements() == 0) continue;
    const HostTensor at_mean = normalized_means(*functions, fields[f], 0);
    const HostTensor beside = normalized_means(*functions, fields[f], 1);
    const auto each = static_cast<std::size_t>(field.stored.elements()) /
                      std::max<std::size_t>(fields[f].size(), 1);
    for (std::size_t c = 0; c < fields[f].size(); ++c) {
      const auto place = static_cast<std::int64_t>(c * each);
      const double deviations = at_mean.number(place);
      const bool only_shifts = beside.number(place) - deviations == 1;  // no deviation is known
      if (fields[f][c].values < least_values || only_shifts ||
          !(std::abs(deviations) > most_deviations))
        continue;
      warnings.push_back(fmt::format(
          "the mean of `{}` is {:.6g}, which is {:.3g} standard deviations {} the mean of the "
          "training data, as normalize has them (field {}): are its numbers in another unit or "
          "form?",
          plan.columns[field.columns[c]],
          fields[f][c].sum / static_cast<double>(fields[f][c].values), std::abs(deviations),
          deviations > 0 ? "above" : "below", field.name));
    }
  }
  return warnings;
}

std::vector<std::string> mixed_dates(const TablePlan& plan,
                                     const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::string> warnings;
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!is_float(field.stored.dtype) || !field.numeric.empty())
      continue;  // another part of a date
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      const ColumnStatistics& found = fields[f][c];
      if (found.dates == 0 || found.small_times == 0) continue;
      warnings.push_back(
          fmt::format("`{}` holds {} and {} below 100000 (field {}), which are seconds "
                      "since 1970-01-01: years and days have to be written as dates",
                      plan.columns[field.columns[c]], count_text(found.dates, "date"),
                      count_text(found.small_times, "plain number"), field.name));
    }
  }
  return warnings;
}

}  // namespace tandem
