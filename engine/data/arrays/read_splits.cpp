#include "engine/data/arrays/read_splits.h"

#include <utility>

#include "engine/data/chat/read_chat.h"
#include "engine/data/images/read_images.h"
#include "engine/data/tokens/read_text.h"
#include "engine/data/tokens/read_tokens.h"

namespace tandem {

ReadSplits read_splits(const DataConfig& config, const ArrayNames& names,
                       const OpenOptions& options, std::vector<Diagnostic>& errors) {
  if (config.images()) {
    const ImageSplits images = read_images(config, names, options, errors);
    ReadSplits splits{.train = images.train, .eval = images.eval, .warnings = images.warnings};
    if (!images.classes.empty()) splits.vocabularies.push_back(saved_classes(images.classes));
    return splits;
  }
  if (config.text()) {
    TextSplits text = read_text(config, names, options, errors);
    ReadSplits splits{.train = text.train, .eval = text.eval, .warnings = std::move(text.warnings)};
    if (text.vocabulary) splits.vocabularies.push_back(*std::move(text.vocabulary));
    return splits;
  }
  if (config.chat()) {
    ChatSplits chat = read_chat(config, names, options, errors);
    ReadSplits splits{.train = chat.train,
                      .eval = chat.eval,
                      .warnings = std::move(chat.warnings),
                      .train_tokens = std::move(chat.train_tokens),
                      .eval_tokens = std::move(chat.eval_tokens)};
    if (chat.vocabulary) splits.vocabularies.push_back(*std::move(chat.vocabulary));
    return splits;
  }
  const auto read = [&](const SplitConfig& split) {
    if (const TokenFiles* tokens = config.tokens())
      return read_tokens(*tokens, split, names, options, errors);
    return read_arrays(config.kind, split, names, errors);
  };
  ReadSplits splits;
  splits.train = read(config.train);
  if (!config.eval.files.empty()) splits.eval = read(config.eval);
  return splits;
}

}  // namespace tandem
