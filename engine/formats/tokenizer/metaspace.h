// The settings of Metaspace, which the pre-tokenizer and the decoder share.
#pragma once

#include <string>

#include "engine/formats/json_file.h"

namespace tandem {

struct MetaspaceSettings {
  enum class Prepend : std::uint8_t { always, first, never };
  std::string character;  // in place of a space
  Prepend prepend = Prepend::always;
};
MetaspaceSettings read_metaspace(const JsonItem& item);

}  // namespace tandem
