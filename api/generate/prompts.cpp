#include "api/generate/prompts.h"

#include <filesystem>
#include <stdexcept>

#include "api/init/model_config.h"
#include "engine/data/chat/chat_encoder.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr const char* usual_ends[] = {"<|endoftext|>", "</s>",       "<|end_of_text|>",
                                      "<eos>",         "<|im_end|>", "<|eot_id|>",
                                      "<end_of_turn>", "<|end|>",    "[EOS]"};

[[noreturn]] void refuse_tokenizer(const std::string& model) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "no tokenizer is known for this model",
                         .file = model,
                         .expected = "the tokenizer.json that its ids come from, in its folder",
                         .fix = "name it: --tokenizer tokenizer.json"});
}

std::string folder_of(const std::string& file) {
  return std::filesystem::path(file).parent_path().string();
}

/// Where the ids of a model come from: a file, or bytes.
struct IdSource {
  std::string tokenizer;   // a tokenizer.json; "": one of those below
  std::string characters;  // the file of a vocabulary of characters
  bool are_bytes = false;
};

IdSource id_source(const TrainedRun& run, const GenerateOptions& options) {
  if (!options.tokenizer.empty()) {
    const std::string path = normal_path(options.tokenizer);
    return {.tokenizer = is_directory(path) ? path + "/" + tokenizer_file : path};
  }
  if (const std::string own = run.vocabulary_stem + tokenizer_file; path_exists(own))
    return {.tokenizer = own};
  if (const std::string own = run.vocabulary_stem + characters_file; path_exists(own))
    return {.characters = own};
  if (run.config.data) {
    const TextFiles* const text = run.config.data->text();
    if (text != nullptr && text->tokenizer == TextFiles::bytes) return {.are_bytes = true};
    const std::string* const named = run.config.data->tokenizer_path();
    if (named != nullptr && named->ends_with(".json") && path_exists(*named))
      return {.tokenizer = *named};
  }
  const std::string beside =
      (std::filesystem::path(folder_of(run.config.model.file)) / tokenizer_file).string();
  if (path_exists(beside)) return {.tokenizer = beside};
  refuse_tokenizer(run.config.model.file);
}

/// What the model writes behind an answer: a token of its own, or a text.
void add_end_of_answers(const ChatEncoder& chat, Prompts& prompts) {
  const std::string& behind = chat.style().assistant.behind;
  if (behind.empty()) return;
  EncodeScratch scratch;
  EncodedTokens encoded;
  chat.tokenizer().encode(behind, {.adds_special = false}, scratch, encoded);
  const bool is_token = !encoded.ids.empty() &&
                        (encoded.ids.size() == 1 || chat.tokenizer().is_added(encoded.ids[0]));
  if (is_token)
    prompts.ends.insert(encoded.ids[0]);
  else
    prompts.stops.push_back(behind);
}

void add_ends(const TrainedRun& run, const Tokenizer* tokenizer, Prompts& prompts) {
  for (const std::int64_t id : numbers_in_config(folder_of(run.config.model.file), "eos_token_id"))
    prompts.ends.insert(id);
  if (run.config.data) {
    const TextFiles* const text = run.config.data->text();
    const TokenFiles* const tokens = run.config.data->tokens();
    const std::int64_t end = text != nullptr     ? text->windows.document_end
                             : tokens != nullptr ? tokens->windows.document_end
                                                 : -1;
    if (end >= 0) prompts.ends.insert(end);
  }
  const bool is_known = !prompts.ends.empty() || !prompts.stops.empty();
  if (tokenizer == nullptr || is_known) return;
  for (const char* name : usual_ends) {
    const auto id = tokenizer->find(name);
    if (id && tokenizer->is_added(*id)) prompts.ends.insert(*id);
  }
}

[[noreturn]] void refuse_prompt(std::size_t prompt, Diagnostic problem) {
  problem.file = "--prompt";
  problem.line = static_cast<int>(prompt) + 1;
  throw Error(ErrorKind::data, std::move(problem));
}

ChatEncoder chat_of(const ChatFiles& kind, const std::shared_ptr<const Tokenizer>& tokenizer,
                    const std::string& file) {
  ChatEncoder chat(chat_template_of(kind), kind.system, tokenizer);
  const std::vector<std::string> missing = chat.missing_tokens();
  if (missing.empty()) return chat;
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "the run's template \"" + kind.style.name +
                            "\" is for another tokenizer: there is no token " + joined(missing),
                 .file = file,
                 .expected = "a tokenizer of " + chat.style().models,
                 .fix = "name the tokenizer of the training, or take prompts as they "
                        "are: --raw"});
}

}  // namespace

Prompts read_prompts(const TrainedRun& run, const GenerateOptions& options) {
  const IdSource source = id_source(run, options);
  Prompts prompts;
  std::shared_ptr<const Tokenizer> tokenizer;
  if (source.are_bytes) {
    prompts.encoder = byte_encoder();
  } else if (!source.characters.empty()) {
    prompts.tokenizer = source.characters;
    try {
      prompts.encoder = character_encoder(Vocabulary::parse(read_file(source.characters), {}));
    } catch (const std::invalid_argument& problem) {
      throw Error(ErrorKind::data,
                  Diagnostic{.message = problem.what(), .file = source.characters});
    }
  } else {
    prompts.tokenizer = source.tokenizer;
    tokenizer = Tokenizer::read(source.tokenizer);
    prompts.encoder = token_encoder(tokenizer);
  }

  std::optional<ChatEncoder> chat;
  const ChatFiles* const kind = run.config.data ? run.config.data->chat() : nullptr;
  if (kind != nullptr && tokenizer && !options.raw) {
    chat.emplace(chat_of(*kind, tokenizer, source.tokenizer));
    prompts.is_chat = true;
    add_end_of_answers(*chat, prompts);
  }
  add_ends(run, tokenizer.get(), prompts);

  // The windows of a text have no special tokens.
  const bool has_front = tokenizer && !(run.config.data && run.config.data->text() != nullptr);
  ChatEncoder::Scratch scratch;
  for (std::size_t i = 0; i < options.prompts.size(); ++i) {
    std::vector<std::uint32_t>& ids = prompts.ids.emplace_back();
    if (chat) {
      auto problem = chat->encode_prompt({{ChatRole::user, options.prompts[i]}}, scratch, ids);
      if (problem) refuse_prompt(i, std::move(*problem));
      continue;
    }
    if (has_front) ids = tokenizer->in_front();
    try {
      prompts.encoder->encode(options.prompts[i], scratch.tokens, ids);
    } catch (const std::invalid_argument& problem) {
      refuse_prompt(i, {.message = problem.what()});
    }
    if (ids.empty()) {
      refuse_prompt(i, {.message = "the prompt is empty, and the model needs a token to go on from",
                        .fix = "write a word"});
    }
  }
  return prompts;
}

}  // namespace tandem::api
