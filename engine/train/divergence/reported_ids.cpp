#include "engine/train/divergence/reported_ids.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/lower/lowered.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

// Recurrent networks report lengths of sequences, as other operators report ids.
bool has_lengths(const Program& program, const std::string& path) {
  const auto& nodes = program.lowered().graph.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    const auto& inputs = node.op->inputs;
    return node.path == path && std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
             return std::string_view(input.name) == "lengths";
           });
  });
}

std::string message_of(const Program& program, const Program::StepError& error) {
  if (error.kind == ErrorWord::bad_label) return "a label is not a class of the logits";
  if (error.kind != ErrorWord::index_out_of_range) return "a value is not finite";
  return has_lengths(program, error.path) ? "a length is out of range" : "an index is out of range";
}

}  // namespace

void refuse_reported(const Program& program, ErrorWord& word, std::string_view where) {
  const std::optional<Program::StepError> error = program.error_in(word);
  if (!error) return;
  word.packed = 0;
  throw Error(ErrorKind::data,
              Diagnostic{.message = message_of(program, *error) + std::string(where),
                         .path = error->path,
                         .got = std::to_string(error->value),
                         .fix = error->kind == ErrorWord::bad_label
                                    ? "check the data, or loss.terms ignore_index"
                                    : "check the data"});
}

}  // namespace tandem
