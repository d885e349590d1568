// What a model file and data files show, before anything is guessed from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/init/draft.h"
#include "api/model/engine.h"
#include "engine/config/data_config.h"
#include "importer/export_notes.h"
#include "importer/model_notices.h"
#include "importer/training_info/training_info.h"

namespace tandem::api {

/// Statistics of the numbers of an array that were read.
struct Numbers {
  std::int64_t count = 0;
  double least = 0, most = 0;
  double sum = 0, spread = 0;  // spread: sum of squared distances from the mean
  bool whole = true, finite = true;
  static constexpr std::size_t most_distinct = 4096;
  std::set<double> distinct;  // all values, while there are at most that many
  bool many = false;          // there are more distinct values than that

  void add(double x, std::int64_t times = 1);
  void add(const HostTensor& tensor);
  void add(const Numbers& other);
  double mean() const;
  double deviation() const;  // standard deviation of the population
  /// Whether all numbers are 0 or 1.
  bool binary() const { return count > 0 && finite && !many && distinct_within({0, 1}); }
  bool distinct_within(const std::set<double>& allowed) const;
  /// The number with the largest magnitude.
  double largest() const;
  bool fit_float32() const;  // none becomes infinite as float32
};

/// An array whose axis 0 counts samples; in a text table it is a column, or columns that form an
/// axis.
struct ArrayFacts {
  std::string name;
  std::string source;                // its name in `from`; "": the array's name
  std::vector<std::string> columns;  // the columns of a text table
  bool stacked = false;              // the columns form an axis
  std::vector<std::string> made_by;  // functions that make such samples of the column's text
  std::string made;        // the reason for an array that init has made; "": it is in the data
  bool is_ragged = false;  // lists of different lengths, filled up with 0
  /// For sequences that are padded with `pad`: number of sequences read, by length.
  std::map<std::int64_t, std::int64_t> lengths;
  std::int64_t pad = 0;
  /// The number that pads many rows of whole numbers at their ends.
  std::optional<std::int64_t> padding;
  std::string same_as;  // for labels: the ids that they repeat
  TensorType sample;    // without the batch axis
  std::int64_t rows = 0;
  bool is_label = false;       // its name is one that labels have
  bool is_text = false;        // at least one value is no number
  std::string first_text;      // in a table: the first such value with its line, for messages
  bool has_commas = false;     // in a table: decimal commas next to columns with points
  bool has_points = false;     // in a table: some numbers have a point or an exponent, "1.0"
  bool is_identifier = false;  // in a table: whole numbers or texts, each of them only once
  /// Identifiers that are left out of the columns that form the axis.
  std::vector<std::string> left_out;
  std::int64_t missing = 0;  // number of empty fields of a table
  Numbers numbers;           // statistics of all elements
  bool is_unread = false;    // text that was not tokenized: `numbers` have at most the range of ids
  /// Statistics per column where columns are stacked or a row is numbers.
  std::vector<Numbers> by_part;
  std::vector<std::int64_t> texts_by_part;  // distinct texts per stacked column
  // For columns of text; each column has its own counts where they are stacked.
  std::int64_t texts = 0;            // number of distinct texts, an empty one included
  bool may_have_more_texts = false;  // not all were read
  static constexpr std::size_t most_words = 1000;
  /// All distinct texts of one column in order, while there are at most that many.
  std::vector<std::string> words;
  std::vector<std::int64_t> word_counts;  // number of occurrences of each word
  // Two of the texts in a sentence that says how they differ; "": no two are so alike.
  std::string alike_but_for_blanks;  // `texts` and `words` are then without blanks at the ends
  std::string alike_but_for_case;
  /// A word that few rows have, in the form of `first_text`; "": there is none.
  std::string rare_text;
  std::int64_t rare_count = 0;  // number of occurrences of that word

  bool has_gaps() const { return missing > 0; }
  /// Whether fields are empty, but in no more than one row of twenty.
  bool has_few_gaps() const { return missing > 0 && missing * 20 <= rows; }
};

struct InputFacts;  // api/init/fields.h

/// Names of up to three of the files, then "and N more".
std::string shown_names(const std::vector<std::string>& files,
                        const std::function<std::string(const std::string&)>& shown);

/// The number of the array, or of one of its columns, that float32 cannot represent; "" where it
/// can represent all.
std::string beyond_float32(const ArrayFacts& array);

/// What an export's record or a command line says about the data before it is read.
struct SaidOfData {
  std::string held_out;  // a file or a folder; "": file names decide
  std::optional<DecimalMark> decimal;
  std::optional<ThousandsMark> thousands;
  std::optional<std::vector<std::string>> missing;
  /// Fields that are given, with the columns or arrays that they are made of.
  std::map<std::string, std::vector<std::string>> fields;

  /// Whether the field of an input is made of this column or array.
  bool takes(const std::vector<InputFacts>& inputs, const std::string& column) const;
};

struct DataFacts {
  SaidOfData said;
  std::string path;
  std::string kind;                     // data.kind; "": there is no data
  std::vector<ArrayFiles> train, eval;  // values for the keys `files` of the configuration
  std::vector<ArrayFacts> arrays;       // arrays in the training files
  std::int64_t rows_read = 0;           // rows of a text table that were read
  bool has_more_rows = false;           // whether the table has rows after those
  std::int64_t all_rows = 0;            // then about how many it has in all; 0: unknown
  std::vector<std::int64_t> tokens;     // by training file, where samples are windows of tokens
  std::string estimated_by;      // how the number of samples was estimated; "": they were counted
  std::vector<GuessedKey> keys;  // other keys of [data]
  std::string tokenizer;         // tokenizer.json for texts; "": none
  std::string model_folder;      // the model's folder, with its config.json
  std::string model_stem;        // the model's path without ".onnx"
  std::int64_t most_length = 0;  // number of tokens that the model has positions for; 0: unknown
  /// By name of an input: the texts that it may be made of, where it is unclear which is meant.
  std::map<std::string, std::vector<ArrayFacts>> choices;
  bool chose_length = false;  // the length of sequences was chosen, as the model leaves it free
  bool sizes_vary = false;    // pictures differ in size
  std::vector<std::string> notes;  // what was left out, with the reasons
  std::size_t file_notes = 0;      // how many of them, at the front, are about the choice of files
  bool holds_chat = false;         // lines are conversations: messages, or a prompt with its answer
  std::map<std::string, std::string> unread;  // arrays that contain no numbers, with the reasons
  std::string problem;  // why no fields can be made of the data; "" where they can
  const ArrayFacts* find(const std::string& name) const;
  /// Whether it has labels for a language model: the ids that follow.
  bool has_targets() const { return kind == "tokens" || kind == "text" || kind == "chat"; }
};

/// Reads a file or a folder; file names say what is held out. Throws Error{usage} where it does not
/// exist or contains no data, Error{data} where files are broken, empty or without samples.
DataFacts look_into_data(const std::string& path, SaidOfData said = {});
/// data.kind of a file or a folder, judging by names; "" where they do not show it.
std::string kind_of_data(const std::string& path);
/// Completes the facts that depend on the inputs that the data is for, and on the names of outputs.
void fit_data(const std::vector<InputFacts>& inputs, DataFacts& facts,
              const std::vector<std::string>& outputs = {});

/// A parameter whose rows are looked up.
struct TableFacts {
  std::string name, path;  // path: the name in selectors
  std::int64_t rows = 0, width = 0;
  std::string input;      // the input whose values are the ids; "" where ids are computed
  bool may_grow = false;  // parameters.shape may give it more rows
};

/// Which rows the elements of an input look up.
struct InputRows {
  /// By element of a sample: number of rows of the table, or of the part of a table, that only this
  /// element looks up; -1 where it looks up none. Empty: unknown, or all elements look up the same
  /// rows.
  std::vector<std::int64_t> of_elements;
  /// By element: the table that only this element looks up and that may have more rows, by its name
  /// in selectors; "" where there is none.
  std::vector<std::string> tables;
};

struct ModelFacts {
  std::string path;  // absolute
  bool has_training_info = false;
  ImportResult imported;
  Graph forward;  // after the passes; empty where dimensions are free
  std::shared_ptr<const TrainingAlgorithm> algorithm;
  std::vector<ExportNote> export_notes;
  std::vector<ModelNotice> notices;
  std::vector<TableFacts> tables;
  std::map<std::string, InputRows> input_rows;  // by name of the input
  std::vector<std::string> free;                // dimensions after axis 0 that nothing has bound
  std::map<std::string, std::int64_t> values;   // inputs whose value the role says, all steps alike
  std::int64_t batch = 0;            // the batch size that outputs and values were computed for
  std::int64_t fixed_batch = 0;      // the only batch size that the file takes; 0: any
  std::vector<std::string> words;    // names of the classes, from an export of this program
  double bytes_per_sample = 0;       // bytes of all values that a forward pass computes
  std::int64_t parameter_bytes = 0;  // bytes of all trained parameters

  /// Whether the file has BatchNormalization in training and in inference.
  bool mixes_batch_norms() const;
  /// Number of operators of this type, in the file or after the passes.
  std::int64_t count(const std::string& op) const;
  /// Scalar float outputs, and float outputs with an entry for each sample.
  std::vector<PortSummary> outputs() const;
  /// The type of an input without its batch axis; free extents are -1.
  TensorType sample_of(const PortSummary& input) const;
};

/// Number of positions in the model's own tables of positions; 0: none was found. `length`: the
/// length of sequences that the model was imported with.
std::int64_t positions_of(const ModelFacts& model, std::int64_t length);

/// Throws Error{usage} where the model cannot train, with what is missing. `in_stages`: where data
/// decides extents, only the facts that are known without the data.
ModelFacts look_into_model(const Engine& engine, const std::string& path,
                           const std::vector<std::pair<std::string, std::int64_t>>& bind = {},
                           bool in_stages = false);

}  // namespace tandem::api
