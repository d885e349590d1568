#include "engine/data/tokens/read_text.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/data/cells/unknown_words.h"
#include "engine/data/tokens/read_tokens.h"
#include "engine/data/tokens/text_encoder.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/claim.h"
#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/sha256.h"
#include "engine/formats/text_stream.h"

namespace tandem {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
// Encoding takes several times the size of the text that is encoded at once.
constexpr std::size_t longest_document = std::size_t{1} << 28;

[[noreturn]] void refuse_text(const std::string& path, std::int64_t line, std::string message,
                              std::string expected = "", std::string fix = "") {
  throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                          .file = path,
                                          .line = static_cast<int>(line),
                                          .expected = std::move(expected),
                                          .fix = std::move(fix)});
}

/// Calls f(text) for each document of a file that has a text: all of it, or line after line without
/// their ends.
template <class F>
void for_documents(const std::string& path, TextDocuments documents, F f) {
  TextStream stream(path);
  std::string text;
  std::size_t begin = 0, searched = 0;  // the document, and how far it has no end of a line
  std::int64_t line = 0;
  const auto give = [&](std::size_t end) {
    std::string_view document = std::string_view(text).substr(begin, end - begin);
    if (documents == TextDocuments::lines && document.ends_with('\r')) document.remove_suffix(1);
    if (document.empty()) return;
    try {
      f(document);
    } catch (const std::invalid_argument& problem) {
      refuse_text(path, documents == TextDocuments::lines ? line : 0, problem.what());
    }
  };
  bool is_start = true;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + piece_bytes);
    std::size_t got = 0;
    for (std::size_t more; got < piece_bytes; got += more) {
      more = stream.read(text.data() + before + got, piece_bytes - got);
      if (more == 0) break;
    }
    text.resize(before + got);
    if (is_start && text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    is_start = false;
    if (documents == TextDocuments::lines) {
      for (std::size_t end; (end = text.find('\n', searched)) != std::string::npos;) {
        ++line;
        give(end);
        begin = searched = end + 1;
      }
      text.erase(0, begin);
      begin = 0;
      searched = text.size();
    }
    if (text.size() > longest_document) {
      refuse_text(path, 0, "the text is too long to be encoded at once",
                  std::to_string(longest_document >> 20) + " MiB",
                  "data.documents = \"lines\", several files, or token ids in a file "
                  "(data.kind = \"tokens\")");
    }
    if (got < piece_bytes) break;
  }
  if (text.empty()) return;
  ++line;
  give(text.size());
}

/// The kind of table that the file's name suggests; "" for text. Braces, quotes and separators of
/// rows would be learned and scored as text.
std::string_view table_kind(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  constexpr std::pair<std::string_view, std::string_view> endings[] = {
      {".jsonl", "jsonl"}, {".ndjson", "jsonl"}, {".csv", "csv"}, {".tsv", "tsv"}};
  for (const auto& [ending, kind] : endings) {
    if (path.ends_with(ending)) return kind;
  }
  return "";
}

Diagnostic refused_table(const std::string& path, std::string_view kind, const Where& where) {
  return at(
      where, "",
      "data.kind = \"text\" reads all of a file as text, and the name says that this is a table: " +
          path,
      "text in a file with another name, such as .txt", "",
      "write the texts themselves into a .txt file, or read the column that has them: data.kind = "
      "\"" +
          std::string(kind) +
          "\" with fields like { from = \"COLUMN\", as = [ \"tokens(length=256)\" ] }");
}

std::vector<std::string> text_paths(const SplitConfig& split, std::vector<Diagnostic>& errors) {
  std::vector<std::string> paths;
  for (const ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      if (path_exists(path) && !is_directory(path)) {
        if (const std::string_view kind = table_kind(path); !kind.empty())
          errors.push_back(refused_table(path, kind, files.where));
        paths.push_back(path);
        continue;
      }
      errors.push_back(at(files.where, "",
                          (path_exists(path) ? "this is a folder: " : "no such file: ") + path));
      errors.back().fix = fix_of_missing(path);
    }
  }
  return paths;
}

int text_threads(const OpenOptions& options) {
  return options.threads > 0 ? options.threads : file_threads();
}

Vocabulary count_characters(const TextFiles& kind, const std::vector<std::string>& paths,
                            const OpenOptions& options) {
  CharacterCounts all;
  ordered_jobs(
      text_threads(options), static_cast<std::int64_t>(paths.size()),
      [&](std::int64_t i) {
        CharacterCounts own;
        for_documents(paths[static_cast<std::size_t>(i)], kind.documents,
                      [&](std::string_view text) {
                        check_token_stop(options);
                        own.take(text);
                      });
        return own;
      },
      [&](std::int64_t, const CharacterCounts& own) { all.add(own); });
  return all.vocabulary();
}

std::shared_ptr<const ArraySet> read_text_split(const TextFiles& kind, const SplitConfig& split,
                                                const TextEncoder& encoder, const ArrayNames& names,
                                                const OpenOptions& options,
                                                std::vector<Diagnostic>& errors,
                                                std::vector<std::string>& warnings) {
  const std::size_t before = errors.size();
  const std::vector<std::string> paths = text_paths(split, errors);
  if (errors.size() > before) return nullptr;
  const std::optional<std::uint32_t> unknown = encoder.unknown();
  std::mutex counting;
  UnknownWords count{.field = "tokens", .column = "the text"};
  std::vector<std::unique_ptr<TokenSequence>> sequences;
  ordered_jobs(
      text_threads(options), static_cast<std::int64_t>(paths.size()),
      [&](std::int64_t i) {
        const std::string& path = paths[static_cast<std::size_t>(i)];
        std::vector<std::uint32_t> ids;
        EncodeScratch scratch;
        std::size_t claimed = 0;                // ids that memory was looked for
        std::int64_t encoded = 0, lacking = 0;  // ends of documents are no tokens of the text
        for_documents(path, kind.documents, [&](std::string_view text) {
          check_token_stop(options);
          const auto before = std::ssize(ids);
          encoder.encode(text, scratch, ids);
          encoded += std::ssize(ids) - before;
          if (unknown) lacking += std::count(ids.begin() + before, ids.end(), *unknown);
          if (kind.windows.document_end >= 0)
            ids.push_back(static_cast<std::uint32_t>(kind.windows.document_end));
          if (ids.capacity() > claimed) {  // its next growth takes as much again
            claimed = ids.capacity();
            claim_memory(claimed * sizeof ids[0], path, "",
                         std::to_string(ids.size()) + " tokens so far");
          }
        });
        {
          const std::lock_guard lock(counting);
          count.values += encoded;
          count.unknown += lacking;
        }
        return std::make_unique<TokenList>(path, std::move(ids));
      },
      [&](std::int64_t, std::unique_ptr<TokenList> made) { sequences.push_back(std::move(made)); });
  for (std::string& warning : unknown_warnings({count})) {
    if (options.on_message)
      options.on_message("warning    " + shown_path(paths.at(0)) + ": " + warning);
    warnings.push_back(std::move(warning));
  }
  TokenScan scan;
  scan.vocabulary = encoder.size();
  scan.threads = text_threads(options);
  scan.check_stop = [&] { check_token_stop(options); };
  const auto samples = TokenSamples::open(std::move(sequences), kind.windows, scan, errors);
  return samples ? token_arrays(samples, names) : nullptr;
}

SavedVocabulary saved_characters(const Vocabulary& vocabulary) {
  SavedVocabulary saved;
  saved.name = "characters";
  saved.rows = vocabulary.rows();
  saved.file_name = characters_file;
  saved.text = vocabulary.text({});
  saved.sha256 = sha256(saved.text.data(), saved.text.size());
  return saved;
}

/// What makes ids of text, and the vocabulary that a run keeps for it.
std::unique_ptr<const TextEncoder> choose_encoder(const DataConfig& config,
                                                  const OpenOptions& options, TextSplits& splits,
                                                  std::vector<Diagnostic>& errors) {
  const TextFiles& kind = *config.text();
  if (kind.tokenizer == TextFiles::bytes) return byte_encoder();
  if (kind.has_tokenizer_file()) {
    auto tokenizer = Tokenizer::read(kind.tokenizer);
    splits.vocabulary = saved_tokenizer(*tokenizer, kind.tokenizer);
    return token_encoder(std::move(tokenizer));
  }
  Vocabulary vocabulary;
  if (!options.characters.empty()) {
    try {
      vocabulary = Vocabulary::parse(options.characters, {});
    } catch (const std::invalid_argument& problem) {
      refuse_text(characters_file, 0, problem.what());
    }
  } else {
    const std::size_t before = errors.size();
    const std::vector<std::string> paths = text_paths(config.train, errors);
    if (errors.size() > before) return nullptr;
    vocabulary = count_characters(kind, paths, options);
  }
  splits.vocabulary = saved_characters(vocabulary);
  return character_encoder(vocabulary);
}

}  // namespace

SavedVocabulary saved_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  SavedVocabulary saved;
  saved.name = "tokenizer";
  saved.rows = tokenizer.size();
  saved.file_name = tokenizer_file;
  saved.path = path;
  saved.sha256 = tokenizer.sha256();
  return saved;
}

TextSplits read_text(const DataConfig& config, const ArrayNames& names, const OpenOptions& options,
                     std::vector<Diagnostic>& errors) {
  TextSplits splits;
  try {
    const auto encoder = choose_encoder(config, options, splits, errors);
    if (!encoder) return splits;
    const std::int64_t end = config.text()->windows.document_end;
    if (end >= encoder->size()) {
      errors.push_back(at(config.where, "data.document_end", "this id is not in the vocabulary"));
      errors.back().expected = "0 to " + std::to_string(encoder->size() - 1);
      errors.back().got = std::to_string(end);
      return splits;
    }
    const TextFiles& kind = *config.text();
    splits.train =
        read_text_split(kind, config.train, *encoder, names, options, errors, splits.warnings);
    if (!config.eval.files.empty())
      splits.eval =
          read_text_split(kind, config.eval, *encoder, names, options, errors, splits.warnings);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    const auto& found = error.diagnostics();
    errors.insert(errors.end(), found.begin(), found.end());
  }
  return splits;
}

}  // namespace tandem
