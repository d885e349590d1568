// [distillation] of train.toml.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/config/keys/config_types.h"

namespace tandem {

/// Prefix of the names of the teacher's values, nodes and parameters in the graph.
inline constexpr std::string_view teacher_prefix = "teacher.";

/// Names of a term's labels that are a value of the teacher, not a data field.
inline bool names_teacher(std::string_view name) { return name.starts_with(teacher_prefix); }

/// A trained model whose outputs the model learns to give, too.
struct DistillationConfig {
  std::string teacher;  // an ONNX file, absolute; "": none
  std::string weights;  // a file of weights for it, absolute; "": its own
  double temperature = 2;
  double weight = 0.5;                        // factor of each term in the loss
  std::map<std::string, std::string> at;      // the teacher's value by the model's
  std::map<std::string, std::string> inputs;  // the model's input by the teacher's; else by name
  Where where;
  bool operator==(const DistillationConfig&) const = default;

  bool has_teacher() const { return !teacher.empty(); }
};
void visit(KeyVisitor& v, DistillationConfig& c);

class TableReader;  // engine/config/keys/config_reader.h
struct LossConfig;  // engine/config/loss_config.h

/// Adds the terms that `at` makes where the loss does not have them. Reports to `table`, that of
/// [distillation], where nothing reads the teacher.
void add_distillation_terms(const TableReader& table, DistillationConfig& c, LossConfig& loss);
/// Reports terms of the kind distillation where the configuration has no teacher.
void refuse_absent_teacher(const LossConfig& loss, const TableReader& root);
/// For a trained model that is used: removes the teacher, and the terms that read one.
void forget_teacher(DistillationConfig& c, LossConfig& loss);

}  // namespace tandem
