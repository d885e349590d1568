// tandem::api::predict_run: predictions of a trained model for single rows.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/predict/predict_in_stages.h"
#include "api/predict/prediction_file.h"
#include "api/train/on_ranks.h"
#include "api/trained/class_words.h"
#include "api/trained/compare_uses.h"
#include "api/trained/files_in_use.h"
#include "api/trained/trained_data.h"
#include "api/trained/vocabularies.h"
#include "engine/formats/count_text.h"
#include "engine/train/evaluation/prediction.h"
#include "engine/train/group/gathered.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void refuse_prediction(const char* option, std::string message, std::string expected,
                                    std::string got, std::string fix = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = option,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

PredictionForm form_of(const std::string& as) {
  if (as.empty()) return PredictionForm::automatic;
  if (as == "values") return PredictionForm::values;
  if (as == "class") return PredictionForm::classes;
  if (as == "probability") return PredictionForm::probability;
  refuse_prediction("--as", "not a form of predictions", "values, class or probability", as);
}

/// The loss term that compares a value with labels; null: none.
const LossTerm* term_of(const RunConfig& config, const std::string& value) {
  for (const LossTerm& term : config.loss.terms) {
    if (!term.labels.empty() && term.reads_value(value)) return &term;
  }
  return nullptr;
}

/// The values that loss terms compare with labels.
std::vector<std::string> values_with_labels(const RunConfig& config) {
  std::vector<std::string> names;
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& value : term.values) {
      const bool again = std::find(names.begin(), names.end(), value) != names.end();
      if (!term.labels.empty() && !again) names.push_back(value);
    }
  }
  return names;
}

/// The values with labels; without loss terms, the outputs with an entry per sample.
std::vector<std::string> default_outputs(const RunConfig& config, const Graph& forward) {
  std::vector<std::string> names = values_with_labels(config);
  if (!names.empty()) return names;
  std::string others;
  for (const NamedValue& output : forward.outputs) {
    const Shape& shape = forward.type(output.value).shape;
    others += (others.empty() ? "" : ", ") + output.name + " " + to_string(shape);
    if (!shape.empty() && shape[0] == config.micro_batch_size()) names.push_back(output.name);
  }
  if (names.empty()) {
    refuse_prediction("--output", "no output of the model has an entry for each sample",
                      "outputs with a batch", others,
                      "name a value of the graph; `tandem inspect MODEL --stage graph` lists them");
  }
  return names;
}

/// The names of classes for the labels that a value is compared with.
std::vector<std::string> words_of(const FieldWords& words, const LossTerm* term) {
  if (term == nullptr) return {};
  const auto found = words.find(term->labels);
  return found == words.end() ? std::vector<std::string>() : found->second;
}

/// The axis of classes that the loss used, judging by the shape of the labels in training: the last
/// axis where both fit. -1 where it is unknown.
int trained_class_axis(const TrainedRun& run, const LossTerm* term, const TensorType& logits) {
  const auto& fingerprint = run.content.position.fingerprint;
  if (term == nullptr || fingerprint == nullptr || logits.rank() < 3) return -1;
  const auto found = fingerprint->data.fields.find(term->labels);
  if (found == fingerprint->data.fields.end()) return -1;
  const auto are = [&](Shape labels) {
    // The shape as it follows the element type in "int64[6]".
    const std::string as_they_are = to_string(labels);
    labels.push_back(1);
    return found->second.ends_with(as_they_are) || found->second.ends_with(to_string(labels));
  };
  const Shape& shape = logits.shape;
  if (are(Shape(shape.begin() + 1, shape.end() - 1))) return static_cast<int>(shape.size()) - 1;
  return are(Shape(shape.begin() + 2, shape.end())) ? 1 : -1;
}

/// Values of the graph, and the arrays that are made from them.
std::vector<PredictedValue> predicted_values(const TrainedRun& run, const FieldWords& words,
                                             const std::vector<TensorType>& types,
                                             const std::vector<std::string>& outputs,
                                             const PredictOptions& options) {
  std::vector<PredictedValue> values;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const LossTerm* const term = term_of(run.config, outputs[i]);
    const int axis =
        options.class_axis >= 0 ? options.class_axis : trained_class_axis(run, term, types[i]);
    values.emplace_back(outputs[i], types[i], term, form_of(options.as), axis);
    values.back().name_classes(words_of(words, term));
  }
  return values;
}

std::vector<PredictedArray> arrays_of(const std::vector<PredictedValue>& values,
                                      const std::vector<std::string>& outputs) {
  std::vector<PredictedArray> arrays;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (PredictedArray array : values[i].arrays()) {
      if (values.size() > 1 && array.name != outputs[i]) array.name = outputs[i] + "." + array.name;
      arrays.push_back(std::move(array));
    }
  }
  return arrays;
}

/// Runs the stream through the model into the file; rows that were left out keep their places. All
/// ranks read the whole stream and take turns at its micro-batches; only rank 0 has the file.
class Predictor {
 public:
  Predictor(TrainedModel& trained, Prediction& prediction, SampleStream& stream,
            std::vector<PredictedValue> values, PredictionFile* file)
      : trained_(trained),
        prediction_(prediction),
        stream_(stream),
        values_(std::move(values)),
        file_(file),
        ranks_(*trained.parts().ranks),
        place_(place_of(trained.parts())) {}

  void run(const PredictOptions& options) {
    const Clock::time_point start = Clock::now();
    check_stop(options);
    for (bool is_over = false; !is_over;) {
      is_over = !take_turns(options);
      check_stop(options);
      if (!options.on_progress) continue;
      const double seconds = seconds_since(start);
      options.on_progress(stream_.rows(), stream_.part_read(),
                          seconds > 0 ? static_cast<double>(stream_.rows()) / seconds : 0);
    }
    if (file_ != nullptr) file_->add_missing(stream_.rows() - written_);
    check_order(trained_.engine());
  }

 private:
  using Rows = std::vector<std::int64_t>;

  /// Computes one micro-batch per rank, in the order of ranks; false at the end of the stream.
  bool take_turns(const PredictOptions& options) {
    std::vector<Rows> turns;
    std::vector<HostTensor> own;
    for (int rank = 0; rank < place_.ranks; ++rank) {
      const std::optional<SampleRange> range = stream_.next(trained_.config().micro_batch_size());
      if (!range) break;
      check_stop(options);
      turns.push_back(range->rows);
      if (rank == place_.rank) own = predicted(*range);
    }
    write_ids();
    if (place_.ranks == 1) {
      if (!turns.empty()) write(own, turns[0]);
    } else {
      const std::vector<std::string> all = gathered(ranks_, "predictions", bytes_of(own));
      for (std::size_t rank = 0; file_ != nullptr && rank < turns.size(); ++rank)
        write(tensors_of(all[rank], static_cast<std::int64_t>(turns[rank].size())), turns[rank]);
    }
    return static_cast<int>(turns.size()) == place_.ranks;
  }
  std::vector<HostTensor> predicted(const SampleRange& range) {
    if (!loaded_) {
      prediction_.prepare(*range.source, range.count);
      trained_.load();
      std::vector<Diagnostic> problems = trained_.not_finite();
      if (!problems.empty()) throw Error(ErrorKind::diverged, std::move(problems));
      loaded_ = true;
    }
    std::vector<HostTensor> arrays;
    const std::vector<HostTensor>& outputs = prediction_.run(range);
    for (std::size_t i = 0; i < outputs.size(); ++i) values_[i].convert(outputs[i], arrays);
    return arrays;
  }
  /// Writes the ids of the rows so far, including rows that are left out.
  void write_ids() {
    std::vector<IdTexts> ids = stream_.take_ids();
    if (file_ != nullptr) file_->add_ids(std::move(ids));
  }
  void write(const std::vector<HostTensor>& arrays, const Rows& rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    for (std::int64_t first = 0; first < count;) {
      const auto row = [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; };
      std::int64_t last = first + 1;
      while (last < count && row(last) == row(last - 1) + 1) ++last;
      file_->add_missing(row(first) - written_);
      file_->add(arrays, first, last - first);
      written_ = row(last - 1) + 1;
      first = last;
    }
  }
  static std::string bytes_of(const std::vector<HostTensor>& arrays) {
    std::string bytes;
    for (const HostTensor& array : arrays)
      bytes.append(static_cast<const char*>(array.data()), array.bytes());
    return bytes;
  }
  std::vector<HostTensor> tensors_of(const std::string& bytes, std::int64_t count) const {
    std::vector<HostTensor> tensors;
    std::size_t at = 0;
    for (const PredictedValue& value : values_) {
      for (const PredictedArray& array : value.arrays()) {
        TensorType type = array.sample;
        type.shape.insert(type.shape.begin(), count);
        HostTensor& tensor = tensors.emplace_back(type);
        std::memcpy(tensor.data(), bytes.data() + at, tensor.bytes());
        at += tensor.bytes();
      }
    }
    return tensors;
  }

  TrainedModel& trained_;
  Prediction& prediction_;
  SampleStream& stream_;
  const std::vector<PredictedValue> values_;
  PredictionFile* const file_;  // null on other ranks
  Rendezvous& ranks_;
  const RankPlace place_;
  bool loaded_ = false;
  std::int64_t written_ = 0;
};

/// Standard input cannot be shared, because each rank reads all rows itself.
void refuse_standard_input(const std::vector<std::string>& data) {
  for (const std::string& file : data) {
    if (file != "-") continue;
    refuse_prediction("--data", "several processes cannot share standard input", "files", file,
                      "write the rows into a file first, or predict with one process");
  }
}

/// Names of classes, unless numbers are asked for.
FieldWords wanted_words(TrainedModel& trained, const PredictOptions& options) {
  if (options.class_names == false) return {};
  FieldWords words = trained_words(trained);
  if (!words.empty() || !options.class_names) return words;
  // Uses the words of the present data, for lack of those of the training.
  words = field_words(trained.config(), {});
  const std::vector<std::string> folders = load_classes(trained);
  for (const LossTerm& term : trained.config().loss.terms) {
    if (!term.labels.empty() && !folders.empty()) words[term.labels] = folders;
  }
  if (!words.empty()) return words;
  refuse_prediction("--class-names", "the data of the run names no classes",
                    "pictures in sub-folders, or labels by classes(…) or a vocabulary", "",
                    "leave --class-names out");
}

/// What was written: the arrays, and the stream that they were made from.
struct Written {
  std::vector<PredictedArray> arrays;
  std::unique_ptr<SampleStream> stream;
  std::vector<std::string> notes = {};  // assumptions about the values
};

Written written_in_stages(TrainedModel& trained, const PredictOptions& options,
                          PredictionFile& file) {
  const RunConfig& config = trained.config();
  if (options.on_message) options.on_message(trained.stages_text());
  const std::vector<std::string> with_labels = values_with_labels(config);
  StagedPredictions what;
  what.outputs = options.outputs.empty() ? with_labels : options.outputs;
  what.has_labels = [&](const std::string& output) {
    return std::find(with_labels.begin(), with_labels.end(), output) != with_labels.end();
  };
  const FieldWords words = wanted_words(trained, options);
  what.values = [&](const std::vector<std::string>& outputs, const std::vector<TensorType>& types) {
    return predicted_values(trained.run(), words, types, outputs, options);
  };
  what.arrays = arrays_of;
  what.to = options.to;
  what.as_they_are = options.as.empty() || options.as == "values";
  what.has_ids = !options.ids.empty();
  Written written;
  written.stream = open_samples(trained, inputs_in_stages(trained), options, options.ids);
  written.arrays = predict_in_stages(trained, *written.stream, what, options, file);
  return written;
}

/// Writes predictions of a model that does not run in stages. `file`: null on ranks that do not
/// write.
Written written_as_ever(TrainedModel& trained, const PredictOptions& options,
                        PredictionFile* file) {
  const RunConfig& config = trained.config();
  const std::vector<std::string> outputs =
      options.outputs.empty() ? default_outputs(config, trained.forward()) : options.outputs;
  Prediction prediction(config, trained.parts(), outputs, trained.states(), trained.arenas());
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < outputs.size(); ++i) types.push_back(prediction.type(i));
  auto values =
      predicted_values(trained.run(), wanted_words(trained, options), types, outputs, options);
  Written written;
  written.arrays = arrays_of(values, outputs);
  for (const PredictedValue& value : values) {
    if (!value.note().empty()) written.notes.push_back(value.note());
  }
  if (file) file->start(written.arrays);
  written.stream = open_samples(trained, prediction.inputs(), options, options.ids);
  Predictor(trained, prediction, *written.stream, std::move(values), file).run(options);
  return written;
}

Report predicted(const std::string& run, const PredictOptions& options,
                 const std::shared_ptr<RankGroup>& group) {
  const Clock::time_point start = Clock::now();
  const bool writes = group->rank() == 0;
  form_of(options.as);
  if (group->ranks() > 1) refuse_standard_input(options.data);
  const PredictionLook look{options.header, options.class_names.value_or(false), options.ids};
  PredictionFile::check(options.to, look);
  TrainedRun opened = open_trained(run, options, TrainedUse::predict);
  refuse_files_in_use(options.to, opened, options);
  const auto file = writes ? PredictionFile::open(options.to, look) : nullptr;
  opened.placing.ranks = group;
  if (options.batch > 0) {
    opened.config.batch_size = options.batch;
    opened.config.micro_batch = 0;
  }
  TrainedModel trained(std::move(opened), options.outputs);
  compare_uses(*group, trained, -1);
  if (options.on_message) options.on_message(trained.run().text());
  const Written written = trained.in_stages() ? written_in_stages(trained, options, *file)
                                              : written_as_ever(trained, options, file.get());
  const std::vector<PredictedArray>& arrays = written.arrays;
  const SampleStream& stream = *written.stream;
  if (file) file->finish();
  const double seconds = seconds_since(start);

  Report report;
  report.warnings = trained.run().warnings;
  for (std::string& warning : written.stream->warnings())
    report.warnings.push_back(std::move(warning));
  report.warnings.insert(report.warnings.end(), written.notes.begin(), written.notes.end());
  const std::string to = options.to == "-" ? "standard output" : options.to;
  std::string columns;
  Json listed = Json::array();
  for (const PredictedArray& array : arrays) {
    columns += (columns.empty() ? "" : ", ") + array.name;
    if (array.sample.elements() != 1) columns += " " + to_string(array.sample.shape);
    listed.push_back({{"name", array.name},
                      {"dtype", name_of(array.sample.dtype)},
                      {"shape", array.sample.shape}});
  }
  report.text =
      fmt::format("predicted   {} into {}: {}  ({:.0f} rows/s)", count_text(stream.rows(), "row"),
                  to, columns, static_cast<double>(stream.rows()) / seconds);
  if (stream.left_out() > 0) {
    report.warnings.push_back(
        fmt::format("{} of {} rows are bad and have no prediction (nan, class -1); the first: {}",
                    stream.left_out(), stream.rows(), stream.first_bad()));
  }
  Json json{{"run", run}};
  trained.run().describe(json);
  json["to"] = options.to;
  json["rows"] = stream.rows();
  json["bad"] = stream.left_out();
  json["arrays"] = std::move(listed);
  json["seconds"] = seconds;
  json["warnings"] = report.warnings;
  report.json = json.dump(2, ' ', false, Json::error_handler_t::replace);
  return report;
}

/// Predictions have their own size of micro-batches, which --batch reduces.
std::string with_batch_option(std::string fix) {
  for (const std::string size :
       {"a smaller batch_size or micro_batch", "a smaller batch or more micro-batches"}) {
    const std::size_t at = fix.find(size);
    if (at != std::string::npos) fix.replace(at, size.size(), "a smaller --batch");
  }
  return fix;
}

[[noreturn]] void refuse_batch(const std::string& why) {
  throw Error(ErrorKind::does_not_fit, Diagnostic{.message = why, .fix = "use a smaller --batch"});
}

}  // namespace

Report v1::predict_run(const std::string& run, const PredictOptions& options) {
  try {
    return on_ranks([&](const std::shared_ptr<RankGroup>& group) {
      return predicted(run, quiet_but_on_rank_0(options, group), group);
    });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& d : problems) d.fix = with_batch_option(std::move(d.fix));
    throw Error(ErrorKind::does_not_fit, std::move(problems));
  } catch (const std::bad_alloc&) {
    refuse_batch("out of memory");
  } catch (const std::length_error&) {
    refuse_batch("a pass of this many samples is too large");
  }
}

}  // namespace tandem::api
