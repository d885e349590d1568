#include "engine/training/divergence/reported_ids.h"

#include "engine/graph/error.h"

namespace tandem {
namespace {

const char* message_of(ErrorWord::Kind kind) {
  if (kind == ErrorWord::bad_label) return "a label is not a class of the logits";
  return kind == ErrorWord::index_out_of_range ? "an index is out of range"
                                               : "a value is not finite";
}

}  // namespace

void refuse_reported(const Program& program, ErrorWord& word, std::string_view where) {
  const std::optional<Program::StepError> error = program.error_in(word);
  if (!error) return;
  word.packed = 0;
  Diagnostic d;
  d.path = error->path;
  d.message = message_of(error->kind) + std::string(where);
  d.got = std::to_string(error->value);
  d.fix = error->kind == ErrorWord::bad_label ? "check the data, or loss.terms ignore_index"
                                              : "check the data";
  throw Error(ErrorKind::data, std::move(d));
}

}  // namespace tandem
