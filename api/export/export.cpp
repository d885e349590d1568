// Exports trained weights of a run as ONNX, safetensors or npz.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "api/export/adapter_form.h"
#include "api/export/export.h"
#include "api/export/frozen_weights.h"
#include "api/export/module_names.h"
#include "api/export/onnx_adapter.h"
#include "api/export/onnx_adapter_file.h"
#include "api/export/peft.h"
#include "api/model/model.h"
#include "api/run_files.h"
#include "api/table_rows.h"
#include "api/train/run_fingerprint.h"
#include "api/trained/class_words.h"
#include "api/trained/files_in_use.h"
#include "api/trained/recorded_fields.h"
#include "api/trained/trained_run.h"
#include "api/trained/vocabularies.h"
#include "engine/config/resume/moved_paths.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/formats/new_file.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/text.h"
#include "engine/train/averages/weights_in_use.h"
#include "importer/export_graph.h"
#include "placement/quantities.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

constexpr std::string_view functions_key = "functions.";  // followed by the field's name

std::string written(const std::filesystem::path& path) {
  return fmt::format("wrote {} ({})", path.string(),
                     bytes_text(static_cast<double>(file_size(path.string()))));
}

/// Lets `write` make a temporary file, which replaces `to` when it is complete.
std::string write_whole(const std::string& to,
                        const std::function<void(const std::string& made)>& write) {
  NewFile place(to, to);
  const std::string made = place.make();
  write(made);
  place.finish(made);
  return written(to);
}

[[noreturn]] void refuse_kind(const std::string& to) {
  Diagnostic d;
  d.message = "export does not know this kind of file";
  d.file = to;
  d.expected = "a name that ends in .onnx, .safetensors or .npz";
  for (const char* ending : {".pt", ".pth", ".bin", ".ckpt"}) {
    if (to.ends_with(ending)) d.fix = "PyTorch reads .safetensors: safetensors.torch.load_file";
  }
  throw Error(ErrorKind::usage, std::move(d));
}

[[noreturn]] void refuse_names(const std::string& to, std::string message, std::string name,
                               std::string fix) {
  throw Error(
      ErrorKind::usage,
      {.message = std::move(message), .file = to, .path = std::move(name), .fix = std::move(fix)});
}

std::string exported_name(const std::string& name, const ExportNames& names) {
  const bool has_prefix = name.size() > names.strip.size() && name.starts_with(names.strip);
  return names.add + (has_prefix ? name.substr(names.strip.size()) : name);
}

/// Refuses names that would make two tensors equal, since one of them would be lost.
void rename_tensors(CheckpointContent& content, const ExportNames& names, const std::string& to) {
  if (names.strip.empty() && names.add.empty()) return;
  if (to.ends_with(".onnx"))
    refuse_names(to, "the names in an .onnx file are the model's own", "",
                 "leave --strip and --add out, or write .safetensors or .npz");
  const auto has_prefix = [&](const NamedTensor& tensor) {
    return tensor.name.size() > names.strip.size() && tensor.name.starts_with(names.strip);
  };
  if (!names.strip.empty() && !content.model.empty() &&
      std::none_of(content.model.begin(), content.model.end(), has_prefix))
    refuse_names(to, "no tensor's name begins with what --strip takes away", names.strip,
                 "leave --strip out, or give the beginning of names like `" +
                     content.model.front().name + "`");
  std::set<std::string> taken;
  for (NamedTensor& tensor : content.model) {
    const std::string name = exported_name(tensor.name, names);
    if (!taken.insert(name).second)
      refuse_names(to, "two tensors would get this name", name, "another --strip");
    tensor.name = name;
  }
  std::map<std::string, std::string> aliases;
  for (const auto& [other, name] : content.aliases)
    aliases[exported_name(other, names)] = exported_name(name, names);
  content.aliases = std::move(aliases);
}

bool is_known_kind(const std::string& to) {
  return to.ends_with(".onnx") || to.ends_with(".safetensors") || to.ends_with(".npz");
}

/// Paths of the two files of PEFT.
struct PeftPlaces {
  std::string tensors, config;
};
PeftPlaces peft_places(const std::string& to) {
  namespace fs = std::filesystem;
  constexpr const char* config_name = "adapter_config.json";
  if (to.ends_with(".safetensors"))
    return {to, (fs::path(to).parent_path() / config_name).string()};
  return {(fs::path(to) / "adapter_model.safetensors").string(),
          (fs::path(to) / config_name).string()};
}

/// The prefix of the names of vocabularies and the tokenizer: "MODEL." next to a file; in the
/// folder of an adapter they have their own names, as their readers expect.
std::string copies_stem(const std::string& to, bool as_peft) {
  namespace fs = std::filesystem;
  if (as_peft && !to.ends_with(".safetensors")) return (fs::path(to) / "").string();
  return fs::path(to).replace_extension("").string() + ".";
}

std::string write_peft(const PeftAdapter& adapter, const std::string& to) {
  const PeftPlaces places = peft_places(to);
  std::string text = write_whole(places.tensors, [&](const std::string& made) {
    write_safetensors(made, adapter.tensors, {{"format", "pt"}});
  });
  text += "\n" + write_whole(places.config,
                             [&](const std::string& made) { write_file(made, adapter.config); });
  return text;
}

std::string export_onnx(const Engine& engine, const OnnxFile& file, const RunConfig& config,
                        const std::vector<NamedTensor>& weights, const std::string& to,
                        const ExportedModel& model, const ExportForm& form) {
  std::vector<std::pair<std::string, HostTensor>> values;
  for (const NamedTensor& weight : weights) values.emplace_back(weight.name, weight.tensor);
  ExportOptions options;
  options.metadata = model.metadata;
  options.adapters = model.adapters;
  options.import.resized = model.resized;
  options.keep = form.outputs;
  options.fold_batch_norm = form.fold_batch_norm;
  options.fp16 = form.fp16;
  options.opset = form.opset;
  options.all_states = true;
  options.import.bind = bound_dimensions(config);
  add_model_rules(config, options.import);
  options.import.evaluate = engine.evaluate;
  options.import.rows = rows_rules(config, [&](const ShapeRule& rule) {
    return trained_vocabulary_rows(config, model.run_dir, weights, rule);
  });
  const ExportResult result = export_graph(file, engine.operators, values, to, options);
  std::string text = joined(result.files, "\n", written);
  if (!result.note.empty()) text += "\n" + result.note;
  return text;
}

/// Adds weights that no checkpoint holds, and adapters in this form; those of weights that are
/// packed in the model file are never merged.
void complete_weights(FoundCheckpoint& found, ConfiguredModel& model, AdapterForm form,
                      bool as_onnx, ExportedModel& exported) {
  add_frozen_weights(found.content, model, found.path);
  exported.resized = model.resized();
  std::vector<AdaptedWeight> merged, separate;
  for (const AdaptedWeight& weight : model.adapted()) {
    const bool has_values = !weight.is_packed || model.stored().packed().contains(weight.name);
    const bool merges = form == AdapterForm::merged && has_values;
    (merges ? merged : separate).push_back(weight);
  }
  merge_adapters(found.content, merged);
  if (as_onnx)
    exported.adapters = take_adapters(found.content, separate, form == AdapterForm::inputs);
}

/// Names tensors by the modules that read them where an exporter made their names up, if the model
/// file is there.
std::string name_tensors(const Engine& engine, const RunConfig& config, FoundCheckpoint& found,
                         std::optional<ConfiguredModel>& model) {
  if (!has_made_up_names(found.content)) return "";
  try {
    if (!model) {
      model.emplace(engine, config, open_model_file(config),
                    ConfiguredModelOptions{.run_dir = found.run_dir});
    }
    return name_by_modules(found.content, model->micro_batch().graph);
  } catch (const Error& error) {
    return "warning: names that the exporter made up stay, since the model that says what reads "
           "them cannot be read: " +
           to_string(error.diagnostics().at(0)) + "\n";
  }
}

}  // namespace

std::string export_weights(const Engine& engine, const OnnxFile* file, const RunConfig& config,
                           const CheckpointContent& content, const std::string& to,
                           const ExportedModel& model, const ExportForm& form) {
  const std::vector<NamedTensor>& weights = content.model;
  if (to.ends_with(".onnx")) return export_onnx(engine, *file, config, weights, to, model, form);
  if (to.ends_with(".safetensors")) {
    return write_whole(to, [&](const std::string& made) {
      write_safetensors(made, weights, weights_metadata(content.aliases));
    });
  }
  if (to.ends_with(".npz")) {
    return write_whole(to, [&](const std::string& made) { write_npz(made, weights); });
  }
  refuse_kind(to);
}

std::map<std::string, std::string> functions_metadata(const CheckpointContent& content) {
  std::map<std::string, std::string> metadata;
  for (const auto& [field, functions] : content.position.functions)
    metadata[std::string(functions_key) + field] = functions;
  return metadata;
}

std::map<std::string, std::string> exported_functions(
    const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> functions;
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(functions_key)) functions[key.substr(functions_key.size())] = text;
  }
  return functions;
}

std::string v1::export_run(const std::string& run_or_checkpoint, const std::string& to,
                           const ExportSettings& settings) {
  const AdapterForm form = adapter_form(settings, to);
  const bool as_peft = form == AdapterForm::peft, as_onnx = to.ends_with(".onnx"),
             as_adapter = form == AdapterForm::onnx_adapter;
  if (!as_peft && !as_adapter && !is_known_kind(to)) refuse_kind(to);
  if (settings.form.changes() && !to.ends_with(".onnx"))
    refuse_names(to, "only the graph of an .onnx file can be changed", "",
                 "write .onnx, or leave --outputs, --fold-batch-norm, --fp16 and --opset out");
  const std::string which = which_checkpoint(run_or_checkpoint, settings.checkpoint);
  FoundCheckpoint found = find_checkpoint(run_or_checkpoint, which);
  const std::string resolved = found.run_dir + "/train.resolved.toml";
  RunConfig config = read_run_config(resolved, settings.overrides);
  const RunConfig whole = config;  // with the teacher, whose files are in use
  forget_teacher(config.distillation, config.loss);
  const Weights chosen = chosen_weights(settings.weights, config);
  use_weights(found.content, chosen, found.path);
  const Engine engine(config.threads);
  ExportedModel exported;
  exported.run_dir = found.run_dir;
  exported.metadata = functions_metadata(found.content);
  exported.metadata.merge(vocabulary_hashes(found.run_dir, found.content.position.vocabularies));
  exported.metadata.merge(words_metadata(config, found.run_dir));
  exported.metadata.merge(fields_metadata(config, settings.form.outputs));
  VocabularyCopies vocabularies(found.run_dir, copies_stem(to, as_peft));
  if (const std::string moved = moved_paths_of(resolved).text(); !moved.empty())
    found.warnings.push_back(moved);
  const ParametersConfig& parameters = config.parameters;
  const bool is_tuned = !parameters.lora.empty() || !parameters.head.empty() ||
                        std::any_of(parameters.storage.begin(), parameters.storage.end(), packs);
  if (form == AdapterForm::inputs && config.parameters.lora.empty())
    refuse_names("--lora inputs", "the run has no adapters", "", "leave --lora inputs out");
  std::optional<OnnxFile> file;  // other formats contain only the trained weights
  if (as_onnx || as_peft || as_adapter || is_tuned) file = open_model_file(config);
  if (as_onnx) {
    const UsedCheckpoint used{found.content.position, found.path, settings.accept_changes};
    for (std::string& line : compare_model(used, config, *file))
      found.warnings.push_back(std::move(line));
  }
  // Large weights are stored next to a model.
  std::vector<std::string> files{to, link_target(to) + ".data"};
  if (as_peft) files = {peft_places(to).tensors, peft_places(to).config};
  files.insert(files.end(), vocabularies.paths().begin(), vocabularies.paths().end());
  refuse_files_in_use(files, whole, found.run_dir);
  std::string text =
      fmt::format("checkpoint  {} ({}{})\n", found.path, which, weights_text(chosen));
  std::optional<ConfiguredModel> model;
  if (is_tuned || as_peft || as_adapter)
    model.emplace(engine, config, *file, ConfiguredModelOptions{.run_dir = found.run_dir});
  PeftAdapter adapter;
  if (as_peft) {
    adapter = peft_adapter(found.content, *model, found.path, settings.names);
    found.warnings.insert(found.warnings.end(), adapter.warnings.begin(), adapter.warnings.end());
    if (!to.ends_with(".safetensors")) make_directories(to);
  }
  OnnxAdapter fed;
  if (as_adapter) {
    fed = onnx_adapter(found.content, *model);
    found.warnings.insert(found.warnings.end(), fed.warnings.begin(), fed.warnings.end());
  }
  vocabularies.make();  // they must exist before the weights that need them
  if (as_peft) {
    text += write_peft(adapter, to);
  } else if (as_adapter) {
    text += write_whole(
        to, [&](const std::string& made) { write_file(made, onnx_adapter_bytes(fed.tensors)); });
  } else {
    if (is_tuned) complete_weights(found, *model, form, as_onnx, exported);
    if (to.ends_with(".safetensors")) text += name_tensors(engine, config, found, model);
    rename_tensors(found.content, settings.names, to);
    text += export_weights(engine, file ? &*file : nullptr, config, found.content, to, exported,
                           settings.form);
  }
  vocabularies.finish();
  for (const std::string& path : vocabularies.paths()) text += "\n" + written(path);
  for (const std::string& warning : found.warnings) text += "\nwarning: " + warning;
  return text;
}

}  // namespace tandem::api
