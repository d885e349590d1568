// Which array of the data becomes which field, by which functions.
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
  std::string name;                  // of the input or of the loss's labels
  const ArrayFacts* from = nullptr;  // null where `todo` says why
  std::shared_ptr<const ArrayFacts> own =
      nullptr;  // what `from` points to, if it is not the data's
  std::vector<std::string> as;
  std::string why;
  std::string todo;
  bool lacks_array = false;                  // open, since none of the data fits
  bool is_left_out = false;                  // the model needs none: its dimension is bound to 0
  bool other_order = false;                  // open, since the columns would fit in another one
  bool is_said = false;                      // by a record or a command line
  std::map<std::string, std::int64_t> rows;  // tables that need as many, by selector
  std::string offer;                         // where it is open: a value to change, as TOML
  std::vector<std::string> offered;          // the columns in it
};

struct FieldGuesses {
  std::vector<FieldGuess> fields;  // of the model's inputs
  std::set<const ArrayFacts*> used;
  std::map<std::string, std::int64_t> bind;  // free dimensions, as the samples have them
};

/// A fed input, or one that its table lookup limits.
struct InputFacts {
  std::string name;
  TensorType sample;              // free extents are -1
  std::vector<std::string> dims;  // as the file has them, axis 0 first
  std::int64_t table_rows = 0;    // its values are rows of a table of so many; 0: they are not
  std::string table = {};         // the one that all elements look up, as selectors name it
  /// Where elements look up rows of different tables: those of each; else empty. `table_rows` is
  /// the least of them.
  std::vector<std::int64_t> element_rows = {};
  std::vector<std::string> element_tables = {};  // that no other element looks up; "" of others
};
std::vector<InputFacts> inputs_of(const ModelFacts& model);

/// By name, then by the only array that fits in type and shape, then by what an input is for
/// (roles.h), which no other array serves. An array serves one input.
FieldGuesses guess_fields(const std::vector<InputFacts>& inputs, const DataFacts& data);

struct LossChoice;  // api/init/loss.h
/// Where no array fits an input of a row, and the data has columns that nothing else takes: takes
/// these if they are as many and the target has its own name; else offers them, and asks which of
/// them are meant.
void offer_columns(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   const LossChoice& loss, FieldGuesses& guesses);

/// Arrays that may be used: those of a part for testing are not, where others are for training.
std::vector<const ArrayFacts*> usable_arrays(const DataFacts& data);

/// Functions that make an input of an array that fits it, with the reason. `why_not` says why
/// nobody can tell which these are.
struct Functions {
  std::vector<std::string> as;
  std::map<std::string, std::int64_t> rows;  // tables that need as many, by selector
  std::string why;
  std::string why_not;
};
Functions functions_for(const InputFacts& input, const ArrayFacts& array);

/// "classes('a', 'b')" of these words, in this order; "" where there are less than two, or some
/// cannot be written so.
std::string classes_function(const std::vector<std::string>& words);
/// All different texts of a column that is no list, in order; none where they are too many.
std::vector<std::string> words_of(const ArrayFacts& array);
/// The first of these words that such a list cannot hold, and why; "" where there is none.
std::string unlisted_word(const ArrayFacts& array);
/// Between quotes and on one line, as UTF-8, its beginning where it is long.
std::string shown_text(std::string_view text);
/// Whether a column has texts beside its numbers.
bool mixes_text(const ArrayFacts& array);
/// Which of the columns do so, with the first text of each; "" where none does.
std::string texts_among_numbers(const std::vector<const ArrayFacts*>& arrays);
/// The same of those columns that would else be elements of the input's samples.
std::string passed_over_for_text(const InputFacts& input,
                                 const std::vector<const ArrayFacts*>& arrays);
/// Casts of the array's whole numbers to an integer type. A table's "1.0" is read as a float first.
std::vector<std::string> integer_casts(const ArrayFacts& array, DType dtype);

/// "" where an array fits an input; else why it does not.
std::string misfit(const InputFacts& input, const ArrayFacts& array);

/// "image", "Images" and "images" are alike.
std::string plain_name(const std::string& name);

/// `from`, as TOML: columns with numbers at their ends as braces.
std::string source_toml(const ArrayFacts& array);
/// The key's value, as TOML, of a field that has an array.
std::string field_toml(const FieldGuess& field);
/// "; without "id", an identifier: …"; "" where no column was left out.
std::string left_out_text(const std::vector<std::string>& columns);

}  // namespace tandem::api
