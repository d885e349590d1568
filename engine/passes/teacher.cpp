#include "engine/passes/teacher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

class Joined {
 public:
  Joined(const Graph& student, const Graph& teacher, const OperatorSet& operators,
         const TeacherRequest& request)
      : teacher_(teacher),
        request_(request),
        builder_(operators, student),
        map_(teacher.values.size()) {}

  Graph run() {
    refuse_taken_names();
    connect_inputs();
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
    for (const State& state : teacher_.states) add(state);
    for (const Node& node : teacher_.nodes) add(node);
    for (const NamedValue& output : teacher_.outputs) {
      const ValueId value = map_[static_cast<std::size_t>(output.value.index)];
      if (value && builder_.graph().value(value).kind == ValueKind::computed)
        builder_.rename(value, request_.prefix + output.name);
    }
    return builder_.finish();
  }

 private:
  void fail(std::string path, std::string message, std::string expected, std::string got,
            std::string fix) {
    problems_.push_back(at(request_.where, std::move(path), "distillation: " + message,
                           std::move(expected), std::move(got), std::move(fix)));
  }

  void refuse_taken_names() {
    const Graph& student = builder_.graph();
    const auto refuse_name = [&](const std::string& name) {
      fail(name, "the model has a name that begins as all names of the teacher do",
           "names that do not begin with \"" + request_.prefix + "\"", name,
           "rename it in the model");
    };
    for (const State& state : student.states) {
      if (state.name.starts_with(request_.prefix)) return refuse_name(state.name);
    }
    for (const Node& node : student.nodes) {
      if (node.path.starts_with(request_.prefix)) return refuse_name(node.path);
    }
    for (const Value& value : student.values) {
      if (value.name.starts_with(request_.prefix)) return refuse_name(value.name);
    }
  }

  void connect_inputs() {
    const Graph& student = builder_.graph();
    std::vector<std::string> names;
    for (const NamedValue& input : student.inputs) names.push_back(input.name);
    for (const auto& [teachers, students] : request_.inputs) {
      if (teacher_.find_input(teachers) == nullptr)
        fail(teachers, "the teacher has no input of this name",
             "one of " + joined(teacher_.inputs, ", ", &NamedValue::name), "",
             "correct distillation.inputs");
    }
    for (const NamedValue& input : teacher_.inputs) {
      const auto given = request_.inputs.find(input.name);
      const std::string& wanted = given == request_.inputs.end() ? input.name : given->second;
      const NamedValue* ours = student.find_input(wanted);
      if (ours == nullptr) {
        fail(input.name, "the model has no input \"" + wanted + "\" for this input of the teacher",
             "one of " + joined(student.inputs, ", ", &NamedValue::name), wanted,
             did_you_mean(nearest_name(wanted, names), "say which one in distillation.inputs = { " +
                                                           input.name +
                                                           " = \"INPUT OF THE MODEL\" }"));
        continue;
      }
      const TensorType &type = teacher_.type(input.value), &own = student.type(ours->value);
      if (type != own) {
        fail(input.name, "the teacher takes \"" + wanted + "\" in another type than the model",
             to_string(type), to_string(own),
             "export both for the same inputs, or map another one in distillation.inputs");
        continue;
      }
      map_[static_cast<std::size_t>(input.value.index)] = ours->value;
    }
  }

  void add(const State& state) {
    State own = state;
    own.name = request_.prefix + state.name;
    own.path = request_.prefix + (state.path.empty() ? state.name : state.path);
    own.trainable = false;
    own.reason = "of the teacher";
    own.held_by = HeldBy::teacher;
    map_[static_cast<std::size_t>(state.initial.index)] = builder_.state(std::move(own));
  }

  ValueId mapped(ValueId old) {
    if (!old) return {};
    ValueId& to = map_[static_cast<std::size_t>(old.index)];
    if (!to) {
      const Value& value = teacher_.value(old);
      to = builder_.constant(*value.constant, request_.prefix + value.name);
    }
    return to;
  }

  void add(const Node& node) {
    GraphBuilder::Scope scope{request_.prefix + node.path, node.phase, {}};
    for (const std::string& origin : node.origins)
      scope.origins.push_back(request_.prefix + origin);
    builder_.set_scope(std::move(scope));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    const std::vector<ValueId> outputs =
        builder_.node(node.op->name, std::move(inputs), node.attributes, node.body);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      map_[static_cast<std::size_t>(node.outputs[i].index)] = outputs[i];
      builder_.rename(outputs[i], request_.prefix + teacher_.value(node.outputs[i]).name);
    }
  }

  const Graph& teacher_;
  const TeacherRequest& request_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;  // by the teacher's values
  std::vector<Diagnostic> problems_;
};

}  // namespace

Graph with_teacher(const Graph& student, const Graph& teacher, const OperatorSet& operators,
                   const TeacherRequest& request) {
  return Joined(student, teacher, operators, request).run();
}

}  // namespace tandem
