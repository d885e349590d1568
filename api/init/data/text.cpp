// Files of plain text, .txt, which a tokenizer turns into windows of tokens.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "api/init/data/data_look.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "engine/data/tokens/text_encoder.h"
#include "engine/formats/files.h"
#include "engine/formats/text_stream.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/graph/error.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t bytes_a_token = 4;                   // approximately, in English text
constexpr std::size_t most_encoded = std::size_t{1} << 20;  // bytes of all files

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
  tokens.rows = 1;  // until the tokenizer and the length are known
  tokens.numbers.add(0);
  for (const char* name : {"tokens", "targets"}) {
    tokens.name = name;
    facts.arrays.push_back(tokens);
  }
}

/// The text of a file up to the end of a line, at most about `most` bytes.
std::string beginning_of(const std::string& path, std::size_t most) {
  TextStream stream(path);
  std::string text(most, '\0');
  std::size_t size = 0;
  for (std::size_t more = 1; more > 0 && size < most; size += more)
    more = stream.read(text.data() + size, most - size);
  text.resize(size);
  const std::size_t end = text.rfind('\n');
  if (size == most && end != std::string::npos) text.resize(end + 1);
  return text;
}

/// Counts the tokens of the files, or estimates them by the text that is encoded. Text that cannot
/// be encoded is reported when it is read.
void count_tokens(const std::string& tokenizer, DataFacts& facts) {
  const std::vector<std::string>& paths = facts.train.at(0).paths;
  std::unique_ptr<const TextEncoder> encoder;
  if (!tokenizer.empty()) encoder = token_encoder(Tokenizer::read(tokenizer));
  EncodeScratch scratch;
  std::size_t left = most_encoded;
  double bytes = 0, tokens = 0;
  for (const std::string& path : paths) {
    facts.tokens.push_back(-1);
    if (!encoder || left == 0) continue;
    const std::string text = beginning_of(path, left);
    left -= std::min(left, text.size());
    std::vector<std::uint32_t> ids;
    try {
      encoder->encode(text, scratch, ids);
    } catch (const std::invalid_argument&) {
      continue;
    }
    bytes += static_cast<double>(text.size());
    tokens += static_cast<double>(ids.size());
    if (text.size() == file_size(path)) facts.tokens.back() = std::ssize(ids);
  }
  const double per_byte = bytes > 0 ? tokens / bytes : 1.0 / bytes_a_token;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (facts.tokens[i] >= 0) continue;
    facts.tokens[i] = std::llround(per_byte * static_cast<double>(file_size(paths[i])));
    facts.estimated_by = bytes > 0 ? "by the first MiB of text" : "at four bytes a token";
  }
  if (!facts.estimated_by.empty())
    facts.notes.push_back("how many samples the text makes is estimated " + facts.estimated_by +
                          "; `tandem data check` counts them");
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
  count_tokens(tokenizer, facts);
  fit_windows(inputs, facts);
}

}  // namespace

DataLook text() {
  return {
      .kind = "text", .takes = takes_plain_text, .look = look_at_plain_text, .fit = fit_plain_text};
}

}  // namespace tandem::api::looks
