// Guesses which array of the data becomes which field, by which functions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/init/facts.h"

namespace tandem::api {

struct FieldGuess {
  std::string name;                  // name of the input or of the loss's labels
  const ArrayFacts* from = nullptr;  // null where `todo` says why
  std::shared_ptr<const ArrayFacts> own =
      nullptr;  // what `from` points to, if it is not the data's
  std::vector<std::string> as;
  std::string why;
  std::string todo;
  bool lacks_array = false;  // open, because no array of the data fits
  bool is_left_out = false;  // the model does not need it: its dimension is bound to 0
  bool other_order = false;  // open, because the columns would fit in another order
  bool is_said = false;      // given by a record or a command line
  std::map<std::string, std::int64_t> rows;  // by selector: rows that tables need to have
  std::string offer;                         // where the field is open: a suggested value, as TOML
  std::vector<std::string> offered;          // the columns in it
};

struct FieldGuesses {
  std::vector<FieldGuess> fields;  // fields of the model's inputs
  std::set<const ArrayFacts*> used;
  std::map<std::string, std::int64_t> bind;  // free dimensions, by the samples' extents
};

/// An input that is fed, or limited by the table that it looks up.
struct InputFacts {
  std::string name;
  TensorType sample;              // free extents are -1
  std::vector<std::string> dims;  // names of dimensions in the file, axis 0 first
  std::int64_t table_rows = 0;    // rows of the table that its values look up; 0: they look up none
  /// Rows of the tables that all elements look up, by their names in selectors; empty where one of
  /// them cannot have more rows.
  std::map<std::string, std::int64_t> tables = {};
  /// Where elements look up rows of different tables: the number of rows for each element; else
  /// empty. `table_rows` is the smallest of them.
  std::vector<std::int64_t> element_rows = {};
  /// The table that only this element looks up; "": none.
  std::vector<std::string> element_tables = {};
};
std::vector<InputFacts> inputs_of(const ModelFacts& model);

/// Matches arrays to inputs by name, then by the only array that fits in type and shape, then by an
/// input's role (roles.h) that no other array serves. An array serves one input.
FieldGuesses guess_fields(const std::vector<InputFacts>& inputs, const DataFacts& data);

struct LossChoice;  // api/init/loss.h
/// Where no array fits an input of a row, and some columns of the data are unused: uses them if
/// their number fits and the target has a known name; else offers them, and asks which of them are
/// meant.
void offer_columns(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   const LossChoice& loss, FieldGuesses& guesses);

/// Arrays that may be used: those for testing only where there are none for training.
std::vector<const ArrayFacts*> usable_arrays(const DataFacts& data);

/// Functions that make an input from an array that fits it, with the reason. `why_not`: why these
/// cannot be determined.
struct Functions {
  std::vector<std::string> as;
  std::map<std::string, std::int64_t> rows;  // by selector: rows that tables need to have
  std::string why;
  std::string why_not;
};
Functions functions_for(const InputFacts& input, const ArrayFacts& array);

/// "classes('a', 'b')" of these words, in this order; "" where there are fewer than two, or some
/// cannot be written that way.
std::string classes_function(const std::vector<std::string>& words);
/// All distinct texts of a column that is no list, in order; empty where there are too many.
std::vector<std::string> words_of(const ArrayFacts& array);
/// The first of these words that a list in the configuration cannot contain, and why; "" where
/// there is none.
std::string unlisted_word(const ArrayFacts& array);
/// The text quoted, on one line and as UTF-8; only the beginning of a long one.
std::string shown_text(std::string_view text);
/// Whether a column has both texts and numbers.
bool mixes_text(const ArrayFacts& array);
/// The columns that have both, with the first text of each; "" where none has.
std::string texts_among_numbers(const std::vector<const ArrayFacts*>& arrays);
/// Like texts_among_numbers, for columns that would otherwise be elements of the input's samples.
std::string passed_over_for_text(const InputFacts& input,
                                 const std::vector<const ArrayFacts*>& arrays);
/// Casts of the array's whole numbers to an integer type. A table's "1.0" is read as a float first.
std::vector<std::string> integer_casts(const ArrayFacts& array, DType dtype);

/// "" where an array fits an input; else the reason why it does not.
std::string misfit(const InputFacts& input, const ArrayFacts& array);

/// A name that is equal for "image", "Images" and "images".
std::string plain_name(const std::string& name);

/// The value of `from`, as TOML: columns with numbers at their ends as braces.
std::string source_toml(const ArrayFacts& array);
/// The value of the key for a field that has an array, as TOML.
std::string field_toml(const FieldGuess& field);
/// "; without "id", an identifier: …"; "" where no column was left out.
std::string left_out_text(const std::vector<std::string>& columns);

}  // namespace tandem::api
