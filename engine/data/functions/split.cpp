// split("|", max=8): several values in one field of a text table: a new last axis, filled up with
// the id `pad`.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Split final : TextFunction {
  std::string separator;
  std::int64_t most = 0, pad = 0;

  explicit Split(Call& call) {
    constexpr const char* usage = "split('|', max=8)";
    if (const auto id = call.take_number("pad")) pad = whole(*id, 0, "pad");
    const auto max = call.take_number("max");
    if (!max) throw std::invalid_argument(std::string("write ") + usage);
    most = whole(*max, 1, "max");
    if (most > 1 << 20) throw std::invalid_argument("max is at most 1048576");
    call.count(1, 1, usage, true);
    if (!call[0].is_text || call[0].text.empty())
      throw std::invalid_argument("the separator is a text in quotes");
    separator = call[0].text;
  }

  bool take_text(FieldPlanner& plan) const override {
    if (plan.field().most > 0 || plan.is_number())
      plan.report(": the text is split once, before other functions");
    plan.split(separator, most, pad);
    return true;
  }
  /// With pad 0 an id is kept from the values.
  std::string decides_ids() const override { return pad == 0 ? "split(..., pad=0)" : ""; }
  std::string decides_values() const override {
    return fmt::format("split('{}', pad={})", separator, pad);
  }
};

}  // namespace

FieldFunctionKind split() {
  return {
      .name = "split", .form = "split(\"|\", max=8)", .read = read_call<Split>, .of_text = true};
}

}  // namespace tandem::functions
