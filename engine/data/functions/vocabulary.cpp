// vocabulary(min_count=10, name="ids", by="column", file="F"): the number of each (column, value)
// that occurs so often in the training data; by="value" of each value, by="table" of each value in
// its column, from 1 on. A model keeps it as a file, which is compared. `file` names such a file of
// another model, whose numbers are taken.
#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct VocabularyIds final : TextFunction {
  VocabularyPlan plan;

  explicit VocabularyIds(Call& call) {
    const auto least = call.take_number("min_count");
    const bool has_least = least.has_value();
    if (least) plan.least = whole(*least, 1, "min_count");
    if (const auto shared = call.take_text("name")) {
      plan.name = *shared;
      if (shared->empty() || shared->find_first_of("/\\") != std::string::npos)
        throw std::invalid_argument("the name is part of a file's name");
      plan.by_value = true;
    }
    if (const auto by = call.take_text("by")) {
      if (*by != "value" && *by != "column" && *by != "table")
        throw std::invalid_argument("by is 'column', 'value' or 'table'");
      plan.by_value = *by == "value";
      plan.by_table = *by == "table";
    }
    if (auto file = call.take_text("file")) {
      if (file->empty()) throw std::invalid_argument("the file of a vocabulary has a name");
      if (has_least)
        throw std::invalid_argument(
            "`min_count` counts values, which a vocabulary's file has done");
      plan.file = *std::move(file);
    }
    call.count(0, 0, "vocabulary(min_count=10, name='ids')");
  }

  bool take_text(FieldPlanner& field) const override {
    field.end_as_vocabulary(plan);
    return true;
  }
  const VocabularyPlan* vocabulary() const override { return &plan; }
};

}  // namespace

FieldFunctionKind vocabulary() {
  return {.name = "vocabulary",
          .form = "vocabulary(min_count=10, name=\"ids\")",
          .read = read_call<VocabularyIds>,
          .of_text = true};
}

}  // namespace tandem::functions
