#include "engine/config/kinds/kind_options.h"

#include "engine/config/keys/key_visitor.h"

namespace tandem {

std::vector<KeyInfo> AnyOptions::keys() const {
  AnyOptions shown = *this;
  std::vector<KeyInfo> keys = list_keys([&](KeyVisitor& v) { shown.visit(v); });
  std::erase_if(keys, [](const KeyInfo& key) { return key.path.ends_with("[]"); });
  return keys;
}

bool AnyOptions::operator==(const AnyOptions& other) const {
  const auto text = [](AnyOptions options) {
    return write_keys([&](KeyVisitor& v) { options.visit(v); });
  };
  return text(*this) == text(other);
}

}  // namespace tandem
