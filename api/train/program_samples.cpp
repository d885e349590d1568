#include "api/train/program_samples.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "engine/config/keys/config_value.h"
#include "engine/data/bad_rows.h"
#include "engine/data/number_text.h"
#include "engine/graph/dtype_dispatch.h"

namespace tandem::api {
namespace {

/// A field, and the type that the program writes it in.
struct ProgramField {
  TensorType written;
  bool is_converted = false;  // labels and ids get the type that the graph takes
};

class ProgramSource final : public tandem::DataSource {
 public:
  ProgramSource(std::shared_ptr<const api::DataSource> source, const OpenOptions& options)
      : source_(std::move(source)), samples_(source_->samples()) {
    std::vector<Diagnostic> problems;
    std::set<std::string> names;
    const auto report = [&](const std::string& field, std::string message, std::string got) {
      problems.push_back({.message = std::move(message),
                          .path = field.empty() ? "" : "data.fields." + field,
                          .got = std::move(got)});
    };
    for (const api::DataField& field : source_->fields()) {
      if (field.name.empty()) report("", "a field of the data source has no name", "");
      if (!names.insert(field.name).second)
        report(field.name, "the data source has two fields of this name", "");
      const bool is_shape = std::all_of(field.shape.begin(), field.shape.end(),
                                        [](std::int64_t extent) { return extent > 0; });
      if (!is_shape) report(field.name, "a sample cannot have this shape", to_string(field.shape));
      add({field.dtype, field.shape}, field.name, options);
    }
    if (fields_.empty()) report("", "the data source has no fields", "");
    if (samples_ < 1) report("", "the data source has no samples", std::to_string(samples_));
    if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  }

  const std::vector<tandem::DataField>& fields() const override { return fields_; }
  std::int64_t samples() const override { return samples_; }

  void fill(int field, std::span<const std::int64_t> samples, const Augmentation*,
            void* to) const override {
    const ProgramField& known = of_program_[static_cast<std::size_t>(field)];
    if (!known.is_converted) return write(field, samples, to);
    TensorType type = known.written;
    type.shape.insert(type.shape.begin(), static_cast<std::int64_t>(samples.size()));
    HostTensor values(std::move(type));
    write(field, samples, values.data());
    const HostTensor converted =
        values.converted(fields_[static_cast<std::size_t>(field)].sample.dtype);
    std::memcpy(to, converted.data(), converted.bytes());
  }

  std::string describe(int, std::int64_t sample) const override {
    return source_->describe(sample);
  }

  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    check(field, "0 to " + std::to_string(limit - 1),
          [&](const HostTensor& values, std::int64_t i) {
            const auto value = static_cast<std::int64_t>(values.number(i));
            return (value >= 0 && value < limit) || (ignore != nullptr && value == *ignore);
          });
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    check(field, expected, [&](const HostTensor& values, std::int64_t i) {
      const double value = values.number(i);
      return value >= least && value <= most;
    });
  }

 private:
  void add(TensorType written, const std::string& name, const OpenOptions& options) {
    tandem::DataField field{name, written};
    const auto wanted = options.integer_types.find(name);
    const bool is_kept = written.dtype == DType::int32 && options.keep_int32.contains(name);
    if (wanted != options.integer_types.end() && is_integer(written.dtype) && !is_kept)
      field.sample.dtype = wanted->second;
    const bool is_converted = field.sample.dtype != written.dtype;
    fields_.push_back(std::move(field));
    of_program_.push_back({std::move(written), is_converted});
  }

  void write(int field, std::span<const std::int64_t> samples, void* to) const {
    try {
      source_->fill(static_cast<std::size_t>(field), samples, to);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const std::string& name = fields_[static_cast<std::size_t>(field)].name;
      throw Error(ErrorKind::data, Diagnostic{.message = "the data source failed",
                                              .path = "data.fields." + name,
                                              .got = error.what()});
    }
  }

  /// Reads a field whole and throws where a sample has a value that is not valid.
  template <class IsValid>
  void check(int field, const std::string& expected, IsValid is_valid) const {
    constexpr std::int64_t samples_at_once = 4096;
    const tandem::DataField& info = fields_[static_cast<std::size_t>(field)];
    const std::int64_t each = info.sample.elements();
    BadRows bad;
    std::vector<std::int64_t> samples;
    for (std::int64_t first = 0; first < samples_; first += samples_at_once) {
      samples.clear();
      for (std::int64_t i = first; i < std::min(first + samples_at_once, samples_); ++i)
        samples.push_back(i);
      HostTensor values(
          TensorType{info.sample.dtype, {static_cast<std::int64_t>(samples.size()), each}});
      fill(field, samples, nullptr, values.data());
      for (std::size_t s = 0; s < samples.size(); ++s) {
        const std::int64_t begin = static_cast<std::int64_t>(s) * each;
        std::int64_t wrong = -1;
        for (std::int64_t i = begin; i < begin + each; ++i) {
          if (is_valid(values, i)) continue;
          bad.take_value(values.number(i));
          if (wrong < 0) wrong = i;
        }
        if (wrong < 0) continue;
        bad.take_row([&] {
          return Diagnostic{.message = source_->describe(samples[s]) + ": out of range",
                            .path = "data.fields." + info.name,
                            .expected = expected,
                            .got = number_text(values.number(wrong))};
        });
      }
    }
    if (bad.any()) bad.refuse("sample");
  }

  std::shared_ptr<const api::DataSource> source_;
  std::int64_t samples_;
  std::vector<tandem::DataField> fields_;
  std::vector<ProgramField> of_program_;
};

}  // namespace

DataOpener open_samples(std::shared_ptr<const DataSource> train,
                        std::shared_ptr<const DataSource> eval) {
  return [train = std::move(train), eval = std::move(eval)](const DataConfig& config,
                                                            const OpenOptions& options) {
    const auto opened = [&](const std::shared_ptr<const DataSource>& source) {
      return source ? std::make_shared<const ProgramSource>(source, options) : nullptr;
    };
    DataSets sets = data_of_program(config, opened(train), opened(eval), options);
    sets.train_identity = train->identity();
    // A part of the training data is held out where there is no source of its own.
    if (sets.eval) sets.eval_identity = (eval ? eval : train)->identity();
    return sets;
  };
}

void require_data(RunConfig& config, const TrainOptions& options) {
  if (!config.data && options.train) {
    config.data.emplace().kind = ProgramSamples{};
    config.data->where.file = config.file;
  }
  if (!config.data) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "there is no [data] table",
                           .file = config.file,
                           .fix = "add [data] with kind, train.files and fields"});
  }
  if (config.data->is_of_program() == (options.train != nullptr)) {
    const bool is_held_out_twice = options.eval && config.data->eval_fraction > 0;
    if (options.train == nullptr || !is_held_out_twice) return;
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "either TrainOptions::eval or a part of the training data",
                           .file = config.file,
                           .path = "data.eval.fraction"});
  }
  Diagnostic d = at(config.data->where, "data.kind", "");
  if (options.train) {
    d.message = "the samples come from TrainOptions::train, not from files";
    d.expected = "\"program\"";
    d.got = "\"" + std::string(config.data->kind_name()) + "\"";
  } else {
    d.message = "this run needs samples of the program that trains";
    d.fix = "give TrainOptions::train";
  }
  throw Error(ErrorKind::usage, std::move(d));
}

void require_held_out(const RunConfig& config, const DataSets& data) {
  if (data.eval || config.eval == EvalConfig{}) return;
  throw Error(ErrorKind::usage, Diagnostic{.message = "there is no data to evaluate on",
                                           .file = config.file,
                                           .path = "eval",
                                           .fix = "give TrainOptions::eval, or data.eval"});
}

}  // namespace tandem::api
