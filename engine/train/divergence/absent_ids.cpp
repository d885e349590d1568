#include "engine/train/divergence/absent_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/data/cells/unknown_words.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/divergence/id_remedies.h"

namespace tandem {

AbsentIds::AbsentIds(const RunConfig& config, const Graph& forward) : forward_(forward) {
  if (!config.data) return;
  for (const FieldConfig& field : config.data->fields) {
    if (field.out_of_range != OutOfRange::zero) continue;
    const std::int64_t rows = looked_up_rows(forward, field.name);
    if (rows == 0) continue;
    Field& counted = fields_.emplace_back();
    counted.name = field.name;
    counted.rows = rows;
    counted.tables = looked_up_tables(forward, field.name);
    for (const std::string& column : field.columns) {
      if (field.stacked) counted.columns.emplace_back().name = column;
    }
    if (counted.columns.empty())
      counted.columns.emplace_back().name = field.from.empty() ? field.name : field.from;
  }
}

void AbsentIds::add(const DataSource& source) {
  constexpr std::int64_t most_values = std::int64_t{1} << 18;
  constexpr std::size_t most_examples = 3;
  std::vector<std::int64_t> some;
  for (Field& field : fields_) {
    const int index = source.find_field(field.name);
    if (index < 0) continue;
    TensorType type = source.fields()[static_cast<std::size_t>(index)].sample;
    const std::int64_t each = type.elements();
    if (!is_integer(type.dtype) || each < 1) continue;
    const auto columns = std::ssize(field.columns);
    const std::int64_t of_column = each % columns == 0 ? each / columns : each;
    const std::int64_t piece = std::clamp<std::int64_t>(most_values / each, 1, 4096);
    type.shape.insert(type.shape.begin(), 0);
    for (std::int64_t first = 0; first < source.samples(); first += piece) {
      some.resize(static_cast<std::size_t>(std::min(piece, source.samples() - first)));
      std::iota(some.begin(), some.end(), first);
      type.shape[0] = std::ssize(some);
      HostTensor values(type);
      source.fill(index, some, nullptr, values.data());
      const std::vector<std::int64_t> ids = values.integers();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0) continue;
        const std::int64_t place = static_cast<std::int64_t>(i) % each / of_column;
        Column& column = field.columns[static_cast<std::size_t>(place)];
        ++column.values;
        if (ids[i] < field.rows) continue;
        field.greatest = std::max(field.greatest, static_cast<double>(ids[i]));
        ++column.absent;
        auto& shown = column.examples;
        if (shown.size() < most_examples &&
            std::find(shown.begin(), shown.end(), ids[i]) == shown.end())
          shown.push_back(ids[i]);
      }
    }
  }
}

void AbsentIds::add_ranges(const DataSource& source) {
  for (Field& field : fields_) {
    const int index = source.find_field(field.name);
    if (index < 0) continue;
    try {
      source.check_numbers(index, -std::numeric_limits<double>::infinity(),
                           static_cast<double>(field.rows - 1), "");
    } catch (const BadValues& error) {
      field.greatest = std::max(field.greatest, error.greatest);
      for (const Diagnostic& d : error.diagnostics()) {
        if (std::find(field.ranges.begin(), field.ranges.end(), d.got) == field.ranges.end())
          field.ranges.push_back(d.got);
      }
    }
  }
}

std::string AbsentIds::what_happens(const Field& field) const {
  const std::string line = line_for_ids(forward_, field.tables, field.greatest, field.rows);
  return fmt::format("name no row of the table, which has {}, and look up zeros (out_of_range){}",
                     field.rows, line.empty() ? "" : "; " + line + " gives each id a row");
}

std::vector<std::string> AbsentIds::warnings() const {
  std::vector<std::string> all;
  for (const Field& field : fields_) {
    for (const std::string& range : field.ranges)
      all.push_back(fmt::format("ids of the field {}, {}, {}; `tandem train --dry-run` counts them",
                                field.name, range, what_happens(field)));
    for (const Column& column : field.columns) {
      const double share = static_cast<double>(column.absent) /
                           static_cast<double>(std::max<std::int64_t>(column.values, 1));
      if (share <= most_unknown) continue;
      const auto shown = [](std::int64_t id) { return std::to_string(id); };
      all.push_back(fmt::format("{} of {} ids of `{}` ({:.3g} %, field {}: {}) {}", column.absent,
                                column.values, column.name, 100 * share, field.name,
                                joined(column.examples, ", ", shown), what_happens(field)));
    }
  }
  return all;
}

}  // namespace tandem
