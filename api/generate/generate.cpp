// tandem::api::generate_text: what a trained language model writes after prompts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/generate/choose_token.h"
#include "api/generate/prompts.h"
#include "api/generate/text_model.h"
#include "api/generate/written_text.h"
#include "api/program/generate.h"
#include "api/trained/vocabularies.h"
#include "engine/data/random.h"
#include "engine/formats/count_text.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t most_tokens = std::int64_t{1} << 20;

[[noreturn]] void refuse_option(const char* option, std::string message, std::string expected,
                                std::string got) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = option,
                                           .expected = std::move(expected),
                                           .got = std::move(got)});
}

/// How tokens are chosen; checks the options.
TokenChoice choice_of(const GenerateOptions& options) {
  const char* const range = "out of range";
  if (options.prompts.empty())
    refuse_option("--prompt", "there is no prompt", "a text (tandem generate --help has examples)",
                  "");
  if (options.max_tokens < 1 || options.max_tokens > most_tokens)
    refuse_option("--max-tokens", range, fmt::format("1 to {}", most_tokens),
                  std::to_string(options.max_tokens));
  if (options.top_k < 0)
    refuse_option("--top-k", range, "0 or more", std::to_string(options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    refuse_option("--top-p", range, "above 0, and 1 at most", fmt::format("{}", options.top_p));
  const bool draws = options.top_k > 0 || options.top_p < 1;
  const double temperature = options.temperature.value_or(draws ? 1 : 0);
  if (!(temperature >= 0 && std::isfinite(temperature)))
    refuse_option("--temperature", range, "0 or more", fmt::format("{}", temperature));
  for (const std::string& stop : options.stop_texts) {
    if (stop.empty()) refuse_option("--stop", "the text is empty", "a text", "");
  }
  return {.temperature = temperature, .top_k = options.top_k, .top_p = options.top_p};
}

class Writer {
 public:
  Writer(TextModel& model, const Prompts& prompts, const GenerateOptions& options,
         const TokenChoice& how)
      : model_(model), prompts_(prompts), options_(options), how_(how) {}

  GeneratedText write(std::size_t prompt) {
    GeneratedText made{.prompt = options_.prompts[prompt]};
    std::vector<std::uint32_t> ids = prompts_.ids[prompt];
    std::vector<std::string> stops = options_.stop_texts;
    stops.insert(stops.end(), prompts_.stops.begin(), prompts_.stops.end());
    WrittenText stream(*prompts_.encoder, ids, std::move(stops));
    RandomStream random(mix(options_.seed, prompt));
    while (made.ended.empty()) {
      check_stop(options_);
      const std::int64_t id = next(ids, random.uniform());
      made.ids.push_back(id);
      if (prompts_.ends.contains(id)) {
        made.ended = "end";
        break;
      }
      ids.push_back(static_cast<std::uint32_t>(id));
      give(prompt, stream.add(ids.back()));
      if (stream.is_stopped())
        made.ended = "stop";
      else if (static_cast<std::int64_t>(made.ids.size()) == options_.max_tokens)
        made.ended = "length";
      else if (static_cast<std::int64_t>(ids.size()) > model_.places())
        made.ended = "positions";
    }
    give(prompt, stream.finish());
    if (stream.is_stopped()) made.ended = "stop";
    made.text = stream.text();
    return made;
  }

 private:
  std::int64_t next(const std::vector<std::uint32_t>& ids, double chance) {
    const std::int64_t id = choose_token(model_.next(ids), how_, chance);
    if (id >= 0) return id;
    throw Error(
        ErrorKind::diverged,
        Diagnostic{.message = fmt::format("the logits after {} tokens are not finite", ids.size()),
                   .file = model_.trained().run().path,
                   .fix = "take an earlier checkpoint: --checkpoint STEP"});
  }
  void give(std::size_t prompt, const std::string& piece) {
    if (!piece.empty() && options_.on_text) options_.on_text(prompt, piece);
  }

  TextModel& model_;
  const Prompts& prompts_;
  const GenerateOptions& options_;
  const TokenChoice how_;
};

TextLengths lengths_of(const Prompts& prompts, std::int64_t max_tokens) {
  TextLengths lengths;
  for (const std::vector<std::uint32_t>& ids : prompts.ids)
    lengths.longest_prompt =
        std::max(lengths.longest_prompt, static_cast<std::int64_t>(ids.size()));
  lengths.longest_text = lengths.longest_prompt + max_tokens - 1;
  return lengths;
}

/// Throws where the run was trained with other ids than those of the file that was read.
void check_own_ids(TrainedModel& trained, const GenerateOptions& options) {
  if (!options.tokenizer.empty() || !trained.config().data) return;
  DataConfig data = *trained.config().data;
  use_own_tokenizer(trained, data);
  load_characters(trained);
}

const char* reason_of(const std::string& ended) {
  if (ended == "end") return "the model ended it";
  if (ended == "stop") return "the text that stops it was written";
  if (ended == "positions") return "the model has no further positions";
  return "--max-tokens";
}

std::string summary_of(const std::vector<GeneratedText>& texts, double seconds) {
  std::int64_t tokens = 0;
  for (const GeneratedText& text : texts) tokens += static_cast<std::int64_t>(text.ids.size());
  std::string line =
      fmt::format("generated   {} in {:.1f} s ({:.1f} tokens/s)", count_text(tokens, "token"),
                  seconds, static_cast<double>(tokens) / std::max(seconds, 1e-9));
  return texts.size() == 1 ? line + fmt::format("; end: {}", reason_of(texts[0].ended)) : line;
}

GenerateReport generated(const std::string& name, const GenerateOptions& options) {
  const TokenChoice how = choice_of(options);
  TrainedRun run = open_trained(name, options, TrainedUse::generate);
  const Prompts prompts = read_prompts(run, options);
  if (options.on_message) options.on_message(run.text());
  TextModel model(std::move(run), lengths_of(prompts, options.max_tokens), prompts.encoder->size());
  check_own_ids(model.trained(), options);
  model.check_causal(prompts.ids[0]);

  const Clock::time_point start = Clock::now();
  GenerateReport report;
  Writer writer(model, prompts, options, how);
  for (std::size_t i = 0; i < options.prompts.size(); ++i) report.texts.push_back(writer.write(i));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  report.warnings = model.trained().run().warnings;
  report.text = summary_of(report.texts, seconds);
  Json json{{"run", name}};
  model.trained().run().describe(json);
  json["chat"] = prompts.is_chat;
  json["temperature"] = how.temperature;
  Json& texts = json["texts"] = Json::array();
  for (const GeneratedText& text : report.texts) {
    texts.push_back(
        {{"prompt", text.prompt}, {"text", text.text}, {"ids", text.ids}, {"ended", text.ended}});
  }
  json["seconds"] = seconds;
  json["warnings"] = report.warnings;
  report.json = json.dump(2, ' ', false, Json::error_handler_t::replace);
  return report;
}

}  // namespace

GenerateReport generate_text(const std::string& run, const GenerateOptions& options) {
  try {
    return generated(run, options);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::does_not_fit, Diagnostic{.message = "out of memory",
                                                    .fix = "ask for shorter texts: --max-tokens"});
  }
}

}  // namespace tandem::api
