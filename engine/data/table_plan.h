// A plan for the columns of a text table: per field, the functions that act on text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/cells/spelling.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/vocabulary.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/graph/error.h"
#include "engine/graph/host_tensor.h"
#include "engine/graph/structures/function_ref.h"

namespace tandem {

struct VocabularyPlan {
  std::string name;        // given in the function; "" where it is the field's
  std::int64_t least = 1;  // how often a value has to be there
  bool by_value = false;   // one id for a value in all columns
  bool by_table = false;   // ids of each column from 1 on, for a table of each
  std::string file;        // absolute: says the ids of training; "": training data are counted
  /// "value", "table" or "column".
  const char* by() const { return by_value ? "value" : by_table ? "table" : "column"; }
};
/// The name of the vocabulary that a function of a field makes ids with; "" for other functions.
std::string vocabulary_name(const FieldConfig& field, const Transform& function);
/// "vocabulary(by='table', file='F')": the function of this plan that takes its numbers from
/// `file`, or counts them where that is "".
std::string vocabulary_text(const VocabularyPlan& plan, const std::string& file);
/// The function as it is written, without the file that a vocabulary was taken from: a model has
/// its own copy.
std::string text_without_file(const Transform& function);
/// What a vocabulary's `file` holds. Throws Error{data} where it is not there.
std::string text_of_file(const VocabularyPlan& plan);
/// The vocabulary of training: that of the plan's file, or of the values that occur in the training
/// data. `ids[number]` becomes the id of each of them. Throws Error{data} where the file is none of
/// these columns.
Vocabulary training_vocabulary(const VocabularyPlan& plan, const std::vector<std::string>& columns,
                               const ValueCounts& all, std::vector<std::int32_t>& ids);

/// The id of a value's text; -1 where it has none, which is an error.
using ValueIds = std::function<std::int64_t(std::string_view value)>;

/// A number that a function reads from text in a way of its own; `problem`, `expected` and the
/// result of `fix` are the message for a cell that it cannot read.
struct TextReading {
  /// `cells`: the marks of numbers in this cell. Empty: the usual way.
  std::function<std::optional<double>(std::string_view cell, const CellText& cells)> number;
  std::string problem, expected;
  std::function<std::string(std::string_view cell)> fix = {};
  bool is_time = false;  // reads dates, and numbers that are times
};

/// What `tokens` gives of the tokens of a cell.
enum class TokenPart : std::uint8_t { ids, mask, types, targets };

/// A field up to the array that is stored of it. The functions in order: `trim`, `lower`,
/// `missing`, `split`, the numeric ones, and one that ends it; where none makes ids, its numbers
/// are stored.
struct TableField {
  struct Number {
    Transform transform;
    const NumberFunction* function;
  };

  std::string name;
  std::vector<std::size_t> columns;
  std::vector<std::string> missing;  // in place of empty cells: of all columns, or one a column
  Spelling spelling;                 // which texts are one
  std::string separator;             // "": each character of UTF-8 is a value
  std::int64_t most = 0;             // values of one cell that are kept; 0: a cell is one value
  std::int64_t pad = 0;
  TextReading reading;
  std::vector<Number> numeric;
  std::vector<ValueIds> ids;       // one a column, where a formula makes them
  std::int64_t ids_below = 0;      // by that formula
  std::vector<std::string> words;  // the only ones that have ids; empty: all text has
  // Null where the values are no tokens; `most` of them then.
  std::shared_ptr<const Tokenizer> tokenizer;
  TokenPart part = TokenPart::ids;
  EncodeOptions encoding;
  std::optional<std::size_t> vocabulary;  // in TablePlan::vocabularies, where it makes the ids
  // By column: whether its values count there. Where another field has read the same column in the
  // same way, they are counted already.
  std::vector<bool> counts;
  TensorType stored;               // type of one sample
  DType logical = DType::float32;  // type of the values that the field gives
  std::vector<Transform> rest;     // functions of the array
  // All of the above but `rest`, the functions as they are written: the prepared table's key. A new
  // function or option of one is part of it by itself; what else changes the arrays raises
  // `table_format`.
  std::string text;

  bool makes_ids() const { return vocabulary || !ids.empty() || tokenizer; }
  /// Needs a number of each value.
  bool parses() const { return !makes_ids() || !numeric.empty() || reading.number; }
  std::int64_t values_of_a_cell() const { return most > 0 ? most : 1; }
};

struct TablePlan {
  std::vector<std::string> columns;
  std::vector<TableField> fields;
  std::vector<VocabularyPlan> vocabularies;
  CellText cells;
  std::string separator_fix;       // what to do where cells are separated in another way
  bool refuses_unknown = false;    // words that vocabularies lack make a row a bad one
  std::vector<std::string> notes;  // what was found out and is not as it is written
  std::string tokenizer_path;      // "": none is named
  std::shared_ptr<const Tokenizer> tokenizer;  // null until a field takes it
};

/// Takes the functions of a field in order: those of text, then those of the array.
class FieldPlanner {
 public:
  /// `file`: where the names of the columns are from.
  FieldPlanner(const FieldConfig& field, const std::string& file, TablePlan& plan,
               std::vector<Diagnostic>& errors)
      : field_(field), file_(file), plan_(plan), errors_(errors) {}

  void add();

  // For FieldFunction::take_text, of the function that is taken:
  TableField& field() { return to_; }
  /// The functions before made a number of the text.
  bool is_number() const { return !to_.numeric.empty() || to_.reading.number; }
  /// `problem` follows the function's text.
  void report(const std::string& problem, std::string fix = "");
  /// Up to `most` values; the id `pad` where there are fewer.
  void split(const std::string& separator, std::int64_t most, std::int64_t pad);
  /// In place of the usual way; `are_ids`: the numbers are whole, and below 2^31.
  void read_text(TextReading reading, bool are_ids);
  void take_number(const NumberFunction& function);
  /// The text is read as numbers of that type.
  void end_as_number(DType dtype);
  /// Ids by a formula for each column; they are below `count`.
  void end_as_ids(std::int64_t count, FunctionRef<ValueIds(const std::string&)> of_column);
  void end_as_vocabulary(VocabularyPlan wanted);
  void end_as_tokens(TokenPart part, const EncodeOptions& encoding);

 private:
  void report(const Where& where, std::string message, std::string fix = "");
  void find_columns();
  void take(const Transform& function);
  void end_as_ids();
  std::string last_number() const;
  bool computes_on() const;
  void store();

  const FieldConfig& field_;
  const std::string& file_;
  TablePlan& plan_;
  std::vector<Diagnostic>& errors_;
  TableField to_;
  const Transform* function_ = nullptr;  // the function being taken
  const Transform* split_ = nullptr;
  std::size_t taken_ = 0;          // functions of the text
  bool ended_ = false;             // the text is an array
  bool whole_ = false;             // the last numeric function gives whole numbers
  DType number_ = DType::float32;  // type that text is read as
};

/// Reports functions that do not fit. `columns`: those of the files, in order; they come from the
/// first file for training, else for evaluation.
TablePlan plan_table(const DataConfig& config, std::vector<std::string> columns,
                     std::vector<Diagnostic>& errors);

}  // namespace tandem
