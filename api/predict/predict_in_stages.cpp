#include "api/predict/predict_in_stages.h"

#include <algorithm>
#include <chrono>

#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/text.h"
#include "engine/train/divergence/reported_ids.h"

namespace tandem::api {
namespace {

[[noreturn]] void refuse_in_stages(const char* option, std::string message, std::string expected,
                                   std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = option,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

bool is_number_text(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// Whether the file declares an entry for each sample, with an extent that data does not decide.
bool counts_samples(const ModelSummary& summary, const std::string& name) {
  const auto output = std::find_if(summary.outputs.begin(), summary.outputs.end(),
                                   [&](const PortSummary& port) { return port.name == name; });
  if (output == summary.outputs.end() || output->dims.empty() || output->dims[0] == "?")
    return false;
  const auto is_of_input = [&](const std::string& dim) {
    return std::any_of(summary.inputs.begin(), summary.inputs.end(), [&](const PortSummary& port) {
      return std::find(port.dims.begin(), port.dims.end(), dim) != port.dims.end();
    });
  };
  const bool is_batch =
      std::any_of(summary.inputs.begin(), summary.inputs.end(), [&](const PortSummary& port) {
        return !port.dims.empty() && port.dims[0] == output->dims[0];
      });
  return is_batch &&
         std::all_of(output->dims.begin() + 1, output->dims.end(), [&](const std::string& dim) {
           return is_number_text(dim) || is_of_input(dim);
         });
}

std::vector<std::string> staged_outputs(TrainedModel& trained, const StagedPredictions& what) {
  if (!what.outputs.empty()) return what.outputs;
  std::vector<std::string> names;
  for (const PortSummary& output : trained.summary().outputs) names.push_back(output.name);
  return names;
}

class StagedPredictor {
 public:
  StagedPredictor(TrainedModel& trained, SampleStream& stream, const StagedPredictions& what,
                  const PredictOptions& options, PredictionFile& file)
      : trained_(trained),
        stream_(stream),
        what_(what),
        options_(options),
        file_(file),
        names_(staged_outputs(trained, what)),
        inputs_(inputs_in_stages(trained)) {
    for (const std::string& name : names_) {
      const bool by_row =
          (what.has_labels && what.has_labels(name)) || counts_samples(trained.summary(), name);
      if (!by_row && without_rows_.empty()) without_rows_ = name;
    }
    if (without_rows_.empty()) return;
    PredictionFile::check_batches(what.to, without_rows_);
    if (!what.as_they_are) {
      refuse_in_stages("--as", "an output without an entry for each row is written as it is",
                       "values", without_rows_, "leave --as out, or name outputs with --output");
    }
    if (what.has_ids) {
      refuse_in_stages("--id", "batches are identified by the numbers of their rows", "rows",
                       without_rows_, "leave --id out, or name outputs with --output");
    }
    for (const std::string& name : names_) {
      if (name == "batch" || name == "rows")
        refuse_in_stages("--output", "batches have their own number and rows under this name",
                         "outputs of other names", name,
                         "rename it in the model, or name other outputs with --output");
    }
    file_.start_batches(names_);
  }

  std::vector<PredictedArray> run() {
    const auto start = std::chrono::steady_clock::now();
    check_stop(options_);
    while (const auto range = stream_.next(trained_.config().micro_batch_size())) {
      check_stop(options_);
      write(*range, predicted(*range));
      if (!options_.on_progress) continue;
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      options_.on_progress(stream_.rows(), stream_.part_read(),
                           static_cast<double>(stream_.rows()) / seconds.count());
    }
    if (without_rows_.empty()) {
      file_.add_ids(stream_.take_ids());
      if (arrays_.empty() && stream_.rows() > 0) {
        refuse_in_stages("--data", "no row is left to predict", "a row", "only bad ones", "");
      }
      file_.add_missing(stream_.rows() - written_);
    }
    check_order(trained_.engine());
    return std::move(arrays_);
  }

 private:
  std::vector<HostTensor> predicted(const SampleRange& range) {
    const BatchTensors batch = batch_of(*range.source, range.first, range.count, &inputs_);
    StagedGraph staged = trained_.parts().staged->graph_for(range.count, batch);
    keep_wanted(staged.graph);
    BatchTensors values = take_given_outputs(staged.graph, {&batch, &staged.fed});
    if (!staged.graph.outputs.empty()) compute(staged, batch, values);
    load();
    std::vector<HostTensor> in_order;
    for (const std::string& name : names_) in_order.push_back(values.at(name));
    return in_order;
  }

  void load() {
    if (is_loaded_) return;
    trained_.load();
    std::vector<Diagnostic> problems = trained_.not_finite();
    if (!problems.empty()) throw Error(ErrorKind::diverged, std::move(problems));
    is_loaded_ = true;
  }

  /// Adds the outputs of the graph.
  void compute(const StagedGraph& staged, const BatchTensors& batch, BatchTensors& values) {
    StagedPrograms::Entry& entry = programs_.get(staged.key, [&] {
      TrainingGraph forward;
      forward.graph = remove_dead(staged.graph, *trained_.parts().operators);
      check_fed_inputs(forward, trained_.config(), types_of({&batch, &staged.fed}));
      return bind_program(forward, with_single_slots(trained_.parts()), trained_.states(),
                          trained_.arenas(), {});
    });
    load();
    Program& program = *entry.bound.program;
    const std::uint64_t ticket = entry.ticket++;
    feed_inputs(program, {&batch, &staged.fed}, ticket);
    StepContext context;
    context.seed = trained_.config().seed;
    program.run(context, ticket);
    refuse_reported(program, program.errors());
    for (const NamedValue& output : staged.graph.outputs)
      values.emplace(output.name, output_of(entry.bound, output.name, ticket));
  }

  void keep_wanted(Graph& graph) const {
    std::vector<NamedValue> wanted;
    std::vector<std::string> known;
    for (const NamedValue& output : graph.outputs) known.push_back(output.name);
    for (const std::string& name : names_) {
      const NamedValue* output = graph.find_output(name);
      if (output == nullptr) {
        refuse_in_stages("--output", "the model has no value \"" + name + "\"",
                         "such as " + joined(known), "", did_you_mean(nearest_name(name, known)));
      }
      wanted.push_back(*output);
    }
    graph.outputs = std::move(wanted);
  }

  void write(const SampleRange& range, std::vector<HostTensor> values) {
    if (!without_rows_.empty()) return write_batch(range, std::move(values));
    for (std::size_t i = 0; i < values.size(); ++i) check_rows(names_[i], values[i], range.count);
    if (arrays_.empty()) start(values);
    file_.add_ids(stream_.take_ids());
    std::vector<HostTensor> arrays;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Shape sample(values[i].shape().begin() + 1, values[i].shape().end());
      if (sample != samples_[i]) {
        refuse_in_stages("--output", "'" + names_[i] + "' has another shape in another batch",
                         to_string(samples_[i]), to_string(sample),
                         "name other outputs, or a value before it");
      }
      predicted_[i].convert(values[i], arrays);
    }
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::int64_t row = range.rows[static_cast<std::size_t>(i)];
      file_.add_missing(row - written_);
      file_.add(arrays, i, 1);
      written_ = row + 1;
    }
  }

  void start(const std::vector<HostTensor>& values) {
    std::vector<TensorType> types;
    for (const HostTensor& value : values) {
      types.push_back(value.type());
      samples_.emplace_back(value.shape().begin() + 1, value.shape().end());
    }
    predicted_ = what_.values(names_, types);
    arrays_ = what_.arrays(predicted_, names_);
    file_.start(arrays_);
  }

  void write_batch(const SampleRange& range, std::vector<HostTensor> values) {
    if (arrays_.empty()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const DType dtype = given_out(values[i].dtype());
        arrays_.push_back({names_[i], {dtype, values[i].shape()}});
      }
    }
    for (HostTensor& value : values) value = value.converted(given_out(value.dtype()));
    file_.add_batch({batches_++, range.rows, std::move(values)});
  }

  static void check_rows(const std::string& name, const HostTensor& value, std::int64_t samples) {
    if (!value.shape().empty() && value.shape()[0] == samples) return;
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this value does not have one entry a sample",
                           .path = name,
                           .expected = std::to_string(samples) + " on axis 0, one a sample",
                           .got = to_string(value.type()),
                           .fix = "name other outputs with --output"});
  }

  TrainedModel& trained_;
  SampleStream& stream_;
  const StagedPredictions& what_;
  const PredictOptions& options_;
  PredictionFile& file_;
  const std::vector<std::string> names_, inputs_;
  std::string without_rows_;  // the first output that has no entry for each row
  StagedPrograms programs_;
  std::vector<PredictedValue> predicted_;
  std::vector<PredictedArray> arrays_;
  std::vector<Shape> samples_;  // by output
  bool is_loaded_ = false;
  std::int64_t written_ = 0, batches_ = 0;
};

}  // namespace

std::vector<std::string> inputs_in_stages(TrainedModel& trained) {
  std::vector<std::string> names;
  for (const NamedValue& input : trained.forward().inputs) names.push_back(input.name);
  return names;
}

std::vector<PredictedArray> predict_in_stages(TrainedModel& trained, SampleStream& stream,
                                              const StagedPredictions& what,
                                              const PredictOptions& options, PredictionFile& file) {
  return StagedPredictor(trained, stream, what, options, file).run();
}

}  // namespace tandem::api
