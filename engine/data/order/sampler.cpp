#include "engine/data/order/sampler.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/data/number_text.h"
#include "engine/data/order/drawn_order.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr const char* sampler_key = "data.train.sampler.field";

/// The field that has one number for each sample.
int sampler_field(const SamplerConfig& config, const DataSource& data, bool has_classes) {
  const int field = data.find_field(config.field);
  if (field < 0) {
    std::vector<std::string> names;
    for (const DataField& known : data.fields()) names.push_back(known.name);
    Diagnostic d = at(config.where, sampler_key, "there is no data field \"" + config.field + "\"");
    d.expected = "one of " + joined(names);
    d.fix = did_you_mean(
        nearest_name(config.field, names),
        "add it: data.fields." + toml_key(config.field) + " = " + toml_string(config.field));
    throw Error(ErrorKind::usage, std::move(d));
  }
  const TensorType& type = data.fields()[static_cast<std::size_t>(field)].sample;
  const bool fits = type.elements() == 1 && type.dtype != DType::boolean &&
                    !(has_classes && is_float(type.dtype));
  if (!fits) {
    Diagnostic d =
        at(config.where, sampler_key,
           "the data field \"" + config.field + "\" does not have one value for each sample");
    d.expected = has_classes ? "an integer for each sample" : "a number for each sample";
    d.got = to_string(type);
    if (has_classes && is_float(type.dtype)) d.fix = "end its `as` with \"int64\"";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return field;
}

/// Calls f(sample, number) for the numbers of a field, in order.
template <class Take>
void each_number(const DataSource& data, int field, Take take) {
  constexpr std::int64_t piece = 4096;
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < data.samples(); first += piece) {
    samples.resize(static_cast<std::size_t>(std::min(piece, data.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    TensorType type = data.fields()[static_cast<std::size_t>(field)].sample;
    type.shape.insert(type.shape.begin(), static_cast<std::int64_t>(samples.size()));
    HostTensor values(std::move(type));
    data.fill(field, samples, nullptr, values.data());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(samples.size()); ++i)
      take(first + i, values.number(i));
  }
}

[[noreturn]] void refuse_number(const DataSource& data, int field, std::int64_t sample,
                                const std::string& message, const std::string& expected, double got,
                                std::string fix = "") {
  Diagnostic d;
  d.message = data.describe(field, sample) + ": " + message;
  d.path = sampler_key;
  d.expected = expected;
  d.got = number_text(got);
  d.fix = std::move(fix);
  throw Error(ErrorKind::data, std::move(d));
}

std::vector<double> weights_of(const SamplerConfig& config, const DataSource& data) {
  const bool has_classes = !config.class_weights.empty();
  const int field = sampler_field(config, data, has_classes);
  const auto classes = static_cast<double>(config.class_weights.size());
  std::vector<double> weights;
  double sum = 0;
  each_number(data, field, [&](std::int64_t sample, double number) {
    if (has_classes) {
      if (number < 0 || number >= classes) {
        refuse_number(data, field, sample, "this class has no weight",
                      "0 to " + number_text(classes - 1), number,
                      "give data.train.sampler.class_weights a number for each class");
      }
      number = config.class_weights[static_cast<std::size_t>(number)];
    } else if (!(number >= 0) || !std::isfinite(number)) {
      refuse_number(data, field, sample, "not a weight", "a number, 0 or more", number);
    }
    weights.push_back(number);
    sum += number;
  });
  if (sum > 0 && std::isfinite(sum)) return weights;
  Diagnostic d = at(config.where, sampler_key,
                    sum > 0 ? "the weights have no sum" : "all samples have the weight 0");
  d.expected = "a sum above 0 that is a number";
  d.got = number_text(sum);
  throw Error(ErrorKind::data, std::move(d));
}

std::shared_ptr<const SampleOrder> drawn_order(const SamplerConfig& config,
                                               const DataSource& data) {
  const std::int64_t count = config.samples > 0 ? config.samples : data.samples();
  if (config.kind == SamplerKind::weighted) return weighted_order(weights_of(config, data), count);
  const int field = sampler_field(config, data, true);
  std::vector<std::int64_t> classes;
  each_number(data, field, [&](std::int64_t, double number) {
    classes.push_back(static_cast<std::int64_t>(number));
  });
  return balanced_order(classes, count);
}

/// Whether a file is one of the source's, or lies in a folder of it.
bool is_of(const SourceConfig& source, const std::string& file) {
  for (const ArrayFiles& array : source.files) {
    for (const std::string& path : array.paths) {
      if (file == path || (file.starts_with(path) && file[path.size()] == '/')) return true;
    }
  }
  return false;
}

/// The source of a sample, -1 where none has its file.
std::int64_t source_of(const DataConfig& config, const DataSource& data, int field,
                       std::int64_t sample) {
  std::string file = data.describe(field, sample);
  for (int part = 0; part < 2; ++part) {  // with and without ":row"
    for (std::size_t i = 0; i < config.sources.size(); ++i) {
      if (is_of(config.sources[i], file)) return static_cast<std::int64_t>(i);
    }
    file.resize(std::min(file.size(), file.rfind(':')));
  }
  return -1;
}

/// A field whose files distinguish the first source from the last one: labels of pictures have no
/// files.
int telling_field(const DataConfig& config, const DataSource& data) {
  const auto last = static_cast<std::int64_t>(config.sources.size()) - 1;
  for (int field = 0; field < static_cast<int>(data.fields().size()); ++field) {
    if (source_of(config, data, field, 0) == 0 &&
        source_of(config, data, field, data.samples() - 1) == last)
      return field;
  }
  return -1;
}

[[noreturn]] void refuse_sources(const DataConfig& config, std::size_t source,
                                 std::string message) {
  const SourceConfig& refused = config.sources[source];
  Diagnostic d =
      at(refused.where, "data.train.sources." + std::to_string(source), std::move(message));
  if (!refused.files.empty() && !refused.files[0].paths.empty()) d.got = refused.files[0].paths[0];
  d.fix = "a source whose rows are all left out or held out has to go";
  throw Error(ErrorKind::data, std::move(d));
}

}  // namespace

std::vector<SourceShare> source_shares(const DataConfig& config, const DataSource& data) {
  const std::size_t count = config.sources.size();
  if (count == 1) return {{0, data.samples(), config.sources[0].weight}};
  const int field = telling_field(config, data);
  if (field < 0) refuse_sources(config, 0, "nothing of the first or the last source is trained on");
  std::vector<SourceShare> shares;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // Samples are in the order of the files: the first one of a later source is looked for.
    std::int64_t low = first, high = data.samples();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (source_of(config, data, field, middle) <= static_cast<std::int64_t>(i))
        low = middle + 1;
      else
        high = middle;
    }
    if (low == first) refuse_sources(config, i, "nothing of this source is trained on");
    shares.push_back({first, low - first, config.sources[i].weight});
    first = low;
  }
  return shares;
}

namespace {

/// "an epoch reads 80 samples: 60 of the 30 of a.csv, …".
std::string told_sources(const DataConfig& config, const std::vector<SourceShare>& shares,
                         std::int64_t places) {
  const std::vector<std::int64_t> taken = places_of_sources(shares, places);
  std::string text = "data       an epoch reads " + std::to_string(places) + " samples";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::vector<ArrayFiles>& files = config.sources[i].files;
    text += (i == 0 ? ": " : ", ") + std::to_string(taken[i]) + " from the " +
            std::to_string(shares[i].count) + " of source " + std::to_string(i + 1);
    if (files.empty() || files[0].paths.empty()) continue;
    text += " (" + std::filesystem::path(files[0].paths[0]).filename().string() +
            (files[0].paths.size() > 1 ? ", …)" : ")");
  }
  return text + (config.epoch_end == EpochEnd::first
                     ? "; it ends where the first of them has no sample left"
                     : "; it ends where the last of them has given all of its samples");
}

}  // namespace

std::shared_ptr<const SampleOrder> training_order(const DataConfig& config, const DataSource& data,
                                                  FunctionRef<void(const std::string&)> tell) {
  if (config.sampler.kind != SamplerKind::shuffle) return drawn_order(config.sampler, data);
  if (config.sources.empty()) return shuffled_order(data.samples(), config.shuffle);
  const std::vector<SourceShare> shares = source_shares(config, data);
  auto order = source_order(shares, config.epoch_end, config.shuffle);
  if (tell) tell(told_sources(config, shares, order->count()));
  return order;
}

}  // namespace tandem
