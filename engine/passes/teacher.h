// A second model next to the first one in one graph, for distillation.
#pragma once

#include <map>
#include <string>

#include "engine/graph/graph.h"
#include "engine/graph/structures/where.h"
#include "engine/operators/operator.h"

namespace tandem {

struct TeacherRequest {
  std::string prefix;                         // "teacher.": begins names and paths
  std::map<std::string, std::string> inputs;  // student's input by teacher's; others by equal name
  Where where = {};
};

/// `student` with the nodes and states of `teacher`, which was imported in inference form: names
/// and paths begin with the prefix, inputs are the student's, outputs are values under their names
/// (the outputs of the graph stay the student's), states do not train and are held by the teacher.
/// Throws Error{usage} for inputs that the student lacks or has in another type, and where the
/// student has such names itself.
Graph with_teacher(const Graph& student, const Graph& teacher, const OperatorSet& operators,
                   const TeacherRequest& request);

}  // namespace tandem
