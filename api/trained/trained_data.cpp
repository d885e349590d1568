#include "api/trained/trained_data.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "api/export/export.h"
#include "api/trained/sample_ids.h"
#include "api/trained/vocabularies.h"
#include "api/work_folder.h"
#include "engine/config/keys/config_names.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/id_functions.h"
#include "engine/data/table_file.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/formats/text_stream.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "engine/train/divergence/absent_ids.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/divergence/hidden_keys.h"

namespace tandem::api {
namespace {

constexpr const char* data_option = "--data";

[[noreturn]] void refuse_data(std::string message, std::string expected, std::string got,
                              std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = data_option,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

/// [data] with only the fields of these names; without fields, every array is a field.
DataConfig with_fields(const RunConfig& config, const std::vector<std::string>& names) {
  DataConfig data = *config.data;
  std::erase_if(data.fields, [&](const FieldConfig& field) {
    return std::find(names.begin(), names.end(), field.name) == names.end();
  });
  return data;
}

// ---------------------------------------------------------------- arrays

/// Names of the arrays that fields are made of; without fields, the names of the inputs.
std::vector<std::string> data_arrays(const DataConfig& data,
                                     const std::vector<std::string>& inputs) {
  if (data.fields.empty()) return inputs;
  std::vector<std::string> names;
  for (const FieldConfig& field : data.fields) {
    if (std::find(names.begin(), names.end(), field.from) == names.end())
      names.push_back(field.from);
  }
  return names;
}

/// Files given as "NAME=FILE", or as a file that is the only array or contains named arrays.
/// `needed`: names of the arrays that are read; `all`: the data as in training, whose other arrays
/// may be given too.
SplitConfig array_files(const std::vector<std::string>& needed, const DataConfig& all,
                        const std::vector<std::string>& files) {
  std::set<std::string> known(needed.begin(), needed.end());
  for (const ArrayFiles& array : all.train.files) known.insert(array.name);
  for (const std::string& name : data_arrays(all, {})) known.insert(name);
  const FilesForm form = std::visit([](const auto& kind) { return kind.files; }, all.kind);
  SplitConfig split;
  const auto add = [&](const std::string& name, const std::string& path) {
    const auto found = std::find_if(split.files.begin(), split.files.end(),
                                    [&](const ArrayFiles& f) { return f.name == name; });
    if (found != split.files.end()) {
      found->paths.push_back(path);
      return;
    }
    split.files.push_back({name, {path}, Where{data_option, 0, 0}});
  };
  for (const std::string& text : files) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals != std::string::npos && !path_exists(text) && known.contains(name) &&
        form.is_table) {
      const bool is_needed = std::find(needed.begin(), needed.end(), name) != needed.end();
      if (is_needed) add(name, text.substr(equals + 1));
      continue;
    }
    const bool is_single = !form.is_list || (form.is_table && text.ends_with(".npy"));
    if (is_single && needed.size() != 1) {
      refuse_data("which array is in this file?", "NAME=FILE with " + joined(needed), text,
                  std::string("write ") + data_option + " " +
                      (needed.empty() ? "images" : needed[0]) + "=" + text);
    }
    add(is_single ? needed[0] : "", text);
  }
  return split;
}

std::shared_ptr<const tandem::DataSource> open_arrays(TrainedModel& trained, DataConfig data,
                                                      SplitConfig split,
                                                      const OpenOptions& options) {
  data.train = std::move(split);
  data.eval = {};
  data.eval_fraction = 0;
  data.forget_training();
  DataSets sets = open_data(data, options);
  for (std::string& warning : sets.warnings) trained.warn(std::move(warning));
  return sets.train;
}

// ---------------------------------------------------------------- tables

void check_table_files(const std::vector<std::string>& files) {
  std::vector<Diagnostic> missing;
  for (const std::string& path : files) {
    if (path == "-" || (path_exists(path) && !is_directory(path))) continue;
    Diagnostic d{.message = (path_exists(path) ? "this is a folder: " : "no such file: ") + path,
                 .file = data_option};
    if (!path_exists(path) && path.find('=') != std::string::npos)
      d.fix = "`tandem config keys` lists the keys: none is called so";
    missing.push_back(std::move(d));
  }
  if (!missing.empty()) throw Error(ErrorKind::data, std::move(missing));
}

bool reads(const std::vector<FieldConfig>& fields, const std::string& column) {
  return std::any_of(fields.begin(), fields.end(), [&](const FieldConfig& field) {
    return std::find(field.columns.begin(), field.columns.end(), column) != field.columns.end();
  });
}

TableRequest table_request(TrainedModel& trained, DataConfig wanted, std::vector<std::string> files,
                           std::vector<std::string> columns, OpenOptions options,
                           bool refuses_unknown) {
  TableRequest request;
  request.config = std::move(wanted);
  request.config.eval = {};  // so that messages name the file that is read, not one of training
  request.config.train.files = {{"", {shown_path(files[0])}, {}}};
  request.paths = std::move(files);
  request.options = std::move(options);
  const DataConfig& all = *trained.config().data;
  for (const std::string& column : columns) {  // columns that only other fields read may be missing
    const bool may_lack = reads(all.fields, column) && !reads(request.config.fields, column);
    request.may_lack.push_back(may_lack ? 1 : 0);
  }
  std::vector<Diagnostic> misfits;
  request.plan = plan_table(request.config, std::move(columns), misfits);
  std::vector<Diagnostic> absent =
      missing_columns(columns_of_fields(request.config), request.plan.columns,
                      request.config.train.files[0].paths[0], request.plan.separator_fix);
  if (!absent.empty()) throw Error(ErrorKind::data, std::move(absent));
  if (!misfits.empty()) throw Error(ErrorKind::usage, std::move(misfits));
  request.vocabularies = load_vocabularies(trained, request.plan);
  request.plan.refuses_unknown = refuses_unknown;
  if (refuses_unknown) request.config.table()->on_bad = OnBad::error;
  return request;
}

// ---------------------------------------------------------------- tables and arrays

const DataConfig& data_of(const RunConfig& config) {
  if (config.data) return *config.data;
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "there is no [data] table: nothing says how files become inputs",
                 .file = config.file});
}

/// Drops the functions of fields that were trained on windows of a text: there the tokenizer made
/// the ids, and no function. The tokenizer is compared separately, and texts of a table may be used
/// with the same one.
void forget_windows(const TrainedRun& run, std::map<std::string, std::string>& functions) {
  for (const FieldConfig& field : run.config.data->fields) {
    const bool is_of_tokens =
        std::any_of(field.as.begin(), field.as.end(),
                    [](const Transform& function) { return function.kind->name == "tokens"; });
    const auto trained = functions.find(field.name);
    if (is_of_tokens && trained != functions.end() && trained->second.empty())
      functions.erase(trained);
  }
}

void check_functions(TrainedModel& trained) {
  const TrainedRun& run = trained.run();
  auto functions = run.exported() ? exported_functions(trained.file().metadata())
                                  : run.content.position.functions;
  const auto known = run.exported() ? trained.file().metadata() : run.content.position.vocabularies;
  if (known.contains(tokenizer_file)) forget_windows(run, functions);
  refuse_other_functions(functions, trained.config(), run.exported() ? "exported model" : "run",
                         "take the model that was trained with it");
}

void check_standard_input(const DataConfig& data, const std::vector<std::string>& files) {
  const auto times = std::count(files.begin(), files.end(), "-");
  if (times == 0) return;
  if (!data.table()) {
    refuse_data("standard input gives rows of text tables only", "files",
                "data.kind = \"" + std::string(data.kind_name()) + "\"", "name files");
  }
  if (times > 1)
    refuse_data("standard input can be read once", "one \"-\"", std::to_string(times), "");
}

OpenOptions options_of(TrainedModel& trained, const TrainedOptions& options) {
  OpenOptions open = open_options(trained.config(), trained.imported());
  open.on_message = options.on_message;
  open.stop_requested = [stop = options.stop] { return stop.stop_requested(); };
  open.classes = load_classes(trained);
  open.characters = load_characters(trained);
  return open;
}

/// Reports the progress of reading tables through `TrainedOptions::on_progress`, and stops on
/// request.
class ReadingProgress {
 public:
  ReadingProgress(const std::vector<std::string>& paths, const TrainedOptions& options)
      : options_(options) {
    for (const std::string& path : paths) {
      known_ = known_ && path != "-" && path_exists(path);
      if (known_) bytes_ += static_cast<double>(file_size(path));
    }
  }
  /// May be called by any thread.
  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    check_stop(options_);
    read_ += static_cast<double>(bytes);
    if (options_.on_progress)
      options_.on_progress(0, known_ && bytes_ > 0 ? read_ / bytes_ : -1, 0);
  }

 private:
  const TrainedOptions& options_;
  std::mutex mutex_;
  bool known_ = true;
  double bytes_ = 0, read_ = 0;
};

/// Checks ids and labels as training does, and collects warnings about ids that have no row and
/// masks that hide all keys.
class DataChecks {
 public:
  explicit DataChecks(TrainedModel& trained)
      : config_(trained.config()),
        graph_(trained.placed().forward(config_.micro_batch_size(), true)),
        evaluate_(trained.engine().evaluate),
        absent_(config_, graph_),
        hidden_(graph_, evaluate_) {}

  std::shared_ptr<const tandem::DataSource> checked(
      std::shared_ptr<const tandem::DataSource> source) {
    absent_.add(*source);
    source = zero_out_of_range(config_, graph_, std::move(source));
    check_integer_fields(config_, graph_, *source, evaluate_);
    hidden_.add(*source);
    return source;
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> all = absent_.warnings();
    for (std::string& warning : hidden_.warnings()) all.push_back(std::move(warning));
    return all;
  }

 private:
  const RunConfig& config_;
  const Graph& graph_;
  const Evaluator& evaluate_;
  AbsentIds absent_;
  HiddenKeys hidden_;
};

std::shared_ptr<const tandem::DataSource> checked(
    TrainedModel& trained, std::shared_ptr<const tandem::DataSource> source) {
  DataChecks checks(trained);
  source = checks.checked(std::move(source));
  for (std::string& warning : checks.warnings()) trained.warn(std::move(warning));
  return source;
}

class CheckedStream final : public SampleStream {
 public:
  CheckedStream(TrainedModel& trained, std::unique_ptr<SampleStream> stream)
      : checks_(trained), stream_(std::move(stream)) {}

  std::optional<SampleRange> next(std::int64_t most) override {
    std::optional<SampleRange> range = stream_->next(most);
    if (range) range->source = checks_.checked(std::move(range->source));
    return range;
  }
  std::int64_t rows() const override { return stream_->rows(); }
  std::int64_t left_out() const override { return stream_->left_out(); }
  std::string first_bad() const override { return stream_->first_bad(); }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = stream_->warnings();
    for (std::string& warning : checks_.warnings()) all.push_back(std::move(warning));
    return all;
  }
  std::vector<IdTexts> take_ids() override { return stream_->take_ids(); }
  double part_read() const override { return stream_->part_read(); }

 private:
  DataChecks checks_;
  std::unique_ptr<SampleStream> stream_;
};

/// Fields that feed the model in inference form, its loss, or a metric that uses further fields.
std::vector<std::string> evaluated_fields(TrainedModel& trained) {
  std::vector<std::string> names;
  for (const NamedValue& input : trained.forward().inputs) names.push_back(input.name);
  for (const LossTerm& term : trained.config().loss.terms) {
    const std::vector<std::string> fields = term.fields();
    names.insert(names.end(), fields.begin(), fields.end());
  }
  for (const MetricConfig& metric : trained.config().eval.metrics) {
    const std::vector<std::string> fields = metric.fields();
    names.insert(names.end(), fields.begin(), fields.end());
  }
  return names;
}

}  // namespace

std::vector<std::string> files_of(const SplitConfig& split) {
  std::vector<std::string> files;
  for (const ArrayFiles& array : split.files) {
    for (const std::string& path : array.paths)
      files.push_back(array.name.empty() ? path : array.name + "=" + path);
  }
  return files;
}

std::unique_ptr<SampleStream> open_samples(TrainedModel& trained,
                                           const std::vector<std::string>& inputs,
                                           const TrainedOptions& how,
                                           const std::vector<std::string>& ids) {
  const DataConfig& data = data_of(trained.config());
  check_functions(trained);
  const std::vector<std::string> files = trained.run().guessed ? files_of(data.eval) : how.data;
  if (files.empty()) refuse_data("no file is named", "files in the format of [data]", "", "");
  check_standard_input(data, files);
  DataConfig wanted = with_fields(trained.config(), inputs);
  use_own_tokenizer(trained, wanted);
  const OpenOptions options = options_of(trained, how);
  if (data.table()) {
    check_table_files(files);
    std::vector<std::string> columns = data.table()->columns;  // empty: headers name them
    if (columns.empty()) columns = columns_of_fields(data);
    for (const std::string& id : ids) {  // an object may have keys that no field reads
      const bool is_new = std::find(columns.begin(), columns.end(), id) == columns.end();
      if (is_new && std::holds_alternative<JsonLines>(data.kind)) columns.push_back(id);
    }
    TableRequest request = table_request(trained, std::move(wanted), files, std::move(columns),
                                         options, how.strict_words);
    request.ids = ids;
    return std::make_unique<CheckedStream>(trained, stream_table(std::move(request)));
  }
  // Predictions are written next to the pictures, so none of these may be left out.
  if (auto* images = std::get_if<ImageFiles>(&wanted.kind)) {
    images->on_bad = OnBad::error;
    for (const std::string& name : inputs) {  // else labels would be required
      if (data.fields.empty()) wanted.fields.push_back({.name = name, .from = name});
    }
  }
  // Each conversation has a prediction, at its place.
  if (auto* chat = std::get_if<ChatFiles>(&wanted.kind)) {
    chat->on_bad = OnBad::error;
    chat->pack = false;
    if (chat->too_long == LongChat::skip) chat->too_long = LongChat::cut;
  }
  std::vector<std::string> arrays = inputs;
  if (data.images() == nullptr) add_id_arrays(ids, wanted, arrays);
  SplitConfig split = array_files(data_arrays(wanted, arrays), data, files);
  auto source =
      checked(trained, open_arrays(trained, std::move(wanted), std::move(split), options));
  auto id_of = ids_of_samples(source, ids, data.images() != nullptr);
  return stream_samples(std::move(source), std::move(id_of));
}

std::shared_ptr<const tandem::DataSource> open_held_out(TrainedModel& trained,
                                                        const TrainedOptions& how) {
  const DataConfig& data = data_of(trained.config());
  check_functions(trained);
  const std::vector<std::string> files =
      trained.run().guessed ? std::vector<std::string>() : how.data;
  check_standard_input(data, files);
  const OpenOptions options = options_of(trained, how);
  if (files.empty() && data.eval_fraction > 0) {
    DataConfig whole = data;
    use_own_tokenizer(trained, whole);
    whole.forget_training();
    const DataSets sets = open_data(whole, options);
    expect_vocabularies(trained.run(), sets.vocabularies);
    for (const std::string& warning : sets.warnings) trained.warn(warning);
    return checked(trained, sets.eval);
  }
  if (files.empty() && data.eval.files.empty()) {
    refuse_data("the configuration holds no data out, so that files have to be named",
                "files in the format of [data]", "", "add --data FILE");
  }
  const std::vector<std::string> names = evaluated_fields(trained);
  DataConfig wanted = with_fields(trained.config(), names);
  use_own_tokenizer(trained, wanted);
  if (!data.table()) {
    SplitConfig split =
        files.empty() ? data.eval : array_files(data_arrays(wanted, names), data, files);
    return checked(trained, open_arrays(trained, std::move(wanted), std::move(split), options));
  }
  std::vector<std::string> paths = files;
  for (const ArrayFiles& list : data.eval.files) {
    if (files.empty()) paths.insert(paths.end(), list.paths.begin(), list.paths.end());
  }
  check_table_files(paths);
  if (paths[0] == "-" && data.table()->columns.empty()) {
    refuse_data("columns of standard input have to be named", "data.columns", "a header",
                "evaluate on files");
  }
  std::vector<std::string> columns = table_columns(data, paths[0]);
  TableRequest request = table_request(trained, std::move(wanted), paths, std::move(columns),
                                       options, how.strict_words);
  ReadingProgress progress(paths, how);
  request.on_read = [&](std::uint64_t bytes) { progress.add(bytes); };
  const WorkFolder folder("the encoded rows");
  std::vector<std::string> warnings;
  auto source = checked(
      trained, folder.written_by([&] { return encode_tables(request, folder.path(), &warnings); }));
  for (std::string& warning : warnings) trained.warn(std::move(warning));
  return source;
}

}  // namespace tandem::api
