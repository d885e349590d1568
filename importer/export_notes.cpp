#include "importer/export_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <unordered_set>

#include "engine/graph/text.h"
#include "importer/file/onnx_content.h"
#include "importer/paths.h"
#include "importer/tied_names.h"

namespace tandem {
namespace importer {
namespace {

constexpr const char* dynamo_call =
    "torch.onnx.export(model.train(), args, file, dynamo=True, optimize=False)";
constexpr const char* torchscript_call =
    "torch.onnx.export(model.train(), args, file, dynamo=False, "
    "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)";

/// Two at most, as masks and constants have.
bool has_few_values(const HostTensor& tensor) {
  const std::int64_t count = tensor.type().elements();
  if (count < 3) return true;
  const double first = tensor.number(0);
  std::int64_t i = 1;
  while (i < count && tensor.number(i) == first) ++i;
  if (i == count) return true;
  const double second = tensor.number(i);
  while (i < count && (tensor.number(i) == first || tensor.number(i) == second)) ++i;
  return i == count;
}

bool is_uniform(const HostTensor& tensor) {
  for (std::int64_t i = 1; i < tensor.type().elements(); ++i) {
    if (tensor.number(i) != tensor.number(0)) return false;
  }
  return true;
}

/// "onnx::MatMul_12": "MatMul"; "" for other names.
std::string made_for(const std::string& name) {
  constexpr std::string_view start = "onnx::";
  const std::size_t bar = name.rfind('_');
  if (!name.starts_with(start) || bar == std::string::npos || bar < start.size()) return "";
  return is_number(name.substr(bar + 1)) ? name.substr(start.size(), bar - start.size()) : "";
}

/// "tensors do not train (a, …)", with their number in front.
class Counted {
 public:
  void add(const std::string& name) {
    if (count_++ == 0) first_ = name;
  }
  std::size_t count() const { return count_; }
  void say(std::vector<std::string>& parts, const char* one, const char* many) const {
    if (count_ == 0) return;
    parts.push_back(fmt::format("{} {} ({}{})", count_, count_ == 1 ? one : many, first_,
                                count_ == 1 ? "" : ", …"));
  }

 private:
  std::size_t count_ = 0;
  std::string first_;
};

class Finding {
 public:
  Finding(const OnnxFile::Content& file, const ImportResult& imported)
      : file_(file), graph_(file.model->graph()), imported_(imported) {
    for (const ParameterSummary& p : imported.summary.parameters) {
      if (p.trainable) trained_.insert(p.name);
    }
  }

  std::vector<ExportNote> run() {
    if (imported_.summary.producer.starts_with("pytorch")) {
      const std::vector<std::string> targets = listed_targets(*file_.model, "PARAMETER");
      targets.empty() ? for_inference_by_torchscript() : for_inference_by_dynamo(targets);
    }
    tables();
    return std::move(notes_);
  }

 private:
  void add_for_inference(const std::vector<std::string>& parts, const char* call) {
    const bool has_dropout = imported_.summary.operators.contains("Dropout");
    notes_.push_back({"for_inference",
                      "the file was exported for inference: " + joined(parts, "; ") +
                          (has_dropout ? "" : "; Dropout, if the model has it, is gone"),
                      call, "", -1});
  }

  void for_inference_by_dynamo(const std::vector<std::string>& parameters) {
    // Its optimizer leaves no Constant node; without it, everything computed is one.
    const auto is_constant = [](const onnx::NodeProto& n) { return n.op_type() == "Constant"; };
    if (std::any_of(graph_.node().begin(), graph_.node().end(), is_constant)) return;
    std::set<std::string> listed;
    for (std::string& target : listed_targets(*file_.model, "")) listed.insert(std::move(target));
    Counted missing, folded, unnamed, frozen;
    for (const std::string& name : parameters) {
      if (file_.initializers.count(name) > 0) continue;
      const std::string mean = name.substr(0, name.rfind('.') + 1) + "running_mean";
      const bool is_folded = listed.count(mean) > 0 && file_.initializers.count(mean) == 0;
      if (!is_folded && is_tied(name)) continue;
      missing.add(name);
      if (is_folded && name.ends_with(".weight")) folded.add(name);
    }
    for (const ParameterSummary& p : imported_.summary.parameters) {
      if (listed.count(p.name) > 0) continue;
      if (p.trainable) {
        unnamed.add(p.name);
      } else if (missing.count() > 0 && is_maybe_weight(p.name)) {
        frozen.add(p.name);
      }
    }
    if (missing.count() + unnamed.count() == 0) return;
    std::vector<std::string> parts;
    missing.say(parts, "of the model's parameters is not in it",
                "of the model's parameters are not in it");
    folded.say(parts, "BatchNormalization is folded into other weights",
               "BatchNormalizations are folded into other weights");
    say_computed(parts, unnamed, frozen);
    add_for_inference(parts, dynamo_call);
  }

  void for_inference_by_torchscript() {
    Counted folded, unnamed, frozen, merged;
    for (const ParameterSummary& p : imported_.summary.parameters) {
      const std::string op = made_for(p.name);
      if (op.empty()) continue;
      if (p.trainable && op.starts_with("Conv")) {
        if (p.type.rank() > 1) folded.add(p.name);
      } else if (p.trainable) {
        unnamed.add(p.name);
      } else if (is_maybe_weight(p.name) || ((op == "Mul" || op == "Add") && is_scale(p.name))) {
        frozen.add(p.name);
      }
    }
    for (const auto& [other, name] : imported_.aliases) {
      const auto value = file_.initializers.find(name);
      if (value != file_.initializers.end() && value->second.shape().size() == 1 &&
          is_uniform(value->second))
        merged.add(other);
    }
    std::vector<std::string> parts;
    folded.say(parts,
               "Conv has a weight that BatchNormalization was folded into, or that was computed",
               "Convs have weights that BatchNormalization was folded into, or that were computed");
    say_computed(parts, unnamed, frozen);
    merged.say(parts, "bias or scale was equal to another one and is the same tensor now",
               "biases or scales were equal to others and are the same tensors now");
    if (!parts.empty()) add_for_inference(parts, torchscript_call);
  }

  static void say_computed(std::vector<std::string>& parts, const Counted& unnamed,
                           const Counted& frozen) {
    unnamed.say(parts, "tensor was computed by the exporter and has no name in the model",
                "tensors were computed by the exporter and have no name in the model");
    frozen.say(parts, "computed tensor does not train", "computed tensors do not train");
  }

  /// Ties of the model are matrices; biases and scales are equal before any training.
  bool is_tied(const std::string& name) const {
    const auto alias = imported_.aliases.find(name);
    if (alias == imported_.aliases.end()) return false;
    const auto value = file_.initializers.find(alias->second);
    return value == file_.initializers.end() || value->second.shape().size() > 1;
  }

  /// Whether it may be a weight: neither a mask nor a scalar.
  bool is_maybe_weight(const std::string& name) const {
    const auto value = file_.initializers.find(name);
    return value != file_.initializers.end() && is_float(value->second.dtype()) &&
           !has_few_values(value->second);
  }

  /// Whether it has one value for each of several channels, as initial scales and biases do.
  bool is_scale(const std::string& name) const {
    const auto value = file_.initializers.find(name);
    return value != file_.initializers.end() && value->second.type().elements() > 1 &&
           is_uniform(value->second);
  }

  void tables() {
    std::unordered_set<std::string> seen;
    for (const onnx::NodeProto& node : graph_.node()) {
      if (node.op_type() != "Gather" || !domain_of(node.domain()).empty() || node.input_size() != 2)
        continue;
      const auto at = imported_.aliases.find(node.input(0));
      const std::string& name = at == imported_.aliases.end() ? node.input(0) : at->second;
      const auto value = file_.initializers.find(name);
      if (value == file_.initializers.end() || trained_.count(name) == 0 ||
          value->second.dtype() != DType::float32 || value->second.shape().size() != 2)
        continue;
      if (!seen.insert(name).second) continue;
      padding_row(node, name, value->second);
      untied(name, value->second);
    }
  }

  void padding_row(const onnx::NodeProto& node, const std::string& name, const HostTensor& table) {
    const std::optional<std::int64_t> called = padding_idx(node);
    const std::int64_t row = called ? *called : row_of_zeros(table);
    if (row < 0 || row >= table.shape()[0]) return;
    const std::string path = parameter_path(name);
    notes_.push_back(
        {"padding_row",
         fmt::format("{}: {}, and no file can say that it gets no gradient: it will train", path,
                     called ? fmt::format("row {} is the model's padding_idx", row)
                            : fmt::format("only row {} is zeros, a padding_idx perhaps", row)),
         fmt::format("parameters.fixed_rows = [ {{ at = \"{}\", rows = [ {} ] }} ]", path, row),
         name, row});
  }

  /// The padding_idx of the call in dynamo's metadata, -1 where it gives none; nothing without
  /// metadata.
  static std::optional<std::int64_t> padding_idx(const onnx::NodeProto& node) {
    constexpr std::string_view call = "aten.embedding.default](args = (";
    for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
      if (entry.key() != "pkg.torch.onnx.fx_node") continue;
      const std::string& text = entry.value();
      std::size_t at = text.find(call);
      if (at == std::string::npos) return std::nullopt;
      const std::size_t end = text.find(')', at += call.size());
      const std::string arguments = text.substr(at, end - at);
      std::size_t comma = arguments.find(',');
      if (comma != std::string::npos) comma = arguments.find(',', comma + 1);
      if (comma == std::string::npos) return -1;
      std::int64_t row = -1;
      const char* digits = arguments.c_str() + arguments.find_first_not_of(' ', comma + 1);
      std::from_chars(digits, arguments.c_str() + arguments.size(), row);
      return row;
    }
    return std::nullopt;
  }

  /// The one row of zeros, or -1. Of large tables the rows that serve as padding: the first two and
  /// the last.
  static std::int64_t row_of_zeros(const HostTensor& table) {
    const std::int64_t rows = table.shape()[0], columns = table.shape()[1];
    constexpr std::int64_t most_rows = 1 << 18;
    if (rows < 3 || columns < 2) return -1;
    const float* values = table.as<float>().data();
    std::int64_t found = -1;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (rows > most_rows && row == 2) row = rows - 1;
      const float* begin = values + row * columns;
      if (std::any_of(begin, begin + columns, [](float value) { return value != 0; })) continue;
      if (found >= 0) return -1;
      found = row;
    }
    return found;
  }

  void untied(const std::string& name, const HostTensor& table) {
    if (is_uniform(table)) return;
    for (const ParameterSummary& other : imported_.summary.parameters) {
      if (other.name == name || imported_.aliases.count(other.name) > 0) continue;
      const auto value = file_.initializers.find(other.name);
      if (value == file_.initializers.end() || !is_same(table, value->second)) continue;
      notes_.push_back({"untied",
                        fmt::format("{} and {} hold the same elements but are two tensors: tied "
                                    "weights that the exporter untied, which will drift apart",
                                    parameter_path(name), parameter_path(other.name)),
                        made_for(other.name).empty() ? dynamo_call : torchscript_call, other.name,
                        -1});
      return;
    }
  }

  static bool is_same(const HostTensor& table, const HostTensor& other) {
    if (other.dtype() != DType::float32 || other.shape().size() != 2) return false;
    const std::int64_t rows = table.shape()[0], columns = table.shape()[1];
    const float *a = table.as<float>().data(), *b = other.as<float>().data();
    if (other.shape() == table.shape() && std::memcmp(a, b, table.bytes()) == 0) return true;
    if (other.shape() != Shape{columns, rows}) return false;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (a[i * columns + j] != b[j * rows + i]) return false;
      }
    }
    return true;
  }

  const OnnxFile::Content& file_;
  const onnx::GraphProto& graph_;
  const ImportResult& imported_;
  std::unordered_set<std::string> trained_;
  std::vector<ExportNote> notes_;
};

}  // namespace
}  // namespace importer

std::vector<ExportNote> export_notes(const OnnxFile& file, const ImportResult& imported) {
  return importer::Finding(file.content(), imported).run();
}

}  // namespace tandem
