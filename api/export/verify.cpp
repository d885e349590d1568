// tandem::api::verify_export: compares an exported file with its run on the same samples.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/export/differences.h"
#include "api/export/export.h"
#include "api/export/onnxruntime_outputs.h"
#include "api/trained/trained_data.h"
#include "engine/data/random.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "engine/train/evaluation/prediction.h"
#include "importer/batch/fixed_batch.h"
#include "importer/file/onnx_weights.h"
#include "placement/report/json.h"
#include "tandem/trained.h"

namespace tandem::api {
namespace {

using VerifyJson = nlohmann::ordered_json;

constexpr std::uint64_t seed_of_inputs = 1;

/// Uses the host in float32, whatever the run's policy says, because only the file is to be
/// compared. Tables with split storage are read whole, as they are in the file. Neither needs a
/// teacher, whose own file may no longer exist.
void compute_plainly(TrainedRun& run) {
  run.config.policy.clear();
  run.config.device = "cpu";
  run.config.precision = {};
  run.config.distillation = {};
  std::erase_if(run.config.parameters.storage,
                [](const StorageRule& rule) { return !packs(rule); });
  run.placing = {};
}

/// Opens the file as a model of its own, imported like the run's.
TrainedRun opened_file(const TrainedRun& run, const std::string& file) {
  TrainedRun result;
  result.path = normal_path(file);
  result.config = run.config;
  result.config.model.file = result.path;
  result.config.parameters = {};  // the file already contains its rows and values
  result.config.loss = {};        // the file may lack the values that it reads
  return result;
}

/// Outputs with an entry for each sample, and the names of all others.
struct ComparedOutputs {
  std::vector<std::string> names, others;
  std::set<std::string> drawn;  // outputs that random numbers influence
};

/// Outputs that random numbers of the graph influence. The engine draws the same ones for the run
/// and for its file; another engine draws its own.
std::set<std::string> drawn_outputs(const Graph& graph) {
  std::vector<char> drawn(graph.values.size());
  for (const Node& node : graph.nodes) {
    const bool is_drawn =
        node.op->random || std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) {
          return value && drawn[static_cast<std::size_t>(value.index)] != 0;
        });
    for (const ValueId value : node.outputs) {
      if (is_drawn && value) drawn[static_cast<std::size_t>(value.index)] = 1;
    }
  }
  std::set<std::string> names;
  for (const NamedValue& output : graph.outputs) {
    if (drawn[static_cast<std::size_t>(output.value.index)] != 0) names.insert(output.name);
  }
  return names;
}

ComparedOutputs compared_outputs(TrainedModel& exported) {
  ComparedOutputs result;
  result.drawn = drawn_outputs(exported.forward());
  const std::int64_t batch = exported.config().micro_batch_size();
  for (const NamedValue& output : exported.forward().outputs) {
    const Shape& shape = exported.forward().type(output.value).shape;
    const bool has_batch = !shape.empty() && shape[0] == batch;
    (has_batch ? result.names : result.others).push_back(output.name);
  }
  if (!result.names.empty()) return result;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "no output of the file has an entry for each sample",
                         .file = exported.config().model.file,
                         .got = joined(result.others),
                         .fix = "name values that have one: export --outputs NAME"});
}

/// Samples for the comparison, and where they come from, as text for the report.
struct VerifiedSamples {
  std::unique_ptr<SampleStream> stream;  // null: made up
  SampleRange range;
  std::string source;
};

VerifiedSamples first_samples(TrainedModel& own, const std::vector<std::string>& inputs,
                              const VerifyOptions& options, std::int64_t count) {
  TrainedOptions how = options;
  VerifiedSamples result;
  result.source = "--data";
  if (how.data.empty() && own.config().data) {
    const DataConfig& data = *own.config().data;
    const bool has_files = !data.eval.files.empty(), has_part = data.eval_fraction > 0;
    result.source = has_files || has_part ? "the run's held-out data" : "the run's training data";
    if (has_files || !has_part) how.data = files_of(has_files ? data.eval : data.train);
    if (has_part && !has_files) result.stream = stream_samples(open_held_out(own, how));
  }
  if (!result.stream) result.stream = open_samples(own, inputs, how);
  std::optional<SampleRange> range = result.stream->next(count);
  if (!range) {
    throw Error(ErrorKind::data,
                Diagnostic{.message = "there are no samples", .file = result.source});
  }
  result.range = std::move(*range);
  return result;
}

/// Floats like those of a normal distribution; integers of 0 and 1, which are rows of every table.
HostTensor made_up_input(const TensorType& type, std::uint64_t number) {
  HostTensor values(TensorType{DType::float64, type.shape});
  RandomStream random(mix(seed_of_inputs, number));
  for (double& value : values.as<double>())
    value = is_float(type.dtype) ? random.between(-1.7, 1.7) : static_cast<double>(random.below(2));
  return values.converted(type.dtype);
}

VerifiedSamples made_up_samples(TrainedModel& own, std::int64_t count, const std::string& why) {
  std::vector<std::pair<std::string, HostTensor>> arrays;
  for (const NamedValue& input : own.forward().inputs) {
    TensorType type = own.forward().type(input.value);
    if (!type.shape.empty()) type.shape[0] = count;
    arrays.emplace_back(input.name, made_up_input(type, arrays.size()));
  }
  VerifiedSamples result;
  result.source = "generated from a seed: " + why;
  result.range.source = make_array_source(arrays);
  result.range.count = count;
  for (std::int64_t row = 0; row < count; ++row) result.range.rows.push_back(row);
  return result;
}

/// Data given by the user must exist; a run's own data may be gone.
VerifiedSamples samples_for(TrainedModel& own, const std::vector<std::string>& inputs,
                            const VerifyOptions& options, std::int64_t count) {
  if (!options.data.empty()) return first_samples(own, inputs, options, count);
  if (!own.config().data) return made_up_samples(own, count, "the run has no [data]");
  try {
    return first_samples(own, inputs, options, count);
  } catch (const Error& error) {
    return made_up_samples(own, count, to_string(error.diagnostics().front()));
  }
}

std::vector<HostTensor> outputs_of(TrainedModel& model, Prediction& prediction,
                                   const SampleRange& range) {
  prediction.prepare(*range.source, range.count);
  model.load();
  std::vector<HostTensor> values;
  for (const HostTensor& value : prediction.run(range)) values.push_back(value.clone());
  return values;
}

/// The inputs that the file is fed, as arrays; with those that are bound to nothing, as caches are.
std::vector<NamedTensor> fed_arrays(TrainedModel& model, const Prediction& prediction,
                                    const SampleRange& range) {
  std::vector<NamedTensor> arrays;
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < range.count; ++i) samples.push_back(range.first + i);
  for (const std::string& name : prediction.inputs()) {
    const int field = range.source->find_field(name);
    TensorType type = range.source->fields()[static_cast<std::size_t>(field)].sample;
    type.shape.insert(type.shape.begin(), range.count);
    HostTensor values(type);
    range.source->fill(field, samples, nullptr, values.data());
    arrays.push_back({name, std::move(values)});
  }
  for (const PortSummary& input : model.placed().model().micro_batch().summary.inputs) {
    if (element_count(input.bound) > 0 || !input.has_bound) continue;
    Shape shape = input.bound;
    if (shape[0] != 0) shape[0] = range.count;
    arrays.push_back({input.name, HostTensor(TensorType{*dtype_from_name(input.dtype), shape})});
  }
  return arrays;
}

Bound bound_of(const VerifyOptions& options, const OnnxFile& file) {
  if (options.absolute > 0 || options.relative > 0) return {options.absolute, options.relative, 0};
  for (const NamedTensor& weight : onnx_weights(file).tensors) {
    if (size_of(weight.tensor.dtype()) == 2) return {1e-2, 1e-2, 0};
  }
  return {1e-5, 1e-4, 1e-5};
}

/// Whether products with INT8 weights may explain a difference from onnxruntime.
bool has_signed_weights(TrainedModel& model) {
  const std::string& types = model.placed().model().micro_batch().quantized.types;
  return (", " + types + ",").find(", INT8,") != std::string::npos;
}

VerifyJson number_or_text(double value) {
  return std::isfinite(value) ? VerifyJson(value) : VerifyJson("inf");
}

VerifyReport report_of(const std::vector<Difference>& differences, const Bound& bound,
                       const std::string& head, VerifyJson json) {
  VerifyReport report;
  report.text = head;
  for (const Difference& d : differences) {
    report.text += to_text(d) + "\n";
    report.agrees = report.agrees && d.agrees;
    json["differences"].push_back({{"by", d.by},
                                   {"output", d.output},
                                   {"absolute", number_or_text(d.absolute)},
                                   {"relative", number_or_text(d.relative)},
                                   {"agrees", d.agrees}});
  }
  report.text +=
      fmt::format("{} {:g} + {:g} |x|", report.agrees ? "agrees within" : "DIFFERS by more than",
                  bound.absolute, bound.relative);
  if (bound.of_largest > 0) report.text += fmt::format(" + {:g} max |x|", bound.of_largest);
  json["bound"] = {
      {"absolute", bound.absolute}, {"relative", bound.relative}, {"of_largest", bound.of_largest}};
  json["agrees"] = report.agrees;
  report.json = json.dump(2, ' ', false, VerifyJson::error_handler_t::replace);
  return report;
}

}  // namespace

VerifyReport v1::verify_export(const std::string& run, const std::string& exported_file,
                               const VerifyOptions& options) {
  if (!exported_file.ends_with(".onnx")) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "only an exported model can be run",
                                             .file = exported_file,
                                             .expected = "a name that ends in .onnx",
                                             .fix = "leave --verify out"});
  }
  if (options.samples < 1 || options.samples > 1 << 20) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "out of range",
                                             .file = "--verify-samples",
                                             .expected = "1 to 1048576",
                                             .got = std::to_string(options.samples)});
  }
  TrainedRun opened = open_trained(run, options);
  const bool is_split = std::any_of(
      opened.config.parameters.storage.begin(), opened.config.parameters.storage.end(),
      [](const StorageRule& rule) { return rule.kind == tandem::StorageKind::split_bfloat16; });
  compute_plainly(opened);
  const std::int64_t fixed = fixed_batch(OnnxFile::open(exported_file));
  opened.config.batch_size = fixed > 0 ? fixed : options.samples;
  opened.config.micro_batch = 0;
  TrainedModel exported(opened_file(opened, exported_file), {});
  const ComparedOutputs outputs = compared_outputs(exported);
  TrainedModel own(std::move(opened), outputs.names);
  Prediction of_run(own.config(), own.parts(), outputs.names, own.states(), own.arenas());
  Prediction of_file(exported.config(), exported.parts(), outputs.names, exported.states(),
                     exported.arenas());
  VerifiedSamples samples = samples_for(own, of_run.inputs(), options, own.config().batch_size);
  const Bound bound = bound_of(options, exported.file());
  const std::vector<HostTensor> expected = outputs_of(own, of_run, samples.range);
  const std::vector<HostTensor> got = outputs_of(exported, of_file, samples.range);

  std::vector<Difference> differences;
  std::vector<std::string> for_others;  // outputs that another engine can be asked for
  for (std::size_t i = 0; i < outputs.names.size(); ++i) {
    differences.push_back(difference_of("engine", outputs.names[i], got[i], expected[i], bound));
    if (!outputs.drawn.contains(outputs.names[i])) for_others.push_back(outputs.names[i]);
  }
  std::string head = fmt::format("verify      {} against {}\nsamples     {}, {}\n", exported_file,
                                 own.run().path, samples.range.count, samples.source);
  if (is_split)
    head +=
        "storage     tables of split_bfloat16 are read in float32, as the file holds them; the "
        "run's own lookups round them to bfloat16\n";
  std::vector<std::string> warnings = own.run().warnings;
  VerifyJson json{{"file", exported_file}};
  own.run().describe(json);
  json["samples"] = samples.range.count;
  json["source"] = samples.source;
  json["not_compared"] = outputs.others;
  json["differences"] = VerifyJson::array();
  if (!outputs.others.empty())
    head += "not compared, without an entry for each sample: " + joined(outputs.others) + "\n";
  json["drawn"] = outputs.drawn;
  if (!options.python.empty()) {
    if (!outputs.drawn.empty()) {
      head += "onnxruntime not asked for " + joined(outputs.drawn) +
              ": the graph draws random numbers for it, and other engines draw others\n";
    }
    OnnxruntimeOutputs others;
    if (for_others.empty())
      others.why_not = "every output is drawn";
    else
      others = onnxruntime_outputs(options.python, normal_path(exported_file),
                                   fed_arrays(exported, of_file, samples.range), for_others);
    for (std::size_t i = 0, k = 0; k < others.values.size(); ++i) {
      if (outputs.names[i] != for_others[k]) continue;
      differences.push_back(
          difference_of("onnxruntime", for_others[k], others.values[k], expected[i], bound));
      ++k;
    }
    const bool others_differ = std::any_of(
        differences.begin(), differences.end(),
        [](const Difference& d) { return d.by == std::string_view("onnxruntime") && !d.agrees; });
    if (others_differ && has_signed_weights(own))
      head +=
          "INT8 weights: on processors without VNNI onnxruntime cuts sums of UINT8 times INT8 off "
          "at "
          "16 bits, unless the file was quantized with reduce_range; here they are exact\n";
    if (!others.why_not.empty()) head += "onnxruntime not compared: " + others.why_not + "\n";
    json["onnxruntime"] = others.why_not.empty() ? "compared" : others.why_not;
  }
  VerifyReport report = report_of(differences, bound, head, std::move(json));
  report.warnings = std::move(warnings);
  return report;
}

}  // namespace tandem::api
