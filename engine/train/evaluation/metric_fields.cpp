#include "engine/train/evaluation/metric_fields.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {

int metric_field(const DataSource& source, const std::string& field, const std::string& metric) {
  Diagnostic d;
  d.path = "eval.metrics";
  const int index = source.find_field(field);
  if (index < 0) {
    const std::vector<std::string> names = [&] {
      std::vector<std::string> all;
      for (const DataField& known : source.fields()) all.push_back(known.name);
      return all;
    }();
    d.message = "\"" + metric + "\": there is no data field \"" + field + "\"";
    d.expected = "one of " + joined(names);
    d.fix = did_you_mean(nearest_name(field, names), "add it to [data.fields]");
    throw Error(ErrorKind::usage, std::move(d));
  }
  const TensorType& type = source.fields()[static_cast<std::size_t>(index)].sample;
  if (is_float(type.dtype) || type.elements() != 1) {
    d.message = "\"" + metric + "\": the data field \"" + field + "\" cannot distinguish samples";
    d.expected = "an integer for each sample";
    d.got = to_string(type);
    d.fix = is_float(type.dtype) ? "end its `as` with \"int64\"" : "name another field";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return index;
}

std::vector<std::int64_t> field_values(const DataSource& source, int field, std::int64_t first,
                                       std::int64_t count) {
  TensorType type = source.fields()[static_cast<std::size_t>(field)].sample;
  type.shape.insert(type.shape.begin(), count);
  HostTensor values(std::move(type));
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  source.fill(field, samples, nullptr, values.data());
  return values.integers();
}

std::vector<std::int64_t> slice_values(const DataSource& source, int field, std::size_t most,
                                       const std::string& metric) {
  constexpr std::size_t most_counted = 1'000'000;
  std::unordered_set<std::int64_t> different;
  each_piece(source, [&](std::int64_t first, std::int64_t count) {
    for (const std::int64_t value : field_values(source, field, first, count))
      different.insert(value);
    return different.size() <= most_counted;
  });
  if (different.size() > most) {
    Diagnostic d;
    d.path = "eval.metrics";
    d.message = "\"" + metric + "\": the data field \"" +
                source.fields()[static_cast<std::size_t>(field)].name +
                "\" has too many different values";
    d.expected = "at most " + std::to_string(most);
    d.got = (different.size() > most_counted ? "more than " + std::to_string(most_counted)
                                             : std::to_string(different.size()));
    d.fix = "name a coarser field, such as one with `bucketize` or `hash`; gauc has no such limit";
    throw Error(ErrorKind::data, std::move(d));
  }
  std::vector<std::int64_t> values(different.begin(), different.end());
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace tandem
