#include "engine/training/reported_ids.h"

#include "engine/graph/error.h"

namespace tandem {

void refuse_reported(Program& program, const std::string& where) {
  const auto error = program.error_in(program.errors());
  if (!error) return;
  program.errors().packed = 0;
  Diagnostic d;
  d.path = error->path;
  d.message = (error->kind == ErrorWord::index_out_of_range ? "an index is out of range"
               : error->kind == ErrorWord::bad_label        ? "a label is not a class of the logits"
                                                            : "a value is not finite") +
              where;
  d.got = std::to_string(error->value);
  throw Error(ErrorKind::data, std::move(d));
}

}  // namespace tandem
