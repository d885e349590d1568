// The list of functions of fields: engine/training/data/functions/NAME.cpp has functions::NAME().
#include <algorithm>
#include <stdexcept>

#include "engine/graph/selector.h"
#include "engine/training/config/config_check.h"
#include "engine/training/data/functions/field_function.h"

// clang-format off: one function a line, in the order of docs; those of text last.
#define TANDEM_FIELD_FUNCTIONS(FUNCTION) \
  FUNCTION(scale)                        \
  FUNCTION(normalize)                    \
  FUNCTION(flatten)                      \
  FUNCTION(reshape)                      \
  FUNCTION(random_crop)                  \
  FUNCTION(random_resized_crop)          \
  FUNCTION(random_flip)                  \
  FUNCTION(random_vertical_flip)         \
  FUNCTION(color_jitter)                 \
  FUNCTION(rand_augment)                 \
  FUNCTION(random_erasing)               \
  FUNCTION(resize)                       \
  FUNCTION(one_hot)                      \
  FUNCTION(mask)                         \
  FUNCTION(cast)                         \
  FUNCTION(log1p)                        \
  FUNCTION(bucketize)                    \
  FUNCTION(missing)                      \
  FUNCTION(dates)                        \
  FUNCTION(split)                        \
  FUNCTION(characters)                   \
  FUNCTION(tokens)                       \
  FUNCTION(classes)                      \
  FUNCTION(hash)                         \
  FUNCTION(vocabulary)
// clang-format on

namespace tandem {
namespace functions {
#define DECLARE_FUNCTION(name) FieldFunctionKind name();
TANDEM_FIELD_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION
}  // namespace functions

std::span<const FieldFunctionKind> all_field_functions() {
#define LIST_FUNCTION(name) functions::name(),
  static const std::vector<FieldFunctionKind> list{TANDEM_FIELD_FUNCTIONS(LIST_FUNCTION)};
#undef LIST_FUNCTION
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
