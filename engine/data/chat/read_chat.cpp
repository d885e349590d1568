#include "engine/data/chat/read_chat.h"

#include <algorithm>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/data/chat/chat_reader.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/formats/text_stream.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// The field that is made of this array; null: none is.
const FieldConfig* field_of(const DataConfig& config, std::string_view array) {
  const auto found = std::find_if(config.fields.begin(), config.fields.end(),
                                  [&](const FieldConfig& field) { return field.from == array; });
  return found == config.fields.end() ? nullptr : &*found;
}

/// What samples of several conversations need, so that none sees another one.
void check_packing(const DataConfig& config, std::vector<Diagnostic>& errors) {
  if (!config.chat()->pack || config.fields.empty()) return;
  std::vector<std::string> missing;
  for (const char* array : {"positions", "attention"}) {
    if (field_of(config, array) == nullptr) missing.push_back("`" + std::string(array) + "`");
  }
  if (missing.empty()) return;
  Diagnostic& d = errors.emplace_back(
      at(config.where, "data.pack",
         "conversations in one sample would see each other: no field is made of " +
             joined(missing, " and ")));
  if (const FieldConfig* const mask = field_of(config, "mask"))
    d.message += "; " + mask->name + " has one number a token, which separates none";
  d.expected =
      "inputs of the model for positions that start again, and for a mask of [length, length]";
  d.fix =
      "write their fields: mask = { from = \"attention\", as = [ \"reshape(1, LENGTH, LENGTH)\" ] "
      "}; a model without such inputs takes pack = false";
}

std::vector<std::string> paths_of(const SplitConfig& split, std::vector<Diagnostic>& errors) {
  std::vector<std::string> paths;
  for (const ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      paths.push_back(path);
      if (path_exists(path) && !is_directory(path)) continue;
      errors.push_back(at(files.where, "",
                          (path_exists(path) ? "this is a folder: " : "no such file: ") + path));
      errors.back().fix = fix_of_missing(path);
    }
  }
  return paths;
}

/// Null where something was reported.
std::unique_ptr<const ChatEncoder> make_encoder(const DataConfig& config,
                                                std::vector<Diagnostic>& errors) {
  const ChatFiles& kind = *config.chat();
  auto encoder = std::make_unique<ChatEncoder>(chat_template_of(kind), kind.system,
                                               Tokenizer::read(kind.tokenizer));
  if (const auto missing = encoder->missing_tokens(); !missing.empty()) {
    errors.push_back(
        at(config.where, "data.template",
           "the template \"" + kind.style.name + "\" is for another tokenizer: " +
               shown_path(kind.tokenizer) + " has no token " + joined(missing),
           "a tokenizer of " + encoder->style().models, "",
           "name the template of the model, or write texts for the roles: data.template = { user = "
           "\"…{content}…\", assistant = \"…{content}…\" }"));
    return nullptr;
  }
  if (kind.pad >= encoder->tokenizer().size()) {
    errors.push_back(at(kind.pad_where, "data.pad", "this id is not in the vocabulary",
                        "0 to " + std::to_string(encoder->tokenizer().size() - 1),
                        std::to_string(kind.pad)));
    return nullptr;
  }
  return encoder;
}

}  // namespace

ChatSplits read_chat(const DataConfig& config, const ArrayNames& names, const OpenOptions& options,
                     std::vector<Diagnostic>& errors) {
  ChatSplits splits;
  const ChatFiles& kind = *config.chat();
  const auto read = [&](const SplitConfig& split, const ChatEncoder& encoder,
                        std::optional<TokenCounts>& counts) -> std::shared_ptr<const ArraySet> {
    const std::size_t before = errors.size();
    const std::vector<std::string> paths = paths_of(split, errors);
    if (errors.size() > before || paths.empty()) return nullptr;
    const auto pad =
        kind.pad >= 0 ? static_cast<std::uint32_t>(kind.pad) : encoder.tokenizer().pad();
    ChatReader reader(kind, encoder, {kind.length, kind.pack, pad}, options);
    for (const std::string& path : paths) reader.read(path);
    const auto samples = reader.finish(errors, splits.warnings);
    if (!samples) return nullptr;
    counts = samples->counts();
    return chat_arrays(samples, names);
  };
  try {
    const std::size_t before = errors.size();
    check_packing(config, errors);
    const auto encoder = make_encoder(config, errors);
    if (errors.size() > before) return splits;
    splits.vocabulary = saved_tokenizer(encoder->tokenizer(), kind.tokenizer);
    splits.train = read(config.train, *encoder, splits.train_tokens);
    if (!config.eval.files.empty()) splits.eval = read(config.eval, *encoder, splits.eval_tokens);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    const auto& found = error.diagnostics();
    errors.insert(errors.end(), found.begin(), found.end());
  }
  return splits;
}

}  // namespace tandem
