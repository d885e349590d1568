// What Hugging Face's tokenizers make of texts (tests/scripts/tokenizer_expectations.py).
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/formats/tokenizer/unicode.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

inline nlohmann::json tokenizer_file(const std::string& name) {
  return nlohmann::json::parse(
      std::ifstream(source_folder() + "/tests/data/tokenizers/" + name + ".json"));
}

inline const std::vector<std::string>& tokenizer_names() {
  static const std::vector<std::string> names{"byte_level",   "llama3",        "qwen",
                                              "sentence_bpe", "metaspace_bpe", "word_piece",
                                              "unigram",      "unigram_bytes", "word_level"};
  return names;
}

inline bool lacks_text_libraries() {
  return *unicode_problem().what != '\0' || *pattern_problem().what != '\0';
}

}  // namespace tandem::testing
