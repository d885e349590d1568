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
#include "engine/training/config/data_config.h"
#include "importer/export_notes.h"
#include "importer/model_notices.h"
#include "importer/training_info/training_info.h"

namespace tandem::api {

/// Numbers of an array that were looked at.
struct Numbers {
  std::int64_t count = 0;
  double least = 0, most = 0;
  double sum = 0, spread = 0;  // spread: of squares of distances from the mean
  bool whole = true, finite = true;
  static constexpr std::size_t most_distinct = 4096;
  std::set<double> distinct;  // all values, while there are at most that many
  bool many = false;          // there are more

  void add(double x, std::int64_t times = 1);
  void add(const HostTensor& tensor);
  void add(const Numbers& other);
  double mean() const;
  double deviation() const;  // of the population
  /// Nothing else than 0 and 1.
  bool binary() const { return count > 0 && finite && !many && distinct_within({0, 1}); }
  bool distinct_within(const std::set<double>& allowed) const;
  /// The one that is farthest from 0.
  double largest() const;
  bool fit_float32() const;  // none is infinite there
};

/// An array whose axis 0 counts samples; of a text table a column, or columns that make an axis.
struct ArrayFacts {
  std::string name;
  std::string source;                // how `from` calls it; "": by its name
  std::vector<std::string> columns;  // of a text table
  bool stacked = false;              // the columns make an axis
  std::vector<std::string> made_by;  // functions that make such samples of the column's text
  std::string made;                  // what init has made it of, as a reason; "": it is there
  bool is_ragged = false;            // lists of different lengths, filled up with 0
  /// Of sequences that are filled up with `pad`: how many of those that were looked at are so long.
  std::map<std::int64_t, std::int64_t> lengths;
  std::int64_t pad = 0;
  /// The number that fills many rows of whole numbers up at their ends.
  std::optional<std::int64_t> padding;
  std::string same_as;  // labels: the ids that they repeat
  TensorType sample;    // without the batch axis
  std::int64_t rows = 0;
  bool is_label = false;              // called as what is learned
  bool is_text = false;               // a value at least is no number
  std::string first_text;             // of a table: that value and its line, as messages show it
  bool has_points = false;            // of a table: numbers with a point or an exponent, "1.0"
  bool is_identifier = false;         // of a table: whole numbers or texts, each of them once
  std::vector<std::string> left_out;  // of columns that make an axis: identifiers, not among them
  std::int64_t missing = 0;           // empty fields of a table
  Numbers numbers;                    // of all elements
  bool is_unread = false;             // text whose tokens were not made: `numbers` are ids at most
  std::vector<Numbers> by_part;       // of each column where they are stacked, or a row is numbers
  std::vector<std::int64_t> texts_by_part;  // of columns that are stacked
  // Of columns that hold text; each counts its own where they are stacked.
  std::int64_t texts = 0;            // different ones, an empty one included
  bool may_have_more_texts = false;  // not all were looked at
  static constexpr std::size_t most_words = 1000;
  std::vector<std::string> words;  // all texts of one column in order, while they are that few
  std::vector<std::int64_t> word_counts;  // how often each of them is there
  std::string rare_text;  // a word that few rows have, written as `first_text`; "": there is none
  std::int64_t rare_count = 0;  // how often it is there

  bool has_gaps() const { return missing > 0; }
  /// Whether fields are empty, but in no more than one row of twenty.
  bool has_few_gaps() const { return missing > 0 && missing * 20 <= rows; }
};

struct InputFacts;  // api/init/fields.h

/// Up to three of the files, "and N more".
std::string shown_names(const std::vector<std::string>& files,
                        const std::function<std::string(const std::string&)>& shown);

/// Which number of the array, or of one of its columns, float32 does not hold; "" where it holds
/// all.
std::string beyond_float32(const ArrayFacts& array);

/// What is said of the data before it is looked into, by an export's record or a command line.
struct SaidOfData {
  std::string held_out;  // a file or a folder; "": names of files say it
  std::optional<DecimalMark> decimal;
  std::optional<ThousandsMark> thousands;
  std::optional<std::vector<std::string>> missing;
  /// Fields that are said, with the columns or arrays that they are made of.
  std::map<std::string, std::vector<std::string>> fields;

  /// Whether the field of an input is made of this column or array.
  bool takes(const std::vector<InputFacts>& inputs, const std::string& column) const;
};

struct DataFacts {
  SaidOfData said;
  std::string path;
  std::string kind;                     // data.kind; "": there is no data
  std::vector<ArrayFiles> train, eval;  // as `files` of the configuration takes them
  std::vector<ArrayFacts> arrays;       // those in the training files
  std::int64_t rows_read = 0;           // rows of a text table that were looked at
  bool has_more_rows = false;           // whether the table goes on after them
  std::vector<GuessedKey> keys;         // others of [data]
  std::string tokenizer;                // tokenizer.json for texts; "": none
  std::string model_folder;             // that the model lies in, with its config.json
  std::string model_stem;               // the model's path without ".onnx"
  std::int64_t most_length = 0;         // tokens that it has positions for; 0: not known
  /// By the name of an input: the texts that it may be made of, where nothing tells which is meant.
  std::map<std::string, std::vector<ArrayFacts>> choices;
  bool chose_length = false;                  // of sequences, where the model leaves it free
  bool sizes_vary = false;                    // of pictures
  std::vector<std::string> notes;             // what was left out, and why
  std::map<std::string, std::string> unread;  // arrays that are no numbers, and why
  std::string problem;                        // why fields cannot be made of it; "" where they can
  const ArrayFacts* find(const std::string& name) const;
};

/// Looks into a file or a folder: file names say what is held out. Throws Error{usage} where it is
/// not there or nothing in it is data, Error{data} where files are broken, empty or without
/// samples.
DataFacts look_into_data(const std::string& path, SaidOfData said = {});
/// data.kind of a file or a folder, as its names say; "" where they say none.
std::string kind_of_data(const std::string& path);
/// Settles what of the data depends on the inputs that it is for, and on the names of outputs.
void fit_data(const std::vector<InputFacts>& inputs, DataFacts& facts,
              const std::vector<std::string>& outputs = {});

/// A parameter whose rows are looked up.
struct TableFacts {
  std::string name, path;  // path: as selectors name it
  std::int64_t rows = 0, width = 0;
  std::string input;  // whose values are the ids; "" where they are computed
};

/// What of an input looks up rows.
struct InputRows {
  /// By element of a sample: the rows of the table that it alone looks up, or of its part of one;
  /// -1 where it looks up none. Empty: not known, or all elements look up the same rows.
  std::vector<std::int64_t> of_elements;
  /// By element: the table that it alone looks up, as selectors name it; "" where it shares one.
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
  std::map<std::string, InputRows> input_rows;  // by input
  std::vector<std::string> free;                // dimensions behind axis 0 that nothing has bound
  std::int64_t batch = 0;                       // that outputs and values were computed for
  std::int64_t fixed_batch = 0;                 // the file takes no other; 0: any
  std::vector<std::string> words;               // what an export of this program calls its classes
  double bytes_per_sample = 0;                  // of all values that a step computes forward
  std::int64_t parameter_bytes = 0;             // of what trains

  /// Whether the file has BatchNormalization in training and in inference.
  bool mixes_batch_norms() const;
  /// Operators of this type, in the file or after the passes.
  std::int64_t count(const std::string& op) const;
  /// Float outputs with an entry for each sample, and scalars.
  std::vector<PortSummary> outputs() const;
  /// The type of an input without its batch axis; free extents are -1.
  TensorType sample_of(const PortSummary& input) const;
};

/// How many places the model's own tables of positions have; 0: it has none that is seen. `length`:
/// that of the sequences which the model was looked at with.
std::int64_t positions_of(const ModelFacts& model, std::int64_t length);

/// Throws Error{usage} where the model cannot train, with what is missing. `in_stages`: where data
/// decides extents the facts are those of what is known without it.
ModelFacts look_into_model(const Engine& engine, const std::string& path,
                           const std::vector<std::pair<std::string, std::int64_t>>& bind = {},
                           bool in_stages = false);

}  // namespace tandem::api
