// characters(max=128): every character of a text as a value of its own, on a new last axis that is
// filled up with the id `pad`.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Characters final : TextFunction {
  std::int64_t most = 0, pad = 0;

  explicit Characters(Call& call) {
    constexpr const char* usage = "characters(max=128)";
    if (const auto id = call.take_number("pad")) pad = whole(*id, 0, "pad");
    const auto max = call.take_number("max");
    if (!max) throw std::invalid_argument(std::string("write ") + usage);
    most = whole(*max, 1, "max");
    if (most > 1 << 20) throw std::invalid_argument("max is at most 1048576");
    call.count(0, 0, usage);
  }

  bool take_text(FieldPlanner& plan) const override {
    if (plan.field().most > 0 || plan.is_number())
      plan.report(": the text is split once, before other functions");
    plan.split("", most, pad);
    return true;
  }
  /// With pad 0 an id is kept from the values.
  std::string decides_ids() const override { return pad == 0 ? "characters(pad=0)" : ""; }
  std::string decides_values() const override { return fmt::format("characters(pad={})", pad); }
};

}  // namespace

FieldFunctionKind characters() {
  return {.name = "characters",
          .form = "characters(max=128)",
          .read = read_call<Characters>,
          .of_text = true};
}

}  // namespace tandem::functions
