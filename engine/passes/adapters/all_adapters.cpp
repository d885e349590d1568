// The kinds of adapters in the order of their list, and what a rule makes of them.
#include "engine/passes/adapters/adapter_kind.h"

namespace tandem {

const std::vector<AdapterKind>& all_adapters() {
  static const std::vector<AdapterKind> list{
#define TANDEM_ADAPTER(name) name(),
#include "engine/passes/adapters/all_adapters.inl"
  };
  return list;
}

AdapterKind AdapterRule::kind() const {
  AdapterKind all = lora();
  for (const AdapterKind& own : all_adapters()) {
    if (!(this->*own.flag)) continue;
    if (own.scale != nullptr) all.scale = own.scale;
    if (!own.parts.empty()) all.name = own.name, all.parts = own.parts;
    if (own.add != nullptr) all.add = own.add;
    if (own.merge != nullptr) all.merge = own.merge;
    if (own.write != nullptr) all.write = own.write;
    if (!own.not_written.empty()) all.not_written = own.not_written;
    if (!own.peft.type.empty()) all.peft = own.peft;
  }
  return all;
}

double AdapterRule::scale() const { return kind().scale(*this); }

}  // namespace tandem
