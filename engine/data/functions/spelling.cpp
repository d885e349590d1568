// trim, lower: the text of a column without blanks around it, in lower case, before other functions
// read it. With `split` this happens to each of its values, too.
#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::functions {
namespace {

struct OneSpelling final : TextFunction {
  std::string name;

  explicit OneSpelling(Call& call) : name(call.name()) { call.count(0, 0, name); }

  bool take_text(FieldPlanner& plan) const override {
    if (plan.is_number()) plan.report(": acts on text", "write it before functions of numbers");
    if (name == "trim") {
      plan.field().spelling.trims = true;
      return true;
    }
    // Other builds would number other words.
    const TextProblem problem = unicode_problem();
    if (!std::string_view(problem.what).empty())
      plan.report(std::string(": ") + problem.what, problem.fix);
    plan.field().spelling.lowers = true;
    return true;
  }
  std::string decides_values() const override { return name; }
};

}  // namespace

FieldFunctionKind spelling() {
  return {.form = "trim, lower",
          .words = "trim|lower",
          .read = read_call<OneSpelling>,
          .of_text = true};
}

}  // namespace tandem::functions
