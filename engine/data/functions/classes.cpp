// classes('cat', 'dog'): the number of a word, from 0 in the order in which they are listed. Any
// other word is an error.
#include <map>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

constexpr std::size_t most_classes = 1 << 16;

struct Classes final : TextFunction {
  std::vector<std::string> listed;
  std::map<std::string, std::int64_t, std::less<>> numbers;

  explicit Classes(Call& call) {
    call.count(2, most_classes, "classes('cat', 'dog')", true);
    for (const Argument& word : call) {
      if (word.is_list || word.text.empty())
        throw std::invalid_argument("a class is a word or a number");
      if (!numbers.emplace(word.text, static_cast<std::int64_t>(listed.size())).second)
        throw std::invalid_argument("two classes are called '" + word.text + "'");
      listed.push_back(word.text);
    }
  }

  bool take_text(FieldPlanner& plan) const override {
    plan.field().words = listed;
    plan.end_as_ids(static_cast<std::int64_t>(listed.size()), [this](const std::string&) {
      return [all = numbers](std::string_view value) {
        const auto found = all.find(value);
        return found == all.end() ? std::int64_t{-1} : found->second;
      };
    });
    return true;
  }
  std::string decides_ids() const override { return call_text("classes", listed); }
  const std::vector<std::string>* words() const override { return &listed; }
};

}  // namespace

FieldFunctionKind classes() {
  return {.name = "classes",
          .form = "classes(\"cat\", \"dog\")",
          .read = read_call<Classes>,
          .of_text = true,
          .gives_ids = true};
}

}  // namespace tandem::functions
