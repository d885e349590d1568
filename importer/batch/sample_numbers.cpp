#include "importer/batch/sample_numbers.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "importer/batch/follow_traits.h"
#include "importer/operators/elements_of.h"

namespace tandem::importer {
namespace {

Seen seen_operand(NodeContext& node, int i) {
  return seen(node.session(), node.scope(), node.node().input(i));
}

/// Where a lookup goes along samples: the axis of the data, and the column of the indices that
/// names its entries (0 where they are no tuples).
struct Place {
  std::size_t axis = 0, column = 0;
  bool by_tuples = false, by_elements = false;
};

std::optional<Place> place_of(const NodeContext& node, const Seen& data) {
  if (data.changed.size() != 1) return std::nullopt;
  const auto changed = static_cast<std::size_t>(data.changed[0]);
  const std::string& op = node.node().op_type();
  if (op == "GatherND" || op == "ScatterND") {
    const std::int64_t shared = op == "GatherND" ? node.integer("batch_dims", 0) : 0;
    const std::int64_t column = data.changed[0] - shared;
    if (column < 0 || node.rank(1) == 0 || column >= node.shape(1).back()) return std::nullopt;
    return Place{changed, static_cast<std::size_t>(column), true, false};
  }
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (axis != data.changed[0]) return std::nullopt;
  return Place{changed, 0, false, op != "Gather"};
}

}  // namespace

SampleLookup sample_lookup(NodeContext& node, const BatchRecord& old) {
  static constexpr std::string_view lookups[] = {"Gather",         "GatherND", "ScatterND",
                                                 "GatherElements", "Scatter",  "ScatterElements"};
  const std::string& op = node.node().op_type();
  const bool looks_up = std::find(std::begin(lookups), std::end(lookups), op) != std::end(lookups);
  if (old.batch != 1 || !looks_up || node.input_count() < 2) return SampleLookup::none;
  const Seen data = seen_operand(node, 0), indices = seen_operand(node, 1);
  if (!data.is_tensor || !indices.is_tensor) return SampleLookup::none;
  const std::optional<Place> place = place_of(node, data);
  if (!place) return SampleLookup::none;
  const Term& term = *indices.term;
  if (term.rows || data.term->rows || term.samples.numbered) return SampleLookup::literal;
  if (place->by_elements) return SampleLookup::unclear;
  if (indices.changed.empty()) return term.constant ? SampleLookup::none : SampleLookup::unclear;
  const std::int64_t entries = (*data.before)[place->axis];
  if (entries == 1) {
    const bool is_constant =
        term.constant || (place->by_tuples && place->column < 64 &&
                          (term.samples.constant_columns >> place->column & 1));
    if (!is_constant) return place->by_tuples ? SampleLookup::unclear : SampleLookup::literal;
  }
  const bool is_plain = indices.changed.size() == 1 && term.samples.before == 1 &&
                        data.term->samples.before == 1 &&
                        !(place->by_tuples && indices.changed[0] + 1 == node.rank(1));
  return is_plain ? SampleLookup::own : SampleLookup::unclear;
}

Term indices_in_samples(NodeContext& node, const BatchRecord& old) {
  const Seen data = seen_operand(node, 0), indices = seen_operand(node, 1);
  const Place place = *place_of(node, data);
  const Term x = *indices.term;
  const DType dtype = x.type.dtype;
  const std::int64_t entries = (*data.before)[place.axis] / old.batch;
  const std::size_t rank = x.type.shape.size();
  const auto at = static_cast<std::size_t>(indices.changed[0]);
  const std::int64_t each = (*indices.before)[at] / old.batch;  // elements per sample
  const std::int64_t columns = place.by_tuples ? x.type.shape.back() : 1;

  Shape shape(rank, 1), column(rank, 1);
  shape[at] = x.type.shape[at];
  if (place.by_tuples) shape.back() = column.back() = columns;
  std::vector<std::int64_t> numbers, extents;
  for (std::int64_t c = 0; c < columns; ++c)
    extents.push_back(c == static_cast<std::int64_t>(place.column) ? entries : 0);
  for (std::int64_t i = 0; i < shape[at]; ++i) {
    for (const std::int64_t extent : extents) numbers.push_back(i / each * extent);
  }
  const auto constant = [&](const Shape& of, const std::vector<std::int64_t>& values) {
    return node.constant(HostTensor::from(of, values).converted(dtype));
  };
  // Indices below 0 count from the end of the sample.
  const Term from_end = node.make("Add", {x, constant(column, extents)});
  const Term below = node.make("Less", {x, node.scalar(0, dtype)});
  const Term in_sample = node.make("Where", {below, from_end, x});
  return node.make("Add", {in_sample, constant(shape, numbers)});
}

}  // namespace tandem::importer
