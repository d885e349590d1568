#include "api/init/data/token_lengths.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

#include "api/init/data/table_arrays.h"
#include "engine/formats/delimited.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem::api {
namespace {

constexpr std::int64_t most_texts = 1000;

/// Reads the texts of a column of a file, one after the other.
class TextReader {
 public:
  TextReader(const std::string& kind, const std::string& path, const std::string& column)
      : column_(column),
        is_json_(kind == "jsonl"),
        reader_(path,
                is_json_        ? '\n'
                : kind == "tsv" ? '\t'
                                : ',',
                kind == "csv") {
    if (is_json_) return;
    if (kind == "csv") reader_.find_form({});
    const std::vector<std::string> names = names_in_header(reader_);
    place_ =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin());
  }
  /// Empty at the end.
  std::optional<std::string> next() {
    while (reader_.next()) {
      const auto& cells = reader_.fields();
      if (!is_json_) {
        if (place_ < cells.size()) return std::string(cells[place_]);
        continue;
      }
      const auto object =
          nlohmann::json::parse(cells[0].begin(), cells[0].end(), nullptr, /*throws=*/false);
      if (!object.is_object()) continue;
      const auto found = object.find(column_);
      if (found != object.end() && found->is_string()) return found->get<std::string>();
    }
    return std::nullopt;
  }

 private:
  std::string column_;
  bool is_json_;
  DelimitedReader reader_;
  std::size_t place_ = 0;
};

}  // namespace

std::map<std::int64_t, std::int64_t> token_lengths(const DataFacts& facts,
                                                   const std::string& column,
                                                   const std::string& tokenizer) {
  const std::shared_ptr<const Tokenizer> encoder = Tokenizer::read(tokenizer);
  std::map<std::int64_t, std::int64_t> lengths;
  EncodeScratch scratch;
  EncodedTokens tokens;
  std::int64_t count = 0;
  for (const std::string& path : facts.train.at(0).paths) {
    TextReader texts(facts.kind, path, column);
    while (count < most_texts) {
      const std::optional<std::string> text = texts.next();
      if (!text) break;
      ++count;
      try {
        encoder->encode(*text, {}, scratch, tokens);
        ++lengths[static_cast<std::int64_t>(tokens.ids.size())];
      } catch (const std::invalid_argument&) {  // `train` reports the row
      }
    }
  }
  return lengths;
}

}  // namespace tandem::api
