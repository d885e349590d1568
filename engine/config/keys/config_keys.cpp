#include "engine/config/keys/config_keys.h"

#include <algorithm>
#include <cmath>

#include "engine/config/keys/config_value.h"
#include "engine/config/keys/key_visitor.h"

namespace tandem {
namespace {

// Words that other programs use for keys of this one; what has a space is the advice itself.
constexpr std::pair<std::string_view, std::string_view> other_words[] = {
    {"learning_rate", "lr"},
    {"batch", "batch_size"},
    {"num_workers", "workers"},
    {"optim", "optimizer"},
    {"max_steps", "steps"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"grad_clip", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"dataset", "data"},
    {"validation", "eval"},
    {"max_norm", "clip_norm"},
    {"param_groups", "groups"},
    {"scheduler", "schedule"},
    {"type", "kind"},
    {"warmup_steps", "warmup"},
    {"loss_fn", "loss"},
    {"onnx", "model"},
    {"early_stopping", "patience"},
    {"accumulate", "micro_batch"},
    {"accumulation_steps", "micro_batch"},
    {"gradient_accumulation", "micro_batch"},
    {"gradient_accumulation_steps", "micro_batch"},
    {"accumulate_grad_batches", "micro_batch"},
    {"lr_scheduler", "schedule"},
    {"T_0", "period"},
    {"T_mult", "multiplier"},
    {"milestone", "milestones"},
    {"agc", "clip_adaptive"},
    {"clip_grad_value", "clip_value"},
    {"clip_grad_norm", "clip_norm"},
    {"ema_decay", "optimizer.ema = { decay = 0.999 }"},
    {"parallel_mode", "processes share a batch where several are started: docs/processes.md"},
    {"num_gpus", "processes share a batch where several are started: docs/processes.md"},
    {"world_size", "processes share a batch where several are started: docs/processes.md"}};

constexpr std::string_view page_head =
    "# The keys of train.toml\n\n"
    "Written from the table that also checks the file; do not "
    "edit. `tandem config explain KEY` shows one key.\n\n"
    "- Paths are relative to the file; those given on the command line, to the current folder "
    "where "
    "they exist there.\n"
    "- `${VAR}` and `${VAR:-default}` work inside strings; `$${` stands for `${`.\n"
    "- A duration is a string: `\"500 steps\"`, `\"1 epoch\"`, `\"30 min\"`, `\"2 h\"`.\n"
    "- Every key can be set on the command line: `optimizer.lr=0.01`, "
    "`optimizer.groups.0.lr=0.1`. The value is TOML, else a bare string.\n"
    "- `[]` stands for the items of a list, `*` for any name.\n";

// One step of a path; "[]" is a step of its own.
std::vector<std::string_view> steps_of(std::string_view text) {
  std::vector<std::string_view> steps;
  while (!text.empty()) {
    const std::size_t dot = text.find('.');
    std::string_view part = text.substr(0, dot);
    const bool is_list = part.ends_with("[]");
    if (is_list) part.remove_suffix(2);
    if (!part.empty()) steps.push_back(part);
    if (is_list) steps.push_back("[]");
    text = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  }
  return steps;
}

}  // namespace

const KeyTable& train_keys() {
  static const std::vector<KeyInfo> keys = list_keys([](KeyVisitor& v) {
    RunConfig any;
    visit(v, any);
  });
  static const KeyTable table{"train.toml", keys, other_words, page_head, "The run"};
  return table;
}

const KeyInfo* KeyTable::find(std::string_view wanted) const {
  const auto steps = steps_of(wanted);
  const KeyInfo* best = nullptr;
  for (const KeyInfo& key : keys) {
    if (key.path == wanted) return &key;
    const auto pattern = steps_of(key.path);
    if (pattern.size() != steps.size()) continue;
    bool fits = true;
    for (std::size_t i = 0; fits && i < steps.size(); ++i) {
      const bool index = steps[i].find_first_not_of("0123456789") == std::string_view::npos;
      fits = pattern[i] == steps[i] || pattern[i] == "*" || (pattern[i] == "[]" && index);
    }
    if (fits && !best) best = &key;
  }
  return best;
}

std::string type_text(unsigned type) {
  constexpr std::pair<unsigned, std::string_view> names[] = {
      {boolean_value, "true or false"}, {integer_value, "integer"}, {number_value, "number"},
      {string_value, "string"},         {path_value, "path"},       {duration_value, "duration"},
      {selector_value, "selector"},     {table_value, "table"},     {list_value, "list"}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if (type & bit) text += (text.empty() ? "" : " or ") + std::string(name);
  }
  return text;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = text.find('|');
    words.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return words;
}

std::string listed(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == '|' ? std::string(", ") : std::string(1, c);
  return text;
}

std::string listed_words(const KeyInfo& key) {
  std::string text = listed(key.allowed);
  for (const auto& [spelling, word] : key.spellings) {
    const bool is_first = &spelling == &key.spellings.front().first;
    text += (is_first ? "; also " : ", ") + toml_string(std::string(spelling)) + " for " +
            std::string(word);
  }
  return text;
}

std::string_view word_meant(const KeyInfo& key, std::string_view text) {
  const auto found = std::find_if(key.spellings.begin(), key.spellings.end(),
                                  [&](const auto& pair) { return pair.first == text; });
  return found == key.spellings.end() ? text : found->second;
}

std::string range_text(unsigned type, double low, double high) {
  const auto text = [&](double number) {
    const bool whole = (type & number_value) == 0 && std::abs(number) < 1e15;
    return whole ? std::to_string(std::llround(number)) : toml_number(number);
  };
  std::string range;
  if (low > -1e300) range = "at least " + text(low);
  if (high < 1e300) range += (range.empty() ? "at most " : ", at most ") + text(high);
  return range;
}

}  // namespace tandem
