#include "engine/data/buckets/buckets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/data/buckets/sequence_length.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// A field by name; -1 where that was reported.
int bucket_field(const BucketConfig& config, const char* key, const std::string& name,
                 const DataSource& data, std::vector<Diagnostic>& problems) {
  const int field = data.find_field(name);
  if (field >= 0) return field;
  std::vector<std::string> names;
  for (const DataField& known : data.fields()) names.push_back(known.name);
  problems.push_back(at(
      config.where, key, "there is no data field \"" + name + "\"", "one of " + joined(names), "",
      did_you_mean(nearest_name(name, names),
                   "add it: data.fields." + toml_key(name) + " = " + toml_string(name))));
  return -1;
}

bool is_as_long(const DataField& field, std::int64_t length) {
  return !field.sample.shape.empty() && field.sample.shape[0] == length;
}

/// Fields that are cut.
std::vector<int> cut_fields(const BucketConfig& config, const DataSource& data,
                            std::vector<Diagnostic>& problems) {
  constexpr const char* key = "data.buckets.fields";
  const std::int64_t longest = config.lengths.back();
  std::vector<int> cut;
  if (config.fields.empty()) {
    for (int i = 0; i < static_cast<int>(data.fields().size()); ++i) {
      if (is_as_long(data.fields()[static_cast<std::size_t>(i)], longest)) cut.push_back(i);
    }
    return cut;
  }
  for (const std::string& name : config.fields) {
    const int field = bucket_field(config, key, name, data, problems);
    if (field < 0) continue;
    const DataField& found = data.fields()[static_cast<std::size_t>(field)];
    if (is_as_long(found, longest)) {
      cut.push_back(field);
      continue;
    }
    problems.push_back(at(config.where, key,
                          "\"" + name + "\" is not as long as data.buckets.field",
                          std::to_string(longest) + " along the first axis of a sample",
                          to_string(found.sample), "leave it out"));
  }
  return cut;
}

/// By sample, the first bucket that holds it.
std::vector<std::uint8_t> buckets_of(const BucketConfig& config, const DataSource& data,
                                     int field) {
  constexpr std::int64_t piece = 256;
  const TensorType& sample = data.fields()[static_cast<std::size_t>(field)].sample;
  std::vector<std::uint8_t> result;
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < data.samples(); first += piece) {
    samples.resize(static_cast<std::size_t>(std::min(piece, data.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    TensorType type = sample;
    type.shape.insert(type.shape.begin(), static_cast<std::int64_t>(samples.size()));
    HostTensor values(std::move(type));
    data.fill(field, samples, nullptr, values.data());
    const auto* row = static_cast<const std::uint8_t*>(values.data());
    for (std::size_t i = 0; i < samples.size(); ++i, row += sample.bytes()) {
      const std::int64_t length = sequence_length(sample, row, config.pad);
      const auto bucket = std::lower_bound(config.lengths.begin(), config.lengths.end(), length);
      result.push_back(static_cast<std::uint8_t>(bucket - config.lengths.begin()));
    }
  }
  return result;
}

}  // namespace

void add_buckets(const BucketConfig& config, DataSets& sets) {
  const DataSource& data = *sets.train;
  std::vector<Diagnostic> problems;
  const int field = bucket_field(config, "data.buckets.field", config.field, data, problems);
  if (field >= 0) {
    const DataField& found = data.fields()[static_cast<std::size_t>(field)];
    const bool is_sequence = !found.sample.shape.empty() && found.sample.dtype != DType::boolean;
    if (!is_sequence || !is_as_long(found, config.lengths.back())) {
      problems.push_back(at(
          config.where, "data.buckets.lengths",
          is_sequence ? "the last bucket is not as long as the samples of \"" + config.field + "\""
                      : "samples of \"" + config.field + "\" are no sequences",
          is_sequence ? std::to_string(found.sample.shape[0]) : "numbers along an axis",
          is_sequence ? std::to_string(config.lengths.back()) : to_string(found.sample),
          "tokens(length=…), split(…, max=…) and data.length say how long samples are"));
    }
  }
  std::vector<int> cut;
  if (problems.empty()) cut = cut_fields(config, data, problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  sets.buckets = std::make_shared<const Buckets>(
      Buckets{config.lengths, buckets_of(config, data, field), std::move(cut)});
}

std::string to_string(const Buckets& buckets) {
  std::string text;
  for (std::size_t i = 0; i < buckets.lengths.size(); ++i) {
    const auto samples = std::count(buckets.of_samples.begin(), buckets.of_samples.end(),
                                    static_cast<std::uint8_t>(i));
    text += (i == 0 ? "" : ", ") + std::to_string(samples) + (i == 0 ? " samples" : "") +
            " up to " + std::to_string(buckets.lengths[i]);
  }
  return text;
}

}  // namespace tandem
