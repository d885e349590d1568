// missing(-1): the value that an empty field of a text table gets; missing([0, 1959.7]): one for
// each column of a stack.
#include <fmt/format.h>

#include <vector>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"
#include "engine/graph/text.h"

namespace tandem::functions {
namespace {

struct Missing final : TextFunction {
  std::vector<std::string> values;  // one of all columns, or one a column

  explicit Missing(Call& call) {
    call.count(1, 1, "missing(-1), missing('none') or missing([0, 1959.7])", true);
    if (!call[0].is_list) values = {call[0].text};
    if (call[0].is_list) {
      for (const double value : call[0].numbers) values.push_back(fmt::format("{}", value));
    }
    if (values.empty()) throw std::invalid_argument("one value is needed at least");
  }

  bool take_text(FieldPlanner& plan) const override {
    TableField& field = plan.field();
    if (!field.missing.empty() || field.most > 0 || plan.is_number())
      plan.report(": `missing` comes first");
    if (values.size() > 1 && values.size() != field.columns.size()) {
      plan.report(fmt::format(": `missing` has {} values for {} columns", values.size(),
                              field.columns.size()));
    }
    field.missing = values;
    return true;
  }
  std::string decides_values() const override {
    return "missing(" + joined(values, ", ", [](const auto& x) { return "'" + x + "'"; }) + ")";
  }
};

}  // namespace

FieldFunctionKind missing() {
  return {.name = "missing", .form = "missing(-1)", .read = read_call<Missing>, .of_text = true};
}

}  // namespace tandem::functions
