#include "engine/data/prepare_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/config/keys/config_value.h"
#include "engine/data/cells/cut_tokens.h"
#include "engine/data/cells/number_warnings.h"
#include "engine/data/cells/unknown_words.h"
#include "engine/data/encode_files.h"
#include "engine/data/shown_problems.h"
#include "engine/data/table_file.h"
#include "engine/data/table_manifest.h"
#include "engine/formats/count_text.h"
#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"

namespace tandem {
namespace {

std::vector<std::string> paths_of(const SplitConfig& split) {
  std::vector<std::string> paths;
  for (const ArrayFiles& files : split.files) {
    paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  }
  return paths;
}

void refuse_missing(const SplitConfig& split, std::vector<Diagnostic>& errors) {
  for (const ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      if (path_exists(path) && !is_directory(path)) continue;
      errors.push_back(at(files.where, "",
                          (path_exists(path) ? "this is a folder: " : "no such file: ") + path));
      errors.back().fix = fix_of_missing(path);
    }
  }
}

std::string short_hash(const std::string& text) {
  return sha256(text.data(), text.size()).substr(0, 16);
}

/// What the arrays depend on, but for the files' contents.
std::string description(const DataConfig& config, const TablePlan& plan) {
  std::string text = "tandem table " + std::to_string(table_format) + "\n";
  text += config.kind_name();
  text += config.table()->header ? " header" : "";
  text += config.table()->on_bad == OnBad::skip ? " skip\n" : "\n";
  const auto add = [&](const std::string& line) { text += line + "\n"; };
  const CellText& cells = plan.cells;
  add("cells " + std::to_string(static_cast<int>(cells.decimal)) +
      std::to_string(static_cast<int>(cells.thousands)) + (cells.missing ? " missing" : ""));
  if (cells.missing) {
    for (const std::string& word : *cells.missing) add("missing " + word);
  }
  if (const auto* csv = std::get_if<CsvTable>(&config.kind))
    add("separator " + std::to_string(static_cast<int>(csv->separator)));
  for (const std::string& name : plan.columns) add("column " + name);
  for (const TableField& field : plan.fields) {
    const auto once = std::find(field.counts.begin(), field.counts.end(), false);
    add("field " + field.text + (once != field.counts.end() ? "\ncounted before" : ""));
  }
  for (const VocabularyPlan& vocabulary : plan.vocabularies) {
    add("vocabulary " + vocabulary.name + " by " + vocabulary.by() + " " +
        std::to_string(vocabulary.least));
    if (!vocabulary.file.empty()) add("taken " + short_hash(text_of_file(vocabulary)));
  }
  if (plan.tokenizer) add("tokenizer " + plan.tokenizer->sha256());
  for (const std::string& path : paths_of(config.train)) add("train " + path);
  for (const std::string& path : paths_of(config.eval)) add("eval " + path);
  return text;
}

/// A file as it is now.
struct Stamp {
  std::string path, text;
  bool is_file;  // else a pipe, which reading changes
};

std::vector<Stamp> stamps_of(const DataConfig& config) {
  std::vector<Stamp> stamps;
  for (const SplitConfig* split : {&config.train, &config.eval}) {
    for (const std::string& path : paths_of(*split)) {
      struct stat status {};
      if (::stat(path.c_str(), &status) != 0) continue;  // reported before
      stamps.push_back({path,
                        path + " " + std::to_string(status.st_size) + " " +
                            std::to_string(status.st_mtim.tv_sec) + "." +
                            std::to_string(status.st_mtim.tv_nsec) + "\n",
                        S_ISREG(status.st_mode)});
    }
  }
  return stamps;
}

std::string text_of(const std::vector<Stamp>& stamps) {
  std::string text;
  for (const Stamp& stamp : stamps) text += stamp.text;
  return text;
}

void check_stop(const OpenOptions& options) {
  if (!options.stop_requested || !options.stop_requested()) return;
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = "interrupted while the table was prepared",
                         .fix = "what was prepared of it is removed; the next run begins again"});
}

/// Calls f, which writes to the cache: failures say how to have the cache elsewhere.
template <class F>
void in_cache(const DataConfig& config, F f) {
  try {
    f();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime) throw;
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& d : problems) {
      const std::string& cache = config.table()->cache;
      const bool is_cache = d.file.starts_with(cache) || cache.starts_with(d.file);
      if (d.file.empty() || !is_cache) continue;
      const bool has_fix = !d.fix.empty();
      d.fix += (has_fix ? ", or" : "") +
               std::string(" name another folder: data.cache = \"/tmp/tables\"");
      if (!has_fix) d.fix.erase(0, 1);
    }
    throw Error(ErrorKind::runtime, std::move(problems));
  }
}

/// Locks a folder against other processes that prepare the same table.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  void wait(const OpenOptions& options) {
    bool said = false;
    while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return;
      if (!said && options.on_message)
        options.on_message("data       waiting for another process that prepares this table");
      said = true;
      check_stop(options);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~FolderLock() {
    if (file_ >= 0) ::close(file_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

/// The numbers of values in an array become ids.
void write_ids(const TableField& field, const std::string& path,
               const std::vector<std::int32_t>& ids, int threads, const OpenOptions& options,
               std::vector<ColumnStatistics>& statistics) {
  constexpr std::size_t piece = 1 << 18;
  struct Piece {
    std::vector<std::int32_t> ids;
    std::vector<ColumnStatistics> statistics;
  };
  {
    const MappedFile numbers(path, true);
    const auto* from = reinterpret_cast<const std::int32_t*>(numbers.data());
    const std::size_t count = numbers.size() / sizeof(std::int32_t);
    OutputFile to(path + ".ids");
    const auto each = static_cast<std::size_t>(field.values_of_a_cell());
    const auto convert = [&](std::int64_t job) {
      check_stop(options);
      const std::size_t first = static_cast<std::size_t>(job) * piece;
      const std::size_t last = std::min(first + piece, count);
      Piece made;
      made.statistics.resize(field.columns.size());
      made.ids.reserve(last - first);
      for (std::size_t i = first; i < last; ++i) {
        if (from[i] < 0) {
          made.ids.push_back(static_cast<std::int32_t>(field.pad));
          continue;
        }
        const std::int32_t id = ids[static_cast<std::size_t>(from[i])];
        ColumnStatistics& s = made.statistics[i / each % field.columns.size()];
        s.unknown += id == 0;
        s.take(id);
        made.ids.push_back(id);
      }
      return made;
    };
    const auto pieces = static_cast<std::int64_t>((count + piece - 1) / piece);
    ordered_jobs(threads, pieces, convert, [&](std::int64_t, const Piece& made) {
      to.write(made.ids.data(), made.ids.size() * sizeof(std::int32_t));
      for (std::size_t c = 0; c < statistics.size(); ++c) statistics[c].add(made.statistics[c]);
    });
    to.sync();
    to.close();
  }
  rename_path(path + ".ids", path);
}

std::string file_name_of(const std::string& name, const std::vector<SavedVocabulary>& others) {
  std::vector<std::string> taken;
  for (const SavedVocabulary& v : others) taken.push_back(v.file_name);
  return vocabulary_file_name(name, taken);
}

class Preparation {
 public:
  /// `stamps`: those of the files, before any of their content was read.
  Preparation(const DataConfig& config, const OpenOptions& options, std::vector<Stamp> stamps,
              PreparedTable& table)
      : config_(config),
        options_(options),
        stamps_(std::move(stamps)),
        table_(table),
        folder_(table.folder + ".new") {}

  void run() {
    const std::vector<std::string> train = paths_of(config_.train), eval = paths_of(config_.eval);
    for (const auto* paths : {&train, &eval}) {
      for (const std::string& path : *paths) bytes_ += file_size(path);
    }
    const std::size_t files = train.size() + eval.size();
    say("data       preparing " + count_text(files, "file") +
        (bytes_ >> 20 > 0 ? ", " + std::to_string(bytes_ >> 20) + " MiB," : "") + " into " +
        table_.folder);
    remove_all(folder_);
    make_directories(folder_);
    choose_vocabularies(encode(train, false, nullptr));
    number();
    encode(eval, true, &vocabularies_);
    refuse_changed_files();
    write_manifest(table_, folder_);
    sync_directory(folder_);
    remove_all(table_.folder);
    rename_path(folder_, table_.folder);
  }

 private:
  void say(const std::string& text) const {
    if (options_.on_message) options_.on_message(text);
  }

  void tell(std::uint64_t bytes) {
    const std::lock_guard lock(telling_);
    read_ += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::seconds(5)) return;
    told_ = now;
    say("data       " + std::to_string(100 * read_ / std::max<std::uint64_t>(bytes_, 1)) +
        " % read");
  }

  /// Returns the values of all files.
  std::vector<ValueCounts> encode(const std::vector<std::string>& paths, bool eval,
                                  const std::vector<Vocabulary>* vocabularies) {
    EncodeFilesOptions options;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      options.prefixes.push_back(table_prefix(folder_, eval, i));
    }
    options.vocabularies = vocabularies;
    options.threads = options_.threads;
    options.on_read = [this](std::uint64_t bytes) {
      check_stop(options_);  // ends the reading as a broken file does
      tell(bytes);
    };
    EncodedFiles encoded = encode_files(config_, table_.plan, paths, options);
    check_stop(options_);
    PreparedSplit& split = eval ? table_.eval : table_.train;
    for (const TableField& field : table_.plan.fields) {
      split.fields.emplace_back(field.columns.size());
    }
    std::string first_bad;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      EncodedFile& file = encoded.files[i];
      if (encoded.failures[i]) std::rethrow_exception(encoded.failures[i]);
      if (config_.table()->on_bad == OnBad::error && file.bad > 0) {
        if (file.problems[0].fix.empty()) {
          file.problems[0].fix =
              "`tandem data check` counts all; data.on_bad = \"skip\" leaves such rows out";
        }
        tell_end_of_reading(file.problems);
        throw Error(ErrorKind::data, std::move(file.problems));
      }
      PreparedFile prepared{paths[i], file.rows, file.bad, ""};
      if (file.bad > 0) prepared.first_bad = to_string(file.problems[0]);
      if (first_bad.empty()) first_bad = prepared.first_bad;
      split.files.push_back(std::move(prepared));
      for (std::size_t f = 0; f < file.fields.size(); ++f) {
        for (std::size_t c = 0; c < file.fields[f].size(); ++c) {
          split.fields[f][c].add(file.fields[f][c]);
        }
      }
    }
    if (!paths.empty() && split.rows() == 0) {
      Diagnostic d{.message = "there are no samples", .file = paths[0]};
      if (!first_bad.empty()) d.fix = "the first bad row: " + first_bad;
      throw Error(ErrorKind::data, std::move(d));
    }
    return std::move(encoded.values);
  }

  void choose_vocabularies(std::vector<ValueCounts> values) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      const VocabularyPlan& plan = table_.plan.vocabularies[v];
      vocabularies_.push_back(
          training_vocabulary(plan, table_.plan.columns, values[v], ids_.emplace_back()));
      values[v] = {};
      SavedVocabulary saved;
      saved.name = plan.name;
      saved.rows = vocabularies_[v].rows();
      saved.file_name = file_name_of(plan.name, table_.vocabularies);
      saved.path = table_.folder + "/" + saved.file_name;
      const std::vector<std::string> no_names;
      saved.sha256 =
          write_file(folder_ + "/" + saved.file_name,
                     plan.file.empty()
                         ? vocabularies_[v].text(plan.by_value ? no_names : table_.plan.columns)
                         : text_of_file(plan))
              .sha256;
      table_.vocabularies.push_back(std::move(saved));
    }
  }

  /// The training data's numbers become ids.
  void number() {
    PreparedSplit& split = table_.train;
    const int threads = threads_for(options_.threads);
    const int files = static_cast<int>(split.files.size());
    const int of_a_file = std::max(threads / files, 1);
    std::mutex mutex;
    parallel_jobs(threads, files, [&](std::int64_t i) {
      const std::string prefix = table_prefix(folder_, false, static_cast<std::size_t>(i));
      for (std::size_t f = 0; f < table_.plan.fields.size(); ++f) {
        const TableField& field = table_.plan.fields[f];
        if (!field.vocabulary) continue;
        std::vector<ColumnStatistics> statistics(field.columns.size());
        write_ids(field, prefix + "." + std::to_string(f), ids_[*field.vocabulary], of_a_file,
                  options_, statistics);
        const std::lock_guard lock(mutex);
        for (std::size_t c = 0; c < statistics.size(); ++c) split.fields[f][c].add(statistics[c]);
      }
    });
  }

  /// Refuses files that changed while they were read: their rows would be from two states.
  void refuse_changed_files() const {
    const std::vector<Stamp> now = stamps_of(config_);
    std::vector<Diagnostic> problems;
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
      if (!stamps_[i].is_file || (i < now.size() && now[i].text == stamps_[i].text)) continue;
      problems.push_back({.message = "the file changed while it was read",
                          .file = stamps_[i].path,
                          .fix = "start again when it is complete; a file that is still being "
                                 "written can be copied first"});
    }
    if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
  }

  const DataConfig& config_;
  const OpenOptions& options_;
  const std::vector<Stamp> stamps_;
  PreparedTable& table_;
  std::string folder_;
  std::uint64_t bytes_ = 0;
  std::mutex telling_;
  std::uint64_t read_ = 0;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  std::vector<Vocabulary> vocabularies_;        // chosen
  std::vector<std::vector<std::int32_t>> ids_;  // by vocabulary: number in training → id
};

/// The vocabularies of a table that is there.
std::vector<Vocabulary> read_vocabularies(const PreparedTable& table) {
  std::vector<Vocabulary> vocabularies;
  const std::vector<std::string> no_names;
  for (std::size_t v = 0; v < table.vocabularies.size(); ++v) {
    const bool by_value = table.plan.vocabularies[v].by_value;
    vocabularies.push_back(Vocabulary::parse(read_file(table.vocabularies[v].path),
                                             by_value ? no_names : table.plan.columns));
  }
  return vocabularies;
}

/// A warning about one split of the data, which starts with the split's name.
template <class Say>
void warn(PreparedTable& table, const PreparedSplit& split, const std::string& text,
          const Say& say) {
  table.warnings.push_back((&split == &table.train ? "training data: " : "held-out data: ") + text);
  say("warning    " + table.warnings.back());
}

template <class Say>
void tell_unknown_words(PreparedTable& table, const Say& say) {
  const PreparedSplit &train = table.train, &eval = table.eval;
  const std::string untrained = untrained_note(table.plan, train.fields);
  if (!untrained.empty()) say("note       " + untrained);
  for (const std::string& note : cut_token_notes(table.plan, train.fields))
    say("note       training data: " + note);
  for (const std::string& note : cut_token_notes(table.plan, eval.fields))
    say("note       held-out data: " + note);
  for (const std::string& text : token_warnings(table.plan, train.fields))
    warn(table, train, text, say);
  for (const PreparedSplit* split : {&train, &eval}) {
    for (const std::string& text : mixed_dates(table.plan, split->fields))
      warn(table, *split, text, say);
  }
  for (const std::string& text : taken_warnings(table.plan, train.fields))
    warn(table, train, text, say);
  const auto has_unknown = [](const std::vector<ColumnStatistics>& columns) {
    return std::any_of(columns.begin(), columns.end(),
                       [](const ColumnStatistics& column) { return column.unknown > 0; });
  };
  if (std::none_of(eval.fields.begin(), eval.fields.end(), has_unknown)) return;
  for (std::string& warning :
       unknown_warnings(unknown_words(table.plan, eval.fields, read_vocabularies(table)))) {
    say("warning    held-out data: " + warning);
    table.warnings.push_back(std::move(warning));
  }
}

}  // namespace

PreparedTable prepare_table(const DataConfig& config, const OpenOptions& options) {
  std::vector<Diagnostic> missing, misfits;
  refuse_missing(config.train, missing);
  refuse_missing(config.eval, missing);
  const std::vector<std::string> train = paths_of(config.train);
  if (train.empty() && missing.empty()) missing.push_back({.message = "no file is named"});
  if (!missing.empty()) throw Error(ErrorKind::data, std::move(missing));
  PreparedTable table;
  std::vector<std::string> notes;
  table.plan = plan_table(config, table_columns(config, train[0], &notes), misfits);
  if (!misfits.empty()) throw Error(ErrorKind::usage, std::move(misfits));
  notes.insert(notes.end(), table.plan.notes.begin(), table.plan.notes.end());
  const auto say = [&](const std::string& text) {
    if (options.on_message) options.on_message(text);
  };

  for (const std::string& note : notes) say("data       " + note);
  const std::string parent =
      config.table()->cache + "/" + short_hash(description(config, table.plan));
  const std::vector<Stamp> stamps = stamps_of(config);
  const std::string name = short_hash(text_of(stamps));
  table.folder = parent + "/" + name;
  const auto is_there = [&] {
    return read_manifest(table, train.size(), paths_of(config.eval).size());
  };
  if (!is_there()) {
    in_cache(config, [&] { make_directories(parent); });
    FolderLock lock(parent);
    lock.wait(options);
    if (!is_there()) {
      table.train = table.eval = {};
      table.vocabularies.clear();
      try {
        in_cache(config, [&] { Preparation(config, options, stamps, table).run(); });
      } catch (...) {
        remove_all(table.folder + ".new");
        throw;
      }
      table.built = true;
      for (const std::string& other : list_directory(parent)) {
        if (other != name) remove_all(parent + "/" + other);  // tables of files as they were before
      }
      sync_directory(parent);
    }
  }
  tell_unknown_words(table, say);
  for (const PreparedSplit* split : {&table.train, &table.eval}) {
    if (split->bad() == 0) continue;
    std::string first;
    for (const PreparedFile& file : split->files) {
      if (first.empty()) first = file.first_bad;
    }
    const std::int64_t rows = split->rows() + split->bad();
    const std::string text = left_out_text(split->bad(), rows, first);
    if (are_many_left_out(split->bad(), rows))
      warn(table, *split, text, say);
    else
      say("data       " + text);
  }
  return table;
}

std::shared_ptr<const ArraySet> open_prepared(const PreparedTable& table, bool eval) {
  const PreparedSplit& split = eval ? table.eval : table.train;
  const auto map = [](const std::string& path, TensorType type) {
    auto file = std::make_shared<MappedFile>(path, true);
    return HostTensor(std::move(type), file->data(), file);
  };
  std::vector<HostTensor> lines;
  for (std::size_t i = 0; i < split.files.size(); ++i) {
    const std::int64_t rows = split.files[i].rows;
    lines.push_back(
        rows == 0 ? HostTensor()
                  : map(table_prefix(table.folder, eval, i) + ".lines", {DType::uint32, {rows}}));
  }
  auto set = std::make_shared<ArraySet>();
  for (std::size_t f = 0; f < table.plan.fields.size(); ++f) {
    const TableField& field = table.plan.fields[f];
    ArrayRows array(field.name, field.stored);
    for (std::size_t i = 0; i < split.files.size(); ++i) {
      const std::int64_t rows = split.files[i].rows;
      if (rows == 0) continue;
      TensorType type = field.stored;
      type.shape.insert(type.shape.begin(), rows);
      array.append(map(table_prefix(table.folder, eval, i) + "." + std::to_string(f), type),
                   split.files[i].source, lines[i]);
    }
    ColumnStatistics all;
    for (const ColumnStatistics& s : split.fields[f]) all.add(s);
    if (field.most > 0) all.take(static_cast<double>(field.pad));
    if (all.least <= all.greatest) array.range = {all.least, all.greatest};
    set->add(std::move(array));
  }
  std::vector<Diagnostic> errors;
  set->finish(errors);
  if (!errors.empty()) throw Error(ErrorKind::data, std::move(errors));
  return set;
}

std::vector<FieldConfig> array_fields(const PreparedTable& table,
                                      const std::vector<FieldConfig>& fields) {
  std::vector<FieldConfig> result;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const TableField& plan = table.plan.fields[f];
    FieldConfig field = fields[f];
    field.from = field.name;
    field.as = plan.rest;
    if (plan.logical != plan.stored.dtype) {
      Transform cast = cast_to(plan.logical);
      cast.where = field.where;
      field.as.insert(field.as.begin(), std::move(cast));
    }
    result.push_back(std::move(field));
  }
  return result;
}

}  // namespace tandem
