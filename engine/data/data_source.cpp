#include "engine/data/data_source.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "engine/config/keys/config_value.h"
#include "engine/data/array_set.h"
#include "engine/data/arrays/read_splits.h"
#include "engine/data/bad_rows.h"
#include "engine/data/buckets/buckets.h"
#include "engine/data/mixed_source.h"
#include "engine/data/number_text.h"
#include "engine/data/order/sampler.h"
#include "engine/data/prepare_table.h"
#include "engine/data/random.h"
#include "engine/data/subset_source.h"
#include "engine/data/tokens/read_text.h"
#include "engine/data/transforms.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/stage_clock.h"
#include "engine/graph/error.h"
#include "engine/graph/finiteness.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/operators/checks.h"

namespace tandem {

int DataSource::find_field(std::string_view name) const {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

void DataSource::check_elements(int field, std::span<const std::int64_t> limits) const {
  constexpr std::int64_t samples_at_once = 4096;
  const DataField& info = fields()[static_cast<std::size_t>(field)];
  const auto each = static_cast<std::int64_t>(limits.size());
  assert(each == info.sample.elements());
  BadRows bad;
  std::vector<std::int64_t> rows;
  for (std::int64_t first = 0; first < samples(); first += samples_at_once) {
    rows.resize(static_cast<std::size_t>(std::min(samples_at_once, samples() - first)));
    std::iota(rows.begin(), rows.end(), first);
    HostTensor values(
        TensorType{info.sample.dtype, {static_cast<std::int64_t>(rows.size()), each}});
    fill(field, rows, nullptr, values.data());
    const std::vector<std::int64_t> ids = values.integers();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::int64_t wrong = -1;  // the first element that is out of range
      for (std::int64_t e = 0; e < each; ++e) {
        const std::int64_t id = ids[r * limits.size() + static_cast<std::size_t>(e)];
        const std::int64_t limit = limits[static_cast<std::size_t>(e)];
        if (limit < 0 || (id >= 0 && id < limit)) continue;
        bad.take_value(static_cast<double>(id));
        if (wrong < 0) wrong = e;
      }
      if (wrong < 0) continue;
      bad.take_row([&] {
        const auto e = static_cast<std::size_t>(wrong);
        const std::int64_t id = ids[r * limits.size() + e];
        const std::string origin = origin_of(field, wrong, id);
        Diagnostic d{.message = "out of range",
                     .file = describe(field, rows[r]),
                     .path = "data.fields." + info.name,
                     .expected = "0 to " + std::to_string(limits[e] - 1)};
        d.got = std::to_string(id) + (origin.empty() ? "" : ", " + origin);
        return d;
      });
    }
  }
  if (bad.any()) bad.refuse();
}

std::uint64_t Augmentation::seed_of(std::size_t index) const {
  const bool is_first = repeats.empty() || repeats[index] == 0;
  return is_first ? seed : mix(seed, repeats[index]);
}

std::int64_t DataSets::epoch_samples() const { return order ? order->count() : train->samples(); }

namespace {

struct FieldPlan {
  std::string name;
  const ArrayRows* array = nullptr;
  TransformPlan training, evaluation;  // with and without augmentation
  bool augments = false;
};

/// What `origin_of` says about a field.
using ValueOrigins =
    std::function<std::string(const std::string& field, std::int64_t element, std::int64_t value)>;

class ArraySource final : public DataSource {
 public:
  ArraySource(std::shared_ptr<const ArraySet> arrays, const std::vector<FieldConfig>& fields,
              const OpenOptions& options, std::vector<Diagnostic>& errors, ValueOrigins origins)
      : arrays_(std::move(arrays)), origins_(std::move(origins)) {
    samples_ = arrays_->rows();
    for (const FieldConfig& field : fields) add(field, options, errors);
  }

  const std::vector<DataField>& fields() const override { return fields_; }
  std::int64_t samples() const override { return samples_; }

  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    const FieldPlan& plan = plans_[static_cast<std::size_t>(field)];
    const bool augments = augmentation && plan.augments;
    const TransformPlan& functions = augments ? plan.training : plan.evaluation;
    auto* out = static_cast<std::uint8_t*>(to);
    const std::size_t bytes = functions.to().bytes();
    if (functions.only_copies()) {
      copy_rows(*plan.array, samples, bytes, out);
      return;
    }
    // The first function sees pictures as their files have them, before resize and crop.
    const RowMaker* whole = functions.takes_any_size() ? plan.array->maker() : nullptr;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t sample = samples[i];
      SampleKey key{.sample = sample};
      if (augments) {
        key.seed = augmentation->seed_of(i);
        key.epoch = augmentation->epoch;
      }
      try {
        if (whole != nullptr) {
          thread_local TensorType own;
          const void* picture = whole->make_whole(sample, own);
          const InStage transform(LoadStage::transform);
          functions.run(picture, own, key, out);
        } else {
          const void* row = plan.array->row(sample);
          const InStage transform(LoadStage::transform);
          functions.run(row, key, out);
        }
      } catch (const NotWhole& problem) {
        Diagnostic d = at_row(field, sample, problem.what());
        d.fix = "ids and class numbers are whole numbers; float32 keeps others as they are";
        throw BadValues(ErrorKind::data, std::move(d));
      } catch (const std::invalid_argument& problem) {
        throw Error(ErrorKind::data, at_row(field, sample, problem.what()));
      }
      out += bytes;
    }
  }

  bool may_refuse() const override {
    return std::any_of(plans_.begin(), plans_.end(), [](const FieldPlan& plan) {
      const RowMaker* const maker = plan.array->maker();
      return (maker != nullptr && maker->may_refuse()) || plan.training.may_refuse() ||
             plan.evaluation.may_refuse();
    });
  }

  std::string describe(int field, std::int64_t sample) const override {
    const auto [file, row] = plans_[static_cast<std::size_t>(field)].array->place(sample);
    return row == 0 ? file : file + ":" + std::to_string(row);
  }

  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    const DataField& info = fields_[static_cast<std::size_t>(field)];
    assert(is_integer(info.sample.dtype));
    if (is_integer(plans_[static_cast<std::size_t>(field)].array->sample().dtype) &&
        is_known_within(field, 0, static_cast<double>(limit) - 1))
      return;
    const bool is_unsigned = info.sample.dtype == DType::uint64;
    check_values(
        field, "0 to " + std::to_string(limit - 1),
        [](const HostTensor& values) { return values.integers(); },
        [&](std::int64_t value) {
          return (value < 0 || value >= limit) && !(ignore && value == *ignore);
        },
        [&](std::int64_t value) {
          return is_unsigned ? std::to_string(static_cast<std::uint64_t>(value))
                             : std::to_string(value);
        });
  }

  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    if (is_known_within(field, least, most)) return;
    check_values(
        field, expected,
        [](const HostTensor& values) {
          const HostTensor wide = values.converted(DType::float64);
          return std::vector<double>(wide.as<double>().begin(), wide.as<double>().end());
        },
        [&](double value) { return !(value >= least && value <= most); },
        [](double value) { return number_text(value); });
  }

  std::string origin_of(int field, std::int64_t element, std::int64_t value) const override {
    return origins_ ? origins_(fields_[static_cast<std::size_t>(field)].name, element, value) : "";
  }

  std::vector<std::int64_t> nan_samples(int field) const override {
    const ArrayRows& array = *plans_[static_cast<std::size_t>(field)].array;
    const TensorType& type = array.sample();
    const bool are_floats =
        is_float(type.dtype) && is_float(fields_[static_cast<std::size_t>(field)].sample.dtype);
    std::vector<std::int64_t> found;
    if (!are_floats || array.range || type.elements() == 0) return found;
    constexpr std::size_t range_bytes = std::size_t{1} << 22;
    std::mutex mutex;
    parallel_row_ranges(
        file_threads(), samples_, type.bytes(), range_bytes,
        [&](std::int64_t first, std::int64_t count) {
          std::vector<std::int64_t> own;
          for (std::int64_t i = first; i < first + count; ++i) {
            if (finiteness_of(type.dtype, array.row(i), type.elements()) == Finiteness::nan)
              own.push_back(i);
          }
          const std::lock_guard lock(mutex);
          found.insert(found.end(), own.begin(), own.end());
        });
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  /// Copies rows; those that are adjacent in memory are copied as one piece.
  static void copy_rows(const ArrayRows& array, std::span<const std::int64_t> samples,
                        std::size_t bytes, std::uint8_t* to) {
    if (const RowMaker* maker = array.maker()) {
      for (std::size_t i = 0; i < samples.size(); ++i) maker->make(samples[i], to + i * bytes);
      return;
    }
    for (std::size_t i = 0; i < samples.size();) {
      const auto* from = static_cast<const std::uint8_t*>(array.row(samples[i]));
      std::size_t count = 1;
      while (i + count < samples.size() && array.row(samples[i + count]) == from + count * bytes)
        ++count;
      if (bytes > 0) std::memcpy(to + i * bytes, from, count * bytes);
      i += count;
    }
  }

  /// Whether the files' statistics show it without reading the field.
  bool is_known_within(int field, double least, double most) const {
    const FieldPlan& plan = plans_[static_cast<std::size_t>(field)];
    const auto& range = plan.array->range;
    return range && plan.evaluation.only_casts() && range->first >= least && range->second <= most;
  }

  /// Reads a field whole and throws where a sample has a value that `is_bad`. `read`: the values of
  /// some samples, in order; `text` shows one.
  template <class Read, class IsBad, class Text>
  void check_values(int field, const std::string& expected, Read read, IsBad is_bad,
                    Text text) const {
    constexpr std::int64_t most_samples = 4096, most_values = std::int64_t{1} << 18;
    const DataField& info = fields_[static_cast<std::size_t>(field)];
    const std::int64_t each = info.sample.elements();
    const std::int64_t piece =
        std::clamp<std::int64_t>(most_values / std::max<std::int64_t>(each, 1), 1, most_samples);
    std::vector<std::int64_t> samples;
    BadRows bad;
    for (std::int64_t first = 0; first < samples_; first += piece) {
      samples.clear();
      for (std::int64_t i = first; i < std::min(first + piece, samples_); ++i) samples.push_back(i);
      HostTensor values(
          TensorType{info.sample.dtype, {static_cast<std::int64_t>(samples.size()), each}});
      fill(field, samples, nullptr, values.data());
      const auto numbers = read(values);
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(i) * each;
        const auto wrong = std::find_if(begin, begin + each, is_bad);
        if (wrong == begin + each) continue;
        for (auto value = wrong; value != begin + each; ++value) {
          if (is_bad(*value)) bad.take_value(static_cast<double>(*value));
        }
        bad.take_row([&] {
          Diagnostic d = at_row(field, samples[i], "out of range");
          d.expected = expected;
          d.got = text(*wrong);
          if constexpr (std::is_same_v<std::decay_t<decltype(*wrong)>, std::int64_t>) {
            const std::string origin = origin_of(field, wrong - begin, *wrong);
            if (!origin.empty()) d.got += ", " + origin;
          }
          return d;
        });
      }
    }
    if (bad.any()) bad.refuse();
  }

  Diagnostic at_row(int field, std::int64_t sample, std::string message) const {
    const FieldPlan& plan = plans_[static_cast<std::size_t>(field)];
    const auto [file, row] = plan.array->place(sample);
    return {.message = std::move(message),
            .file = file,
            .line = static_cast<int>(row),
            .path = "data.fields." + plan.name};
  }

  void add(const FieldConfig& field, const OpenOptions& options, std::vector<Diagnostic>& errors) {
    const auto report = [&](const Where& where, std::string message) {
      errors.push_back(at(where, "data.fields." + field.name, std::move(message)));
    };
    const ArrayRows* array = arrays_->find(field.from);
    if (!array) {
      const std::vector<std::string> names = arrays_->names();
      report(field.where, "no array `" + field.from + "` in the files");
      errors.back().expected = joined(names);
      errors.back().fix = did_you_mean(nearest_name(field.from, names));
      return;
    }

    const auto lead_end = std::find_if(field.as.begin(), field.as.end(),
                                       [](const Transform& t) { return !t.kind->before_augment; });
    const auto compile = [&](bool augment) {
      TransformPlan plan(array->sample());
      if (field.out_of_range == OutOfRange::zero) plan.narrow_ids();
      const auto append = [&](auto begin, auto end) {
        for (auto it = begin; it != end; ++it) {
          try {
            plan.append(*it);
          } catch (const std::invalid_argument& problem) {
            throw Error(ErrorKind::usage, at(it->where, "data.fields." + field.name,
                                             it->text + ": " + problem.what()));
          }
        }
      };
      append(field.as.begin(), lead_end);
      if (augment) append(field.augment.begin(), field.augment.end());
      append(lead_end, field.as.end());
      const auto wanted = options.integer_types.find(field.name);
      if (wanted != options.integer_types.end() && is_integer(plan.to().dtype) &&
          !(plan.to().dtype == DType::int32 && options.keep_int32.contains(field.name))) {
        plan.append_cast(wanted->second);
      }
      return plan;
    };
    try {
      FieldPlan plan{field.name, array, compile(true), compile(false), !field.augment.empty()};
      if (plan.training.to() != plan.evaluation.to()) {
        report(field.augment.back().where, "augmentation gives " + to_string(plan.training.to()) +
                                               ", but evaluation sees " +
                                               to_string(plan.evaluation.to()));
        errors.back().fix = "crop with padding, or resize";
        return;
      }
      fields_.push_back({field.name, plan.evaluation.to()});
      plans_.push_back(std::move(plan));
    } catch (const Error& error) {
      const auto& found = error.diagnostics();
      errors.insert(errors.end(), found.begin(), found.end());
    }
  }

  std::shared_ptr<const ArraySet> arrays_;
  std::vector<DataField> fields_;
  std::vector<FieldPlan> plans_;
  std::int64_t samples_ = 0;
  ValueOrigins origins_;
};

std::vector<FieldConfig> fields_of(const std::vector<FieldConfig>& fields, const ArraySet& arrays) {
  if (!fields.empty()) return fields;
  std::vector<FieldConfig> all;
  for (const ArrayRows& array : arrays.arrays()) {
    all.push_back({.name = array.name(), .from = array.name()});
  }
  return all;
}

std::shared_ptr<const DataSource> make_source(std::shared_ptr<const ArraySet> arrays,
                                              const std::vector<FieldConfig>& fields,
                                              const OpenOptions& options,
                                              std::vector<Diagnostic>& errors,
                                              ValueOrigins origins = {}) {
  const std::vector<FieldConfig> wanted = fields_of(fields, *arrays);
  return std::make_shared<ArraySource>(std::move(arrays), wanted, options, errors,
                                       std::move(origins));
}

// Held-out samples are chosen by a shuffle of their own and stay in the order of the files.
DataSets split_off(std::shared_ptr<const DataSource> whole, double fraction, std::uint64_t seed,
                   const Where& where) {
  constexpr std::uint64_t split_key = 0x73706c6974;
  const std::int64_t samples = whole->samples();
  const std::int64_t held = std::llround(fraction * static_cast<double>(samples));
  if (held < 1 || held >= samples) {
    Diagnostic d =
        at(where, "data.eval.fraction", "the fraction leaves nothing to train or to evaluate on");
    d.got = std::to_string(samples) + " samples";
    throw Error(ErrorKind::data, std::move(d));
  }
  std::vector<std::int64_t> order =
      epoch_order(samples, {ShuffleConfig::Kind::full}, seed ^ split_key, 0);
  std::vector<std::int64_t> eval(order.begin(), order.begin() + held);
  std::vector<std::int64_t> train(order.begin() + held, order.end());
  std::sort(eval.begin(), eval.end());
  std::sort(train.begin(), train.end());
  return {make_subset_source(whole, std::move(train)), make_subset_source(whole, std::move(eval))};
}

void compare_splits(const DataSource& train, const DataSource& eval, const Where& where,
                    std::vector<Diagnostic>& errors) {
  for (const DataField& field : train.fields()) {
    const int other = eval.find_field(field.name);
    if (other < 0) continue;  // reported where it was looked for
    const TensorType& type = eval.fields()[static_cast<std::size_t>(other)].sample;
    if (type == field.sample) continue;
    Diagnostic& d = errors.emplace_back(
        at(where, "data.fields." + field.name, "the held-out data has another type"));
    d.expected = to_string(field.sample) + " a sample";
    d.got = to_string(type);
  }
}

DataSets open_table(const DataConfig& config, const OpenOptions& options) {
  const PreparedTable table = prepare_table(config, options);
  const std::vector<FieldConfig> fields = array_fields(table, config.fields);
  std::vector<Diagnostic> errors;
  DataSets sets;
  sets.vocabularies = table.vocabularies;
  sets.warnings = table.warnings;
  if (table.plan.tokenizer) {
    sets.vocabularies.push_back(saved_tokenizer(*table.plan.tokenizer, config.table()->tokenizer));
  }
  const ValueOrigins origins = [table](const std::string& field, std::int64_t element,
                                       std::int64_t value) {
    return origin_in_table(table, field, element, value);
  };
  sets.train = make_source(open_prepared(table, false), fields, options, errors, origins);
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  if (!config.eval.files.empty()) {
    sets.eval = make_source(open_prepared(table, true), fields, options, errors, origins);
  } else if (config.eval_fraction > 0) {
    DataSets parts = split_off(sets.train, config.eval_fraction, options.seed, config.where);
    sets.train = std::move(parts.train);
    sets.eval = std::move(parts.eval);
  }
  return sets;
}

DataSets open_sets(const DataConfig& config, const OpenOptions& options) {
  if (config.is_of_program()) {
    Diagnostic d = at(config.where, "data.kind", "the samples come from the program that trains");
    d.fix = "give files with another data.kind, or train with the library and a DataSource";
    throw Error(ErrorKind::usage, std::move(d));
  }
  if (config.table()) return open_table(config, options);
  ArrayNames names;
  for (const FieldConfig& field : config.fields) {
    if (!names) names.emplace();
    names->insert(field.from);
  }
  std::vector<Diagnostic> broken, misfits;  // broken: files; misfits: functions
  DataSets sets;
  ReadSplits splits = read_splits(config, names, options, broken);
  const std::shared_ptr<const ArraySet> train = splits.train, eval = splits.eval;
  sets.vocabularies = std::move(splits.vocabularies);
  sets.warnings = std::move(splits.warnings);
  sets.train_tokens = std::move(splits.train_tokens);
  sets.eval_tokens = std::move(splits.eval_tokens);
  OpenOptions taken = options;
  for (const FieldConfig& field :
       train&& eval ? fields_of(config.fields, *train) : std::vector<FieldConfig>{}) {
    const ArrayRows *a = train->find(field.from), *b = eval->find(field.from);
    if (a && b && a->sample().dtype != b->sample().dtype) taken.keep_int32.erase(field.name);
  }
  if (train) sets.train = make_source(train, config.fields, taken, misfits);
  if (eval) {
    const std::size_t before = misfits.size();
    sets.eval = make_source(eval, config.fields, taken, misfits);
    if (before > 0) misfits.resize(before);  // the same functions do not fit the same arrays twice
  }
  if (sets.train && sets.eval && misfits.empty()) {
    compare_splits(*sets.train, *sets.eval, config.where, broken);
  }
  if (!broken.empty()) {
    broken.insert(broken.end(), misfits.begin(), misfits.end());
    throw Error(ErrorKind::data, std::move(broken));
  }
  if (!misfits.empty()) throw Error(ErrorKind::usage, std::move(misfits));
  if (config.eval_fraction > 0) {
    DataSets parts = split_off(sets.train, config.eval_fraction, options.seed, config.where);
    sets.train = std::move(parts.train);
    sets.eval = std::move(parts.eval);
  }
  return sets;
}

/// Refuses random functions on fields that buckets cut: they may put values after the length that
/// the samples have without them.
void refuse_augmented_buckets(const DataConfig& config, const DataSets& sets) {
  for (const int index : sets.buckets->fields) {
    const std::string& name = sets.train->fields()[static_cast<std::size_t>(index)].name;
    for (const FieldConfig& field : config.fields) {
      if (field.name != name || field.augment.empty()) continue;
      Diagnostic d = at(field.augment[0].where, "data.fields." + name + ".augment",
                        "data.buckets cuts this field by its length without it");
      d.got = field.augment[0].text;
      d.fix = "leave it out, or name the fields that are cut in data.buckets.fields";
      throw Error(ErrorKind::usage, std::move(d));
    }
  }
}

/// What training does with samples, wherever they come from.
DataSets in_training_order(const DataConfig& config, DataSets sets, const OpenOptions& options) {
  sets.order = training_order(config, *sets.train, options.on_message);
  if (!config.buckets.lengths.empty()) {
    add_buckets(config.buckets, sets);
    refuse_augmented_buckets(config, sets);
    if (options.on_message) options.on_message("buckets    " + to_string(*sets.buckets));
  }
  sets.train = make_mixed_source(std::move(sets.train), config.mix, config.where);
  return sets;
}

}  // namespace

DataSets open_data(const DataConfig& config, const OpenOptions& options) {
  return in_training_order(config, open_sets(config, options), options);
}

DataSets data_of_program(const DataConfig& config, std::shared_ptr<const DataSource> train,
                         std::shared_ptr<const DataSource> eval, const OpenOptions& options) {
  DataSets sets;
  sets.train = std::move(train);
  sets.eval = std::move(eval);
  std::vector<Diagnostic> misfits;
  if (sets.eval) compare_splits(*sets.train, *sets.eval, config.where, misfits);
  if (!misfits.empty()) throw Error(ErrorKind::data, std::move(misfits));
  if (!sets.eval && config.eval_fraction > 0) {
    DataSets parts = split_off(sets.train, config.eval_fraction, options.seed, config.where);
    sets.train = std::move(parts.train);
    sets.eval = std::move(parts.eval);
  }
  return in_training_order(config, std::move(sets), options);
}

std::shared_ptr<const DataSource> source_of_arrays(std::shared_ptr<const ArraySet> arrays,
                                                   const std::vector<FieldConfig>& fields,
                                                   const OpenOptions& options) {
  std::vector<Diagnostic> errors;
  auto source = make_source(std::move(arrays), fields, options, errors);
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return source;
}

std::shared_ptr<const DataSource> make_array_source(
    const std::vector<std::pair<std::string, HostTensor>>& arrays,
    const std::vector<FieldConfig>& fields, const OpenOptions& options) {
  auto set = std::make_shared<ArraySet>();
  std::vector<Diagnostic> errors;
  for (const auto& [name, tensor] : arrays) set->add(name, tensor, "memory", errors);
  set->finish(errors);
  if (!errors.empty()) throw Error(ErrorKind::data, std::move(errors));
  return source_of_arrays(std::move(set), fields, options);
}

}  // namespace tandem
