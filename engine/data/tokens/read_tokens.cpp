#include "engine/data/tokens/read_tokens.h"

#include "engine/config/keys/config_value.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"

namespace tandem {

void check_token_stop(const OpenOptions& options) {
  if (!options.stop_requested || !options.stop_requested()) return;
  throw Error(ErrorKind::runtime, Diagnostic{.message = "interrupted while tokens were read"});
}

std::shared_ptr<const ArraySet> read_tokens(const TokenFiles& kind, const SplitConfig& split,
                                            const ArrayNames& names, const OpenOptions& options,
                                            std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  std::vector<std::unique_ptr<TokenSequence>> sequences;
  for (const ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      if (!path_exists(path) || is_directory(path)) {
        errors.push_back(at(files.where, "",
                            (path_exists(path) ? "this is a folder: " : "no such file: ") + path));
        errors.back().fix = fix_of_missing(path);
        continue;
      }
      try {
        sequences.push_back(std::make_unique<TokenFile>(path, kind.element, kind.header_bytes));
      } catch (const Error& error) {
        const auto& found = error.diagnostics();
        errors.insert(errors.end(), found.begin(), found.end());
      }
    }
  }
  if (errors.size() > before) return nullptr;
  TokenScan scan;
  scan.vocabulary = kind.vocabulary;
  scan.threads = options.threads > 0 ? options.threads : file_threads();
  scan.check_stop = [&] { check_token_stop(options); };
  const auto samples = TokenSamples::open(std::move(sequences), kind.windows, scan, errors);
  return samples ? token_arrays(samples, names) : nullptr;
}

}  // namespace tandem
