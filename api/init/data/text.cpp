// Files of plain text, .txt, which a tokenizer turns into windows of tokens.
#include <algorithm>
#include <filesystem>

#include "api/init/data/data_look.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/graph/error.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t bytes_a_token = 4;  // approximately, in English text

bool takes_plain_text(const std::string& path) { return path.ends_with(".txt"); }

void look_at_plain_text(const SplitPaths& paths, DataFacts& facts) {
  const bool has_text = std::any_of(paths.train.begin(), paths.train.end(),
                                    [](const std::string& path) { return file_size(path) > 0; });
  if (!has_text)
    throw Error(ErrorKind::data,
                Diagnostic{.message = "the text is empty", .file = paths.train.at(0)});
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  ArrayFacts tokens;
  tokens.sample = {DType::int64, {usual_window}};
  for (const std::string& path : paths.train) {
    const auto bytes = static_cast<std::int64_t>(file_size(path));
    tokens.rows += std::max<std::int64_t>(bytes / bytes_a_token / usual_window, 1);
  }
  tokens.numbers.add(0);
  for (const char* name : {"tokens", "targets"}) {
    tokens.name = name;
    facts.arrays.push_back(tokens);
  }
  facts.notes.emplace_back(
      "how many samples a text makes is estimated, at four bytes a token; `tandem data check` "
      "counts them");
}

void fit_plain_text(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  const std::string tokenizer = tokenizer_near(facts);
  const std::int64_t rows = rows_for_ids(inputs);
  std::int64_t ids = rows > 0 ? rows : 256;  // as for bytes
  if (!tokenizer.empty()) {
    const std::int64_t own = Tokenizer::read(tokenizer)->size();
    ids = rows > 0 ? std::min(own, rows) : own;
  }
  take_tokenizer(tokenizer,
                 "there is no tokenizer.json next to the model or the data: name the model's, such "
                 "as tokenizer = \"../folder/tokenizer.json\", or \"bytes\" or \"characters\" if "
                 "the model was made for these",
                 inputs, facts);
  for (ArrayFacts& array : facts.arrays) {
    array.numbers.add(static_cast<double>(ids - 1));
    array.is_unread = true;
  }
  fit_windows(inputs, facts);
}

}  // namespace

DataLook text() {
  return {
      .kind = "text", .takes = takes_plain_text, .look = look_at_plain_text, .fit = fit_plain_text};
}

}  // namespace tandem::api::looks
