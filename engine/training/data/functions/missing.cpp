// missing(-1): what stands for an empty field of a text table.
#include <fmt/format.h>

#include "engine/training/data/functions/field_function.h"
#include "engine/training/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Missing final : TextFunction {
  std::string value;

  explicit Missing(Call& call) {
    call.count(1, 1, "missing(-1) or missing('none')", true);
    if (call[0].is_list) throw std::invalid_argument("one value is needed, not a list");
    value = call[0].text;
  }

  bool take_text(FieldPlanner& plan) const override {
    TableField& field = plan.field();
    if (field.has_missing || field.most > 0 || plan.is_number())
      plan.report(": `missing` comes first");
    field.has_missing = true;
    field.missing = value;
    return true;
  }
  std::string decides_values() const override { return fmt::format("missing('{}')", value); }
};

}  // namespace

FieldFunctionKind missing() {
  return {.name = "missing", .form = "missing(-1)", .read = read_call<Missing>, .of_text = true};
}

}  // namespace tandem::functions
