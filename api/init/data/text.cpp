// Files of plain text, .txt, that a tokenizer makes windows of tokens of.
#include <algorithm>
#include <filesystem>

#include "api/init/data/data_look.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t bytes_a_token = 4;  // an English text has about so many

bool takes_plain_text(const std::string& path) {
  return path.ends_with(".txt") && file_size(path) > 0;
}

void look_at_plain_text(const SplitPaths& paths, DataFacts& facts) {
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
  facts.tokenizer = tokenizer_near(facts);
  double most = 255;  // the largest id where bytes are the tokens
  if (facts.tokenizer.empty()) {
    facts.keys.push_back(
        {"tokenizer", "\"bytes\"", "",
         "no tokenizer.json lies next to the model or the data: put the model's there and run init "
         "again, or say \"bytes\" or \"characters\" where the model was made for these"});
  } else {
    most = static_cast<double>(Tokenizer::read(facts.tokenizer)->size() - 1);
  }
  for (ArrayFacts& array : facts.arrays) array.numbers.add(most);
  fit_windows(inputs, facts);
}

}  // namespace

DataLook text() {
  return {
      .kind = "text", .takes = takes_plain_text, .look = look_at_plain_text, .fit = fit_plain_text};
}

}  // namespace tandem::api::looks
