// The functions of the list all_functions.inl, by name, with the help about them.
#include <algorithm>
#include <stdexcept>

#include "engine/config/keys/config_check.h"
#include "engine/data/functions/field_function.h"
#include "engine/graph/selector.h"

namespace tandem {
namespace functions {
#define TANDEM_FIELD_FUNCTION(name) FieldFunctionKind name();
#include "engine/data/functions/all_functions.inl"
}  // namespace functions

std::span<const FieldFunctionKind> all_field_functions() {
  static const std::vector<FieldFunctionKind> list{
#define TANDEM_FIELD_FUNCTION(name) functions::name(),
#include "engine/data/functions/all_functions.inl"
  };
  return list;
}

std::string field_functions_help(bool augment) {
  std::string help;
  bool of_text = false;
  for (const FieldFunctionKind& kind : all_field_functions()) {
    if (augment ? !kind.is_random && !kind.may_augment : kind.is_random) continue;
    help += help.empty() ? "" : kind.of_text && !of_text ? "; of columns also " : ", ";
    help += kind.form;
    of_text = kind.of_text;
  }
  return help;
}

Transform parse_transform(std::string_view text) {
  Call call(text);
  std::vector<std::string> known;
  for (const FieldFunctionKind& kind : all_field_functions()) {
    const std::vector<std::string> words = words_of(kind.words);
    known.insert(known.end(), words.begin(), words.end());
    if (!kind.name.empty()) known.emplace_back(kind.name);
    if (std::find(known.begin(), known.end(), call.name()) != known.end())
      return {.kind = &kind, .function = kind.read(call), .text = call.text(), .where = {}};
  }
  const std::string near = nearest_name(call.name(), known);
  throw std::invalid_argument("unknown function `" + call.name() + "`" +
                              (near.empty() ? "" : ", did you mean `" + near + "`?"));
}

Transform cast_to(DType dtype) { return parse_transform(name_of(dtype)); }

}  // namespace tandem
