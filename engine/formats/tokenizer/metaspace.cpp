#include "engine/formats/tokenizer/metaspace.h"

#include "engine/formats/tokenizer/parts.h"

namespace tandem {

MetaspaceSettings read_metaspace(const JsonItem& item) {
  MetaspaceSettings settings;
  settings.character = character_at(item, "replacement", "\xe2\x96\x81");
  // Files of early versions have "add_prefix_space" in place of the scheme.
  const bool adds = flag(item, "add_prefix_space", true);
  const std::string scheme = text_at(item, "prepend_scheme", adds ? "always" : "never");
  if (scheme == "always") {
    settings.prepend = MetaspaceSettings::Prepend::always;
  } else if (scheme == "first") {
    settings.prepend = MetaspaceSettings::Prepend::first;
  } else if (scheme == "never") {
    settings.prepend = MetaspaceSettings::Prepend::never;
  } else {
    item.at("prepend_scheme").refuse("not a value that can be here", "always, first or never");
  }
  return settings;
}

}  // namespace tandem
