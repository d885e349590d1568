// Samples of a data set as the graph takes them: named fields of fixed type, read in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/tokens/token_counts.h"
#include "engine/graph/error.h"
#include "engine/graph/host_tensor.h"

namespace tandem {

class ArraySet;     // engine/data/array_set.h
class SampleOrder;  // engine/data/order/sample_order.h
struct Buckets;     // engine/data/buckets/buckets.h

struct DataField {
  std::string name;
  TensorType sample;  // type of one sample as `fill` writes it, without the batch axis
};

/// Random augmentation is a pure function of (seed, epoch, sample, place in the list of functions):
/// fields with equal lists are cropped and flipped alike.
struct Augmentation {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  /// For each sample that is filled, how often it was read before in this epoch, which gives it
  /// another seed. Empty: never.
  std::span<const std::uint32_t> repeats = {};

  std::uint64_t seed_of(std::size_t index) const;
  /// Augmentation for only the sample with this index.
  Augmentation of(std::size_t index) const { return {seed_of(index), epoch}; }
  /// Augmentation for `count` samples from `first` on.
  Augmentation part(std::size_t first, std::size_t count) const {
    return {seed, epoch, repeats.empty() ? repeats : repeats.subspan(first, count)};
  }
};

/// A field has values that it must not have. Other errors are failures of reading them.
class BadValues : public Error {
 public:
  using Error::Error;

  double greatest =
      -1;  // the greatest of them that are numbers; below 0: unknown, or none is above
};

/// Immutable once opened: any number of threads may read it.
class DataSource {
 public:
  virtual ~DataSource() = default;

  virtual const std::vector<DataField>& fields() const = 0;
  virtual std::int64_t samples() const = 0;
  /// Writes these samples of a field one after the other, row-major. `augmentation` null: none
  /// (evaluation). Throws Error{data} with file:row. Allocates nothing in steady state but
  /// per-thread scratch.
  virtual void fill(int field, std::span<const std::int64_t> samples,
                    const Augmentation* augmentation, void* to) const = 0;
  /// For messages: "train.npz:17" for a sample.
  virtual std::string describe(int field, std::int64_t sample) const = 0;
  /// Checks all values of an integer field once: 0 <= value < limit, or equal to `ignore` where
  /// that is given. Throws BadValues{data}, one problem with file:row of the first one and the
  /// number of others.
  virtual void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const = 0;
  /// Like check_range, for ids whose elements look up rows of different tables: 0 <= value <
  /// limits[e] at element e of each sample, where the limit is not below 0. Reads the field whole.
  virtual void check_elements(int field, std::span<const std::int64_t> limits) const;
  /// What a value at an element of a sample was made of: "the text \"Rome\" of the column
  /// \"city\""; "" where nothing more is known of it.
  virtual std::string origin_of(int field, std::int64_t element, std::int64_t value) const {
    (void)field, (void)element, (void)value;
    return "";
  }
  /// Like check_range, for a field of any type: least <= value <= most, and no NaN. `expected`:
  /// text for people.
  virtual void check_numbers(int field, double least, double most,
                             const std::string& expected) const = 0;
  /// Samples whose rows in the files hold NaN, ascending, of a field that is given to the graph as
  /// floats. Empty where statistics say so, and of sources that have no files.
  virtual std::vector<std::int64_t> nan_samples(int field) const {
    (void)field;
    return {};
  }

  /// Whether `fill` may throw: files are read as samples are filled, or functions refuse values.
  virtual bool may_refuse() const { return true; }

  /// Index into fields(), or -1.
  int find_field(std::string_view name) const;
};

struct OpenOptions {
  std::uint64_t seed = 1;  // seed for the held-out fraction
  /// Integer fields that are converted to this integer type after their functions: what a label or
  /// index input of the graph takes, whatever the files store.
  std::map<std::string, DType> integer_types;
  /// Those of them that stay int32 where the files of both splits store that.
  std::set<std::string> keep_int32;
  /// For pictures: the names of classes by number, from a run that the data is used with; empty:
  /// those of the training data.
  std::vector<std::string> classes;
  /// For text by characters: the text of such a run's vocabulary file; "": the vocabulary of the
  /// training data.
  std::string characters;
  /// Threads for preparing a table or checking pictures; 0: the default number.
  int threads = 0;
  /// Gets the pictures that cannot be opened, once for the training data and once for the held-out:
  /// where it is set they are left out, whatever `on_bad` says.
  std::function<void(bool held_out, std::vector<Diagnostic>)> on_bad_pictures;
  /// Gets messages: a table is prepared, how far that is, and which rows or pictures were left out.
  std::function<void(const std::string&)> on_message;
  /// Asked while a table is prepared or pictures are checked, from any thread: true ends that
  /// with Error{runtime}, and what was written of it is removed.
  std::function<bool()> stop_requested;
};

/// A vocabulary of the training data; ids are below `rows`, 0 is what it does not have. Or the
/// names of its classes, by number. Or a tokenizer.
struct SavedVocabulary {
  std::string name;
  std::int64_t rows = 0;
  std::string file_name;  // "vocabulary.NAME.tsv", "classes.txt" or "tokenizer.json"
  std::string path;       // where it lies prepared; "": nowhere
  std::string sha256;     // hash of the file
  std::string text = {};  // what the file is to hold, where it lies nowhere
};

struct DataSets {
  std::shared_ptr<const DataSource> train;
  std::shared_ptr<const DataSource> eval;  // null where there is none
  std::vector<SavedVocabulary> vocabularies;
  std::vector<std::string> warnings = {};  // about held-out words that training lacks
  /// Counts of tokens in the files of both, where a text is a sample; a held-out part of the
  /// training data is counted with it.
  std::optional<TokenCounts> train_tokens = {}, eval_tokens = {};
  /// Order of the training samples; null: a shuffle of them, as the configuration says.
  std::shared_ptr<const SampleOrder> order = nullptr;
  std::shared_ptr<const Buckets> buckets = nullptr;  // null: all samples are of one length
  /// Identities of the samples that a program gives (`api::DataSource::identity`).
  std::string train_identity = {}, eval_identity = {};

  /// How many samples of `train` an epoch reads.
  std::int64_t epoch_samples() const;
};

/// Opens the files of both splits. Throws Error{data} (broken or missing files, arrays of different
/// lengths, different types in train and eval, empty sets) or Error{usage} (functions that do not
/// fit the arrays), all diagnostics of both splits at once.
/// A table that is not prepared yet, or whose files have changed, is prepared first.
DataSets open_data(const DataConfig& config, const OpenOptions& options = {});

/// Like open_data for samples that a program gives: everything but files and functions of fields.
/// `eval` may be null. Throws what `open_data` throws.
DataSets data_of_program(const DataConfig& config, std::shared_ptr<const DataSource> train,
                         std::shared_ptr<const DataSource> eval, const OpenOptions& options);

/// A source over arrays that were read. Throws Error{usage} where functions do not fit them.
std::shared_ptr<const DataSource> source_of_arrays(std::shared_ptr<const ArraySet> arrays,
                                                   const std::vector<FieldConfig>& fields = {},
                                                   const OpenOptions& options = {});

/// A source over arrays in memory: name -> [N, ...]. Fields as in the configuration (empty: every
/// array). For tests and programs that have their data already.
std::shared_ptr<const DataSource> make_array_source(
    const std::vector<std::pair<std::string, HostTensor>>& arrays,
    const std::vector<FieldConfig>& fields = {}, const OpenOptions& options = {});

}  // namespace tandem
