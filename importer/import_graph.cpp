#include "importer/import_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/graph/finiteness.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/selector.h"
#include "engine/operators/packed/packing.h"
#include "importer/batch/refuse_ambiguous.h"
#include "importer/branches.h"
#include "importer/chosen_rows.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/grown_tables.h"
#include "importer/import_content.h"
#include "importer/inputs/bindings.h"
#include "importer/problems.h"
#include "importer/quantized_weights.h"
#include "importer/tied_names.h"
#include "importer/training_info/algorithm_import.h"
#include "importer/training_info/artifacts.h"
#include "importer/walk.h"
#include "importer/weights/packed_weights.h"

namespace tandem {

DEFINE_COPIES(ImportOptions);
DEFINE_COPIES(ImportResult);

namespace importer {
namespace {

using Roles = std::unordered_map<std::string, Role>;

// What nodes have to be lowered for.
std::vector<std::string> wanted_names(const onnx::GraphProto& graph,
                                      const AlgorithmImport* algorithm) {
  std::vector<std::string> names;
  if (algorithm != nullptr) names = algorithm->reads();
  for (const onnx::ValueInfoProto& output : graph.output()) {
    if (!is_text(output)) names.push_back(output.name());
  }
  return names;
}

class Import {
 public:
  Import(const OnnxFile::Content& file, const OperatorSet& operators, const ImportOptions& options,
         AlgorithmImport* algorithm)
      : file_(file),
        graph_(file.model->graph()),
        algorithm_(algorithm),
        session_(file, operators, options) {
    needed_ = needed_nodes(graph_, wanted_names(graph_, algorithm));
    roles_ = initializer_roles(file_, needed_);
    train_buffers(options, algorithm != nullptr);
    if (algorithm != nullptr) algorithm->settle(roles_);
    shared_ = shared_initializers(file_, roles_);
    tables_ = grown_tables(file_, needed_, roles_, shared_, options.rows);
    resized_ = resized_parameters(file_, options.resized);
    session_.widens = algorithm == nullptr && has_weights_of_16_bits();
    for (GrownTables* types : {&tables_, &resized_}) {
      for (auto& [name, type] : *types) type.dtype = session_.type_in_graph(type.dtype);
    }
    bindings_ = bind_inputs(session_);
  }

  const Bindings& bindings() const { return bindings_; }
  Session& session() { return session_; }

  void lower() {
    scope_.opsets = &file_.opsets;
    scope_.main = true;
    session_.builder.set_scope({});
    if (algorithm_ != nullptr) algorithm_->start();
    place_inputs();
    place_initializers();
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (!needed_[static_cast<std::size_t>(n)]) continue;
      if (algorithm_ != nullptr && is_part_of_training(graph_.node(n)))
        algorithm_->lower_part(session_, scope_, graph_.node(n));
      else
        lower_node(session_, scope_, graph_.node(n));
    }
    bool only_text = graph_.output_size() > 0;
    std::set<std::string> told;  // a file may list an output twice
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      if (!told.insert(output.name()).second) continue;
      if (is_text(output)) {
        session_.note(output.name(), "this output is text: it is left out, and exported as it is");
        continue;
      }
      only_text = false;
      const Term* term = scope_.find(output.name());
      if (term == nullptr || term->bad) continue;
      if (term->sequence || term->none) {
        session_.report(
            "unsupported_type", "",
            Diagnostic{.message = term->none ? "the output is an optional without a value"
                                             : "the output is a sequence of tensors",
                       .path = output.name()});
        continue;
      }
      if (term->rows || term->counts) {
        const std::string& cause = term->rows ? term->rows->cause : term->counts->cause;
        session_.report("unsupported_type", "",
                        Diagnostic{.message = "data decides how many entries the output has: " +
                                              cause + " chooses them",
                                   .path = output.name(),
                                   .fix = "`eval` and `predict` run it in stages; to train the "
                                          "model, export it with outputs that have an entry for "
                                          "each sample"});
        continue;
      }
      try {
        refuse_ambiguous_output(session_, output.name(), *term);
      } catch (const Error& error) {
        session_.report("bad_operator", "", error.diagnostics()[0]);
        continue;
      }
      outputs_.emplace_back(output.name(), term->type);
      session_.carry(*term);
      session_.builder.output(output.name(), session_.place(*term));
    }
    place_stage_outputs();
    if (!only_text) return;
    session_.report("unsupported_type", "",
                    Diagnostic{.message = "all outputs of the model are text",
                               .path = graph_.output(0).name(),
                               .expected = "an output of numbers",
                               .fix = "export the model with its probabilities or scores"});
  }

  ImportResult finish() {
    ImportResult result;
    result.rewrites = session_.rewrites;
    result.raw_names = session_.raw_names;
    result.file_batch = bindings_.file_batch;
    Graph all = session_.builder.finish();
    if (algorithm_ != nullptr && session_.reports.empty())
      all = algorithm_->split(session_, scope_, std::move(all));
    result.graph = remove_dead(all, session_.operators);
    result.stage = std::move(session_.stage);
    if (!session_.stage_inputs.empty()) result.graph = without_unread(std::move(result.graph));
    if (session_.reports.empty()) verify(result.graph);
    if (session_.reports.empty() && algorithm_ == nullptr) settle_states(result.graph);
    if (session_.reports.empty()) check_readers(result.graph, file_, tables_);
    result.aliases = tied_names(file_, needed_, shared_, result.graph);
    result.batch_norms = session_.batch_norms;
    summarize(result);
    if (session_.reports.empty()) settle_randomness(result);
    return result;
  }

 private:
  /// Optimizers update float32, and gradients of float16 underflow.
  bool has_weights_of_16_bits() const {
    return std::any_of(roles_.begin(), roles_.end(), [&](const auto& entry) {
      const DType dtype = file_.initializers.at(entry.first).dtype();
      return entry.second.is_state && entry.second.kind == StateKind::parameter &&
             (dtype == DType::float16 || dtype == DType::bfloat16);
    });
  }

  // Recognised buffers and Constant nodes that a rule trains all the same; all buffers under
  // training_info, whose bindings say what changes.
  void train_buffers(const ImportOptions& options, bool all) {
    for (auto& [name, role] : roles_) {
      if (!role.is_recognised_buffer) continue;
      const std::string path = parameter_path(name);
      const bool wanted =
          std::any_of(options.trained_buffers.begin(), options.trained_buffers.end(),
                      [&, &name = name](const std::string& at) {
                        return Selector(at).covers_parameter(path, name);
                      });
      if (!wanted && !(all && role.is_state)) continue;
      role.is_state = true;
      role.trainable = true;
      role.is_recognised_buffer = false;
      role.trained_by_rule = wanted;
      role.reason = "parameters.train names it";
    }
  }

  // What the next stage reads of this one.
  void place_stage_outputs() {
    if (session_.stage.requests.empty()) return;
    for (const auto& [key, id] : session_.stage_outputs) {
      session_.builder.output(stage_name(key), id);
      session_.stage.outputs.push_back(stage_name(key));
    }
  }

  // The graph without inputs from earlier stages that nothing in it reads any more.
  Graph without_unread(Graph graph) const {
    const auto readers = readers_of(graph);
    std::erase_if(graph.inputs, [&](const NamedValue& input) {
      if (!input.name.starts_with(stage_name(""))) return false;
      const bool is_output = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                         [&](const auto& o) { return o.value == input.value; });
      return !is_output && readers[static_cast<std::size_t>(input.value.index)].empty();
    });
    Graph left = remove_dead(graph, session_.operators);
    for (const NamedValue& input : left.inputs) {  // under the name that the file has for it
      if (!input.name.starts_with(stage_name(""))) continue;
      const std::string key = input.name.substr(stage_name("").size());
      if (!left.find_value(key))
        left.values[static_cast<std::size_t>(input.value.index)].name = key;
    }
    return left;
  }

  /// A free dimension of 0, as a cache's length is, leaves nothing to feed.
  bool is_bound_to_nothing(const BoundInput& input) const {
    const auto& bind = session_.options.bind;
    return std::any_of(bind.begin(), bind.end(), [&](const auto& bound) {
      return bound.second == 0 &&
             std::find(input.dims.begin(), input.dims.end(), bound.first) != input.dims.end();
    });
  }

  void place_inputs() {
    for (const BoundInput& input : bindings_.inputs) {
      const std::string& name = input.info->name();
      Term term;
      term.bad = !input.is_bound;
      if (input.is_bound) {
        const auto most =
            file_.limits.tensor_bytes / static_cast<std::int64_t>(size_of(input.type.dtype));
        if (!checked_elements(input.type.shape, most)) {
          refuse(file_.path, name, "the input is too large", "", to_string(input.type));
        }
        if (is_bound_to_nothing(input)) {
          term = session_.constant(HostTensor(input.type));
        } else {
          term = session_.value(session_.builder.input(name, input.type));
          session_.settle(name, term);
        }
      }
      session_.record.shapes[name] = input.type.shape;
      scope_.names[name] = std::move(term);
    }
    const auto place = [&](const std::vector<std::pair<std::string, HostTensor>>& values) {
      for (const auto& [name, value] : values) {
        scope_.names[name] = session_.constant(value);
        session_.record.shapes[name] = value.shape();
      }
    };
    place(bindings_.values);
    place(session_.options.constants);
  }

  void place_initializers() {
    for (const onnx::TensorProto& tensor : graph_.initializer()) {
      const auto value = file_.initializers.find(tensor.name());
      if (value == file_.initializers.end()) {
        place_unsupported(tensor);
        continue;
      }
      const Role& role = roles_.at(tensor.name());
      session_.record.shapes[tensor.name()] = value->second.shape();
      if (!role.is_state) {
        scope_.names[tensor.name()] = session_.constant(value->second);
        continue;
      }
      if (const auto first = shared_.find(tensor.name()); first != shared_.end()) {
        scope_.names[tensor.name()] = scope_.names.at(first->second);
        continue;
      }
      if (tensor.name() == "__metadata__") {
        refuse(file_.path, tensor.name(), "safetensors files keep this name for themselves",
               "a parameter of another name", "", "rename the initializer");
      }
      State state;
      state.name = tensor.name();
      state.path = role.kind == StateKind::parameter ? path_of(tensor.name()) : "";
      state.kind = role.kind;
      state.trainable = role.trainable;
      state.reason = role.reason;
      state.start = value->second;
      if (role.is_packed) {
        state.held_by = HeldBy::model;
        check_scales(tensor.name(), state.start);
      } else if (stays_narrow(tensor.name(), state)) {
        place_narrow(std::move(state));
        continue;
      } else if (const DType dtype = session_.type_in_graph(state.start.dtype());
                 dtype != state.start.dtype()) {
        state.start = state.start.converted(dtype);
        session_.note(tensor.name(),
                      "the file has it in 16 bits: it is float32 here, as is all that is computed "
                      "with it, and has 16 bits again in exported files");
      }
      if (const auto table = tables_.find(tensor.name()); table != tables_.end()) {
        state.start = zeros_of(table->first, tables_);
        state.starts_at_zero = true;
        session_.record.shapes[tensor.name()] = state.start.shape();
      } else if (resized_.contains(tensor.name())) {
        state.start = zeros_of(tensor.name(), resized_);
        state.starts_at_zero = true;
        session_.record.shapes[tensor.name()] = state.start.shape();
      }
      Term& term = scope_.names[tensor.name()];
      term = session_.value(session_.builder.state(std::move(state)));
      session_.settle(tensor.name(), term);
    }
  }

  bool stays_narrow(const std::string& name, const State& state) const {
    return session_.options.keeps_16_bits && state.kind == StateKind::parameter &&
           session_.type_in_graph(state.start.dtype()) != state.start.dtype() &&
           state.start.shape().size() == 2 && !tables_.contains(name) && !resized_.contains(name);
  }

  void place_narrow(State state) {
    const std::string name = state.name;
    const Attributes attributes{
        {"kind", std::string(packed_format(*packed_kind_of(state.start.dtype())).name)},
        {"columns", state.start.shape().back()}};
    session_.builder.set_scope({state.path.substr(0, state.path.rfind(':')), Phase::forward, {}});
    const ValueId data = session_.builder.state(std::move(state));
    Term& term = scope_.names[name];
    term = session_.value(session_.builder.add_node("Unpack", {data}, attributes));
    session_.builder.set_scope({});
    session_.settle(name, term);
  }

  /// "q_proj:weight" also where quantizers call the bytes "q_proj.weight_Q4".
  std::string path_of(const std::string& name) const {
    if (!file_.packed.data.contains(name)) return parameter_path(name);
    const std::string float_name = without_quantizers_ending(name);
    const std::string path = parameter_path(float_name);
    const bool is_taken = file_.initializers.contains(float_name);
    return is_taken || path == float_name ? parameter_path(name) : path;
  }

  void check_scales(const std::string& name, const HostTensor& scales) const {
    if (finiteness_of(scales) == Finiteness::finite) return;
    for (std::int64_t i = 0; i < scales.type().elements(); ++i) {
      const double scale = scales.number(i);
      if (std::isfinite(scale)) continue;
      refuse(file_.path, name, "a scale of a packed weight is not finite", "finite numbers",
             fmt::format("{} at {}", scale, i), "quantize the model again");
    }
  }

  void place_unsupported(const onnx::TensorProto& tensor) {
    scope_.names[tensor.name()].bad = true;
    bool is_read = false;
    for (int n = 0; n < graph_.node_size() && !is_read; ++n) {
      if (!needed_[static_cast<std::size_t>(n)]) continue;
      const std::vector<std::string> reads = reads_of(graph_.node(n));
      is_read = std::find(reads.begin(), reads.end(), tensor.name()) != reads.end();
    }
    if (!is_read) return;
    session_.report("unsupported_type", "",
                    Diagnostic{.message = "element type of the initializer is not supported",
                               .path = tensor.name(),
                               .got = onnx_type_name(tensor.data_type())});
  }

  // States that no node reads go; parameters that reach an output only through integers do not
  // train.
  void settle_states(Graph& graph) {
    std::vector<bool> reaches(graph.values.size(), false);
    for (const NamedValue& output : graph.outputs)
      reaches[static_cast<std::size_t>(output.value.index)] = true;
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const Node& node = graph.nodes[n];
      const bool any = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
        return reaches[static_cast<std::size_t>(id.index)] && is_float(graph.type(id).dtype);
      });
      if (!any) continue;
      for (ValueId id : node.inputs) {
        if (id && is_float(graph.type(id).dtype))
          reaches[static_cast<std::size_t>(id.index)] = true;
      }
    }
    for (State& state : graph.states) {
      if (!state.trainable || reaches[static_cast<std::size_t>(state.initial.index)]) continue;
      state.trainable = false;
      state.reason = "reaches no output";
    }
  }

  void settle_randomness(ImportResult& result) const {
    result.randomness = random_uses(result.graph);
    for (RandomUse& use : result.randomness) {
      for (const OperatorRule& rule : session_.options.random_rules) {
        if (!Selector(rule.at).matches(use.path)) continue;
        use.is_on = rule.mode == "always" || (rule.mode == "known" && use.kind.empty());
        use.by_rule = rule.mode != "known";
      }
    }
    if (session_.options.training) return;
    result.graph = without_randomness(result.graph, session_.operators, result.randomness);
  }

  void summarize(ImportResult& result) {
    const onnx::ModelProto& model = *file_.model;
    ModelSummary& summary = result.summary;
    summary.ir_version = model.ir_version();
    const auto opset = file_.opsets.find("");
    summary.opset = opset == file_.opsets.end() ? 0 : opset->second;
    summary.producer = model.producer_name();
    if (!model.producer_version().empty()) summary.producer += " " + model.producer_version();
    for (const BoundInput& input : bindings_.inputs) {
      summary.inputs.push_back({input.info->name(), std::string(name_of(input.type.dtype)),
                                input.dims, input.type.shape, input.is_bound});
    }
    for (int i = 0; i < graph_.output_size(); ++i) {
      if (algorithm_ != nullptr && i >= algorithm_->main_outputs()) break;
      const onnx::ValueInfoProto& output = graph_.output(i);
      if (is_text(output)) continue;
      PortSummary port{output.name(), "", dims_of(output), {}, false};
      for (const auto& [name, type] : outputs_) {
        if (name != output.name()) continue;
        port.dtype = std::string(name_of(type.dtype));
        port.bound = type.shape;
        port.has_bound = true;
      }
      summary.outputs.push_back(std::move(port));
    }
    for (const onnx::TensorProto& tensor : graph_.initializer()) {
      const auto value = file_.initializers.find(tensor.name());
      if (value == file_.initializers.end()) continue;
      const DType dtype = value->second.dtype();
      const bool is_packed = file_.packed.data.contains(tensor.name());
      if (!is_float(dtype) && !is_float8(dtype) && !is_packed) continue;
      if (algorithm_ != nullptr && algorithm_->is_own(tensor.name())) continue;
      if (file_.packed.scales.contains(tensor.name())) continue;  // a part of the packed weight
      const Role& role = roles_.at(tensor.name());
      ParameterSummary parameter{tensor.name(),
                                 path_of(tensor.name()),
                                 table_type(tensor.name(), value->second.type()),
                                 role.kind,
                                 false,
                                 false,
                                 role.reason};
      if (const State* state = result.graph.find_state(tensor.name())) {
        parameter.in_graph = true;
        parameter.trainable = state->trainable;
        parameter.reason = state->reason;
      } else if (const auto tied = result.aliases.find(tensor.name());
                 tied != result.aliases.end()) {
        parameter.reason = fmt::format("the same tensor as '{}'", tied->second);
      } else if (role.is_state && session_.reports.empty()) {
        parameter.reason = "reaches no output";
      } else {
        parameter.trainable = role.trainable;
      }
      parameter.is_recognised_buffer = role.is_recognised_buffer;
      parameter.trained_by_rule = role.trained_by_rule;
      if (parameter.trainable) parameter.doubt = role.doubt;
      summary.parameters.push_back(std::move(parameter));
    }
    result.quantized = quantized_weights(file_);
    for (ParameterSummary& fixed : fixed_weights(file_))
      summary.parameters.push_back(std::move(fixed));
    for (const onnx::NodeProto& node : graph_.node()) {
      const std::string domain = domain_of(node.domain());
      ++summary.operators[domain.empty() ? node.op_type() : domain + "::" + node.op_type()];
    }
    summary.nodes = session_.file_nodes;
    for (const Report& report : put_together(session_.reports))
      summary.problems.push_back(report.problem);
    for (const auto& [path, text, more] : session_.notes) {
      const std::string others = more == 0 ? "" : fmt::format(" and {} more", more);
      summary.notes.push_back(path + others + ": " + text);
    }
  }

  TensorType table_type(const std::string& name, const TensorType& in_file) const {
    const auto first = shared_.find(name);
    const std::string& own = first == shared_.end() ? name : first->second;
    if (const auto resized = resized_.find(own); resized != resized_.end()) return resized->second;
    const auto table = tables_.find(own);
    return table == tables_.end() ? in_file : table->second;
  }

  const OnnxFile::Content& file_;
  const onnx::GraphProto& graph_;
  AlgorithmImport* const algorithm_;  // null: none, or not asked for
  Session session_;
  std::vector<bool> needed_;
  Roles roles_;
  std::unordered_map<std::string, std::string> shared_;  // initializers that are an earlier one
  GrownTables tables_;
  GrownTables resized_;  // parameters of other shapes, which anything may read
  Bindings bindings_;
  Scope scope_;
  std::vector<std::pair<std::string, TensorType>> outputs_;
};

void check_options(const ImportOptions& options) {
  if (options.batch_norm == "train" || options.batch_norm == "inference" ||
      options.batch_norm == "file")
    return;
  throw Error(ErrorKind::usage, Diagnostic{.message = "batch_norm",
                                           .expected = "train, inference or file",
                                           .got = options.batch_norm});
}

}  // namespace

ImportResult import_content(const OnnxFile::Content& file, const OperatorSet& operators,
                            const ImportOptions& options, AlgorithmImport* algorithm) {
  check_options(options);
  refuse_artifacts(file);
  BatchRecord old_batch;
  Import import(file, operators, options, algorithm);
  const std::int64_t fixed = import.bindings().file_batch, wanted = import.bindings().batch;
  if (fixed > 0 && wanted > 0 && fixed != wanted) {
    // First an import with the file's own batch: what its nodes see shows where constants hold it.
    ImportOptions own = options;
    own.batch = fixed;
    const StageValues nothing;  // earlier stages have computed for the wanted batch
    if (own.stage != nullptr) own.stage = &nothing;
    own.bind.erase(std::remove_if(own.bind.begin(), own.bind.end(),
                                  [](const auto& b) { return b.first == "batch"; }),
                   own.bind.end());
    Import first(file, operators, own, algorithm);
    first.lower();
    old_batch = std::move(first.session().record);
    old_batch.batch = fixed;
    old_batch.new_batch = wanted;
    import.session().old_batch = &old_batch;
  }
  import.lower();
  ImportResult result = import.finish();
  const auto& reports = import.session().reports;
  if (!reports.empty() && !options.collect_problems) {
    throw Error(ErrorKind::usage,
                in_few_lines(put_together(reports), result.summary, file.path.string()));
  }
  return result;
}

}  // namespace importer

ImportResult import_graph(const OnnxFile& file, const OperatorSet& operators,
                          const ImportOptions& options) {
  return importer::import_content(file.content(), operators, options);
}

}  // namespace tandem
