// Fits texts of a table to inputs of ids: which column is read, and how long samples become.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "api/init/data/data_look.h"
#include "api/init/data/table_arrays.h"
#include "api/init/data/token_lengths.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "api/init/model_config.h"
#include "api/init/roles.h"
#include "engine/config/rows_line.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr std::int64_t length_step = 8;
constexpr std::int64_t most_usual_length = 512;     // the length of BERT
constexpr std::int64_t length_without_texts = 128;  // where no tokenizer can measure them

/// The option `give` of the function `tokens` for an input, by the names that Hugging Face's
/// tokenizers use.
std::string part_for(const std::string& input) {
  const Role role = role_named(input);
  if (role == Role::mask) return ", give='mask'";
  if (role == Role::segments) return ", give='types'";
  return "";
}

/// Whether an input takes the ids of a text, or accompanies them. Where tables are known, ids are
/// rows of one; if several inputs are, of the largest. The text of a decoder is a different one.
bool takes_text(const InputFacts& input, const std::vector<InputFacts>& all, std::int64_t ids) {
  if (is_decoders(input.name)) return false;
  const Role role = role_of(input);
  if (role != Role::none) return role == Role::mask || role == Role::segments;
  const auto is_of = [](std::int64_t least) {
    return [=](const InputFacts& other) {
      return role_of(other) == Role::none && !is_decoders(other.name) && other.table_rows >= least;
    };
  };
  if (std::any_of(all.begin(), all.end(), is_of(std::max<std::int64_t>(ids, 1))))
    return input.table_rows >= std::max<std::int64_t>(ids, 1);
  return std::none_of(all.begin(), all.end(), is_of(1)) || input.table_rows > 0;
}

struct TextColumns {
  std::vector<ArrayFacts> read;
  std::vector<ArrayFacts> written;  // by a decoder
};

/// Whether most texts occur only once, unlike names of classes.
bool is_prose(const ArrayFacts& column) {
  constexpr std::int64_t least_rows = 8;
  return column.rows >= least_rows && 2 * column.texts > column.rows;
}

bool names_identifier(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  static const std::set<std::string, std::less<>> names{"id",   "idx", "index", "uuid",
                                                        "guid", "key", "url"};
  return names.contains(name) || name.ends_with("_id");
}

/// Whether data sets use this name for what a model is to write, such as a summary of a text.
bool names_written(const std::string& name) {
  static const std::set<std::string, std::less<>> names{
      "summary",  "highlights",  "completion", "response", "output",
      "abstract", "translation", "reference",  "tgt",      "headline"};
  return names_label(name) || names.contains(plain_name(name)) || names.contains(name);
}

/// Columns of single texts. Labels are read as text where they are prose, which names of classes
/// are not.
TextColumns columns_of_texts(const DataFacts& facts, bool has_decoder) {
  TextColumns columns;
  for (const ArrayFacts& array : facts.arrays) {
    if (!array.is_text || !array.sample.shape.empty() || array.stacked || !array.made_by.empty())
      continue;
    if (has_decoder && names_written(array.name))
      columns.written.push_back(array);
    else if (!array.is_label || is_prose(array))
      columns.read.push_back(array);
  }
  std::vector<ArrayFacts>& read = columns.read;
  const auto is_other = [](const ArrayFacts& column) { return names_identifier(column.name); };
  if (read.size() > 1 && !std::all_of(read.begin(), read.end(), is_other))
    std::erase_if(read, is_other);
  return columns;
}

/// With several inputs of ids, each takes the column that it is named after: "query_ids" takes the
/// texts of "query". Null where there is no such column, or several.
const ArrayFacts* column_for(const InputFacts& input, const std::vector<ArrayFacts>& texts) {
  const ArrayFacts* found = nullptr;
  for (const ArrayFacts& column : texts) {
    const std::string name = plain_name(column.name);
    if (name.empty() || !plain_name(input.name).starts_with(name)) continue;
    if (found != nullptr) return nullptr;
    found = &column;
  }
  return found;
}

/// The greatest length for which there are positions: the rows of the smallest table that looks
/// them up, and the number that the model gives.
std::int64_t most_length_of(const std::vector<InputFacts>& inputs, const DataFacts& facts) {
  std::int64_t most = most_usual_length;
  for (const InputFacts& input : inputs) {
    if (role_of(input) == Role::positions && input.table_rows > 0)
      most = std::min(most, input.table_rows);
  }
  return facts.most_length > 0 ? std::min(most, facts.most_length) : most;
}

bool is_row_of_ids(const InputFacts& input) {
  const Shape& shape = input.sample.shape;
  return shape.size() == 1 && shape[0] != 0 && shape[0] != 1 && is_integer(input.sample.dtype);
}

/// The number of ids of a tokenizer; 0 where it cannot be used, which training reports.
std::int64_t ids_of(const std::string& tokenizer) {
  try {
    return Tokenizer::read(tokenizer)->size();
  } catch (const Error&) {
    return 0;
  }
}

class TokenArrays {
 public:
  TokenArrays(const std::vector<InputFacts>& inputs, DataFacts& facts)
      : inputs_(inputs),
        facts_(facts),
        tokenizer_(tokenizer_near(facts)),
        most_(most_length_of(inputs, facts)) {
    for (const InputFacts& input : inputs) {
      if (role_of(input) == Role::decoder_ids) decoder_ = &input;
    }
    columns_ = columns_of_texts(facts, decoder_ != nullptr);
  }

  void run() {
    if (columns_.read.empty()) return;
    find_takers();
    if (takers_.empty() || (tokenizer_.empty() && !lacks_tokenizer())) return;
    const auto of_ids = std::count_if(takers_.begin(), takers_.end(), [](const InputFacts* input) {
      return role_of(*input) == Role::none;
    });
    const std::size_t before = facts_.arrays.size();
    for (const InputFacts* const input : takers_) {
      if (of_ids != 1) {
        if (const ArrayFacts* column = column_for(*input, columns_.read)) add(*input, {column});
        continue;
      }
      std::vector<const ArrayFacts*> all;
      for (const ArrayFacts& column : columns_.read) all.push_back(&column);
      add(*input, all);
    }
    add_written();
    if (facts_.arrays.size() == before && facts_.choices.empty()) return;
    take_tokenizer(tokenizer_,
                   "put the model's tokenizer.json next to it or to the data and run init again "
                   "with --to ANOTHER_FOLDER, which measures lengths with it "
                   "(tokenizer.save_pretrained of transformers writes one); or name it here, such "
                   "as tokenizer = \"../folder/tokenizer.json\"",
                   inputs_, facts_);
  }

 private:
  void find_takers() {
    const auto is_row_of_table = [](const InputFacts& input) {
      return role_of(input) == Role::none && !is_decoders(input.name) && input.table_rows > 0;
    };
    const bool are_several = std::count_if(inputs_.begin(), inputs_.end(), is_row_of_table) > 1;
    const std::int64_t ids =
        are_several && !tokenizer_.empty() ? Tokenizer::read(tokenizer_)->size() : 1;
    for (const InputFacts& input : inputs_) {
      if (is_row_of_ids(input) && facts_.find(input.name) == nullptr &&
          takes_text(input, inputs_, ids))
        takers_.push_back(&input);
    }
  }

  /// Whether only a tokenizer is missing: there are texts of several words, and inputs of ids that
  /// no array of the data fits.
  bool lacks_tokenizer() const {
    const auto has_words = [](const ArrayFacts& column) {
      const std::string& text = column.first_text;
      const std::size_t first = text.find('"'), last = text.rfind('"');
      const std::size_t space = first == std::string::npos ? first : text.find(' ', first);
      return space != std::string::npos && space < last && is_prose(column);
    };
    if (std::none_of(columns_.read.begin(), columns_.read.end(), has_words)) return false;
    return std::all_of(takers_.begin(), takers_.end(), [&](const InputFacts* input) {
      const bool is_free = input->sample.shape[0] < 0;
      return is_free || role_of(*input) != Role::none || names_ids(input->name);
    });
  }
  static bool names_ids(const std::string& name) {
    return name.find("input_ids") != std::string::npos || name.find("token") != std::string::npos;
  }

  const std::map<std::int64_t, std::int64_t>& lengths_of(const std::string& column) {
    const auto found = lengths_.find(column);
    if (found != lengths_.end()) return found->second;
    auto& lengths = lengths_[column];
    if (!tokenizer_.empty()) lengths = token_lengths(facts_, column, tokenizer_);
    return lengths;
  }
  /// A length that all texts of these columns fit in, limited by the model; 0: there are none.
  std::int64_t length_for(const std::vector<const ArrayFacts*>& columns) {
    if (tokenizer_.empty()) return std::min(length_without_texts, most_);
    std::int64_t longest = 0;
    for (const ArrayFacts* column : columns) {
      const auto& lengths = lengths_of(column->name);
      if (!lengths.empty()) longest = std::max(longest, lengths.rbegin()->first);
    }
    if (longest == 0) return 0;
    return std::clamp((longest + length_step - 1) / length_step * length_step,
                      std::min(length_step, most_), most_);
  }

  /// The array that a function `tokens` makes of a column. A dimension that the model leaves free
  /// gets the length of the texts.
  ArrayFacts made_of(const ArrayFacts& column, const InputFacts& input, std::int64_t length,
                     const std::string& options) {
    ArrayFacts array;
    if (input.sample.shape[0] < 0 && !tokenizer_.empty()) {
      array.lengths = lengths_of(column.name);
      array.pad = Tokenizer::read(tokenizer_)->pad();
    }
    array.name = input.name;
    array.source = column.name;
    array.columns = {column.name};
    array.made_by = {fmt::format("tokens(length={}{})", length, options)};
    array.made =
        fmt::format("of the texts of \"{}\", by {}", column.name,
                    tokenizer_.empty() ? "tokenizer.json"
                                       : std::filesystem::path(tokenizer_).filename().string());
    array.sample = {DType::int64, {length}};
    array.rows = column.rows;
    array.numbers.add(0);  // the real ids are checked when the data is read
    return array;
  }

  void add(const InputFacts& input, const std::vector<const ArrayFacts*>& columns) {
    std::int64_t length = input.sample.shape[0];
    if (length < 0) {
      length = length_for(with_written(input, columns));
      if (length == 0) return;
      facts_.chose_length = true;
    }
    for (const ArrayFacts* column : columns) {
      ArrayFacts array = made_of(*column, input, length, part_for(input.name));
      tell_cut(*column, length);
      if (columns.size() == 1)
        facts_.arrays.push_back(std::move(array));
      else
        facts_.choices[input.name].push_back(std::move(array));
    }
  }

  /// The columns for an input that has the same length as the decoder's, because the file gives
  /// their dimensions the same name.
  std::vector<const ArrayFacts*> with_written(const InputFacts& input,
                                              std::vector<const ArrayFacts*> columns) const {
    if (decoder_ == nullptr || &input == decoder_ || input.dims.size() != 2 ||
        decoder_->dims.size() != 2 || input.dims[1] != decoder_->dims[1])
      return columns;
    for (const ArrayFacts& column : columns_.written) columns.push_back(&column);
    return columns;
  }

  /// Adds the text that a decoder learns to write; where it is unclear which one that is, all
  /// columns of text are candidates, unless there is only one.
  void add_written() {
    if (decoder_ == nullptr) return;
    std::vector<const ArrayFacts*> columns;
    const bool is_named = !columns_.written.empty();
    for (const ArrayFacts& column : is_named ? columns_.written : columns_.read)
      columns.push_back(&column);
    if (!is_named && columns.size() < 2) return;
    std::int64_t length = decoder_->sample.shape[0];
    if (length < 0) {
      std::vector<const ArrayFacts*> as_long = columns;
      const bool shares = std::any_of(takers_.begin(), takers_.end(), [&](const InputFacts* other) {
        return other->dims.size() == 2 && decoder_->dims.size() == 2 &&
               other->dims[1] == decoder_->dims[1];
      });
      if (shares) {
        for (const ArrayFacts& column : columns_.read) as_long.push_back(&column);
      }
      length = length_for(as_long);
      if (length == 0) return;
      facts_.chose_length = true;
    }
    const auto pad = number_in_config(facts_.model_folder, "pad_token_id");
    const std::string options = pad ? fmt::format(", pad={}", pad->value) : "";
    for (const ArrayFacts* column : columns) {
      ArrayFacts labels = made_of(*column, *decoder_, length, options);
      tell_cut(*column, length);
      labels.name = "labels";
      labels.is_label = true;
      labels.padding = pad ? pad->value
                       : tokenizer_.empty()
                           ? 0
                           : static_cast<std::int64_t>(Tokenizer::read(tokenizer_)->pad());
      labels.pad = *labels.padding;
      if (columns.size() == 1)
        facts_.arrays.push_back(std::move(labels));
      else
        facts_.choices[decoder_->name].push_back(std::move(labels));
    }
  }

  /// Adds a note about tokens beyond the length, which are cut off.
  void tell_cut(const ArrayFacts& column, std::int64_t length) {
    if (tokenizer_.empty() || !told_.insert(column.name).second) return;
    std::int64_t texts = 0, longer = 0, tokens = 0, cut = 0;
    try {
      for (const auto& [size, count] : lengths_of(column.name)) {
        texts += count;
        tokens += size * count;
        if (size <= length) continue;
        longer += count;
        cut += (size - length) * count;
      }
    } catch (const Error&) {  // the tokenizer cannot be used, which training reports
      return;
    }
    if (longer == 0) return;
    facts_.notes.push_back(fmt::format(
        "{} of {} texts of \"{}\" are longer than {} tokens, the longest has {}: {:.3g} % of the "
        "tokens are left out; with data.kind = \"text\" a text file is cut into windows, none of "
        "which is lost",
        longer, texts, column.name, length, lengths_.at(column.name).rbegin()->first,
        100 * static_cast<double>(cut) / static_cast<double>(tokens)));
  }

  const std::vector<InputFacts>& inputs_;
  DataFacts& facts_;
  const std::string tokenizer_;
  const std::int64_t most_;
  const InputFacts* decoder_ = nullptr;
  TextColumns columns_;
  std::vector<const InputFacts*> takers_;
  std::map<std::string, std::map<std::int64_t, std::int64_t>> lengths_;
  std::set<std::string> told_;
};

}  // namespace

std::string tokenizer_near(const DataFacts& facts) {
  namespace fs = std::filesystem;
  const fs::path data =
      is_directory(facts.path) ? fs::path(facts.path) : fs::path(facts.path).parent_path();
  std::vector<std::string> files;
  if (!facts.model_stem.empty()) files.push_back(facts.model_stem + ".tokenizer.json");
  for (const fs::path& folder : {data, fs::path(facts.model_folder)}) {
    if (!folder.empty()) files.push_back((folder / "tokenizer.json").string());
  }
  const auto found = std::find_if(files.begin(), files.end(), path_exists);
  return found == files.end() ? "" : *found;
}

std::int64_t rows_for_ids(const std::vector<InputFacts>& inputs) {
  std::int64_t rows = 0;
  for (const InputFacts& input : inputs) {
    if (role_of(input) == Role::none) rows = std::max(rows, input.table_rows);
  }
  return rows;
}

void take_tokenizer(const std::string& tokenizer, const std::string& lacks,
                    const std::vector<InputFacts>& inputs, DataFacts& facts) {
  std::string todo = lacks;
  if (!tokenizer.empty()) {
    const std::int64_t ids = ids_of(tokenizer), rows = rows_for_ids(inputs);
    if (rows == 0 || ids <= rows) {
      facts.tokenizer = tokenizer;
      return;
    }
    std::map<std::string, std::int64_t> wanted;
    for (const InputFacts& input : inputs) {
      if (role_of(input) != Role::none || input.table_rows != rows) continue;
      for (const auto& [table, own] : input.tables) wanted[table] = ids;
    }
    todo = fmt::format(
        "{} has ids up to {}, the model's table of ids has {} rows: is it this model's tokenizer? "
        "Name the model's own{}",
        std::filesystem::path(tokenizer).filename().string(), ids - 1, rows,
        wanted.empty() ? "" : "; for tokens that are new, " + rows_line(wanted));
  }
  facts.keys.push_back({"tokenizer", "\"../folder/tokenizer.json\"", "", todo});
}

void add_token_arrays(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  TokenArrays(inputs, facts).run();
}

}  // namespace tandem::api
