// Binary files of token ids as nanoGPT and llm.c write them: train.bin and val.bin.
#include <algorithm>
#include <filesystem>

#include "api/init/data/data_look.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "api/init/roles.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/operators/checks.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t most_tokens = 1 << 20;  // read per file
constexpr std::int64_t llm_c_header = 1024, llm_c_magic = 20240520;

bool takes_tokens(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const bool is_named =
      names_training(name) || names_held_out(name) || name.find("token") != std::string::npos;
  return path.ends_with(".bin") && is_named && file_size(path) >= 4 && file_size(path) % 2 == 0;
}

/// The storage of the ids of a file. Ids of four bytes are below 2^20 in every vocabulary, which
/// shows in their upper halves.
TokenFiles storage_of(const std::string& path) {
  TokenFiles kind;
  kind.windows.length = usual_window;
  const auto bytes = static_cast<std::int64_t>(file_size(path));
  if (bytes % 4 == 0 && bytes > llm_c_header) {
    std::int64_t first = 0;
    TokenFile(path, TokenElement::uint32, 0).read(0, 1, &first);
    if (first == llm_c_magic) kind.header_bytes = llm_c_header;
  }
  const TokenFile halves(path, TokenElement::uint16, kind.header_bytes);
  std::vector<std::int64_t> ids(
      static_cast<std::size_t>(std::min<std::int64_t>(halves.tokens(), 4096)));
  halves.read(0, static_cast<std::int64_t>(ids.size()), ids.data());
  bool are_wide = ids.size() >= 2 && bytes % 4 == 0;
  for (std::size_t i = 1; i < ids.size(); i += 2) are_wide &= ids[i] < 16;
  if (are_wide) kind.element = TokenElement::uint32;
  return kind;
}

void look_at_tokens(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  const TokenFiles kind = storage_of(paths.train.at(0));
  ArrayFacts tokens;
  tokens.sample = {DType::int64, {usual_window}};
  for (const std::string& path : paths.train) {
    const TokenFile file(path, kind.element, kind.header_bytes);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(file.tokens(), most_tokens)));
    file.read(0, static_cast<std::int64_t>(ids.size()), ids.data());
    for (const std::int64_t id : ids) tokens.numbers.add(static_cast<double>(id));
    facts.tokens.push_back(file.tokens());
  }
  tokens.rows = 1;  // until the length is known
  for (const char* name : {"tokens", "targets"}) {
    tokens.name = name;
    facts.arrays.push_back(tokens);
  }
  facts.keys.push_back({"element",
                        kind.element == TokenElement::uint16 ? "\"uint16\"" : "\"uint32\"",
                        "judged by the ids of the first file", ""});
  if (kind.header_bytes > 0)
    facts.keys.push_back({"header_bytes", std::to_string(kind.header_bytes), "llm.c's header", ""});
}

}  // namespace

DataLook tokens() {
  return {.kind = "tokens", .takes = takes_tokens, .look = look_at_tokens, .fit = fit_windows};
}

}  // namespace tandem::api::looks

namespace tandem::api {
namespace {

bool is_mask(const InputFacts& input) { return role_of(input) == Role::mask; }

}  // namespace

std::int64_t length_of_rows(const std::vector<InputFacts>& inputs) {
  std::int64_t length = 0;
  for (const InputFacts& input : inputs) {
    const Shape& shape = input.sample.shape;
    if (shape.size() != 1 || !is_integer(input.sample.dtype)) continue;
    if (length != 0 && length != shape[0]) return 0;
    length = shape[0];
  }
  return length;
}

std::int64_t most_positions(const std::vector<InputFacts>& inputs, const DataFacts& facts,
                            std::int64_t usual) {
  std::int64_t most = usual;
  for (const InputFacts& input : inputs) {
    const bool is_limit = role_of(input) == Role::positions && input.table_rows > 0;
    if (is_limit) most = std::min(most, input.table_rows);
  }
  return facts.most_length > 0 ? std::min(most, facts.most_length) : most;
}

void add_mask_array(const std::vector<InputFacts>& inputs, const std::string& made,
                    DataFacts& facts) {
  if (std::count_if(inputs.begin(), inputs.end(), is_mask) != 1) return;
  ArrayFacts mask;
  mask.name = std::find_if(inputs.begin(), inputs.end(), is_mask)->name;
  mask.source = "mask";
  mask.made = made;
  mask.sample = facts.arrays.at(0).sample;
  mask.rows = facts.arrays.at(0).rows;
  mask.numbers.add(1);
  facts.arrays.push_back(std::move(mask));
}

void fit_windows(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  std::int64_t length = length_of_rows(inputs);
  bool is_known = length > 0;
  facts.chose_length = length < 0;
  const char* const why =
      is_known ? "what the model takes"
      : facts.chose_length
          ? "the model leaves it free: a usual length, at most the number of positions"
          : "";
  const bool is_open = !is_known && !facts.chose_length;
  const std::int64_t most = most_positions(inputs, facts, usual_window);
  if (!is_known && most < usual_window) {
    length = most;
    is_known = true;
  }
  facts.keys.push_back({"length", std::to_string(is_known ? length : usual_window), why,
                        is_open ? "how many tokens a sample has" : ""});
  TokenWindows windows;
  windows.length = is_known ? length : usual_window;
  std::int64_t rows = 0;
  for (const std::int64_t tokens : facts.tokens) rows += windows_of_stream(tokens, windows);
  for (ArrayFacts& array : facts.arrays) {
    array.rows = std::max<std::int64_t>(rows, 1);
    array.sample.shape[0] = windows.length;
  }
  add_mask_array(inputs, "the tokens' own: 1 for each that is there", facts);
}

}  // namespace tandem::api
