#include "engine/train/programs/compiled_ahead.h"

#include "engine/runtime/state_entry.h"

namespace tandem {

CompiledAhead::CompiledAhead(const RunParts& parts, const StateStore& states) : parts_(parts) {
  for (const std::string& name : states.names())
    layouts_.emplace_back(name, states.find(name)->layout);
}

void CompiledAhead::has_of_phase(const BoundProgram& bound) {
  memory_.add_of_phase(bound.program->lowered(), bound.program->plan());
  add_layouts(bound.program->lowered(), layouts_);
}

void CompiledAhead::has(const BoundProgram& bound) {
  memory_.add(bound.program->lowered(), bound.program->plan());
  add_layouts(bound.program->lowered(), layouts_);
}

void CompiledAhead::add(const Graph& graph, const RunParts& parts) {
  ProgramOptions options = parts.options;
  options.lower.fixed_layouts = layouts_;
  const CompiledProgram compiled =
      compile_program(graph, parts.model->place(graph), *parts.operators, parts.devices, options);
  memory_.add_of_phase(compiled.lowered, compiled.plan);
  add_layouts(compiled.lowered, layouts_);
}

void CompiledAhead::check_fit() const {
  if (parts_.options.accept) parts_.options.accept(memory_.as_plan());
}

}  // namespace tandem
