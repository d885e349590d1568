#include "engine/training/evaluation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "engine/graph/error.h"
#include "engine/training/divergence/reported_ids.h"
#include "engine/training/metrics.h"
#include "engine/training/weight_sums.h"

namespace tandem {
namespace {

const LossTerm* term_for(const RunConfig& config, const MetricKind& metric) {
  for (const LossTerm& term : config.loss.terms) {
    if (metric.fits(*term.kind)) return &term;
  }
  return nullptr;
}

/// A configured metric and the loss term whose value and labels it takes.
struct MetricOfTerm {
  const MetricKind* kind;
  const LossTerm* term;
  std::unique_ptr<Metric> metric;
};

std::vector<MetricOfTerm> metrics_of(const RunConfig& config) {
  std::vector<MetricOfTerm> metrics;
  for (const std::string& name : config.eval.metrics) {
    const MetricKind& kind = metric_kind(name);
    const bool again = std::any_of(metrics.begin(), metrics.end(),
                                   [&](const MetricOfTerm& m) { return m.kind == &kind; });
    if (kind.make != nullptr && !again)
      metrics.push_back({&kind, term_for(config, kind), kind.make()});
  }
  return metrics;
}

/// Why labels of a field have no such metric; "" where they have. Reads as many as that takes.
std::string undefined_reason(const Metric& metric, const DataSource& source,
                             const std::string& field) {
  constexpr std::int64_t piece = 4096;
  LabelSummary labels;
  std::string reason;
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < source.samples(); first += piece) {
    samples.resize(static_cast<std::size_t>(std::min(piece, source.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    const auto count = static_cast<std::int64_t>(samples.size());
    HostTensor values(field_types(source, count).at(field));
    source.fill(source.find_field(field), samples, nullptr, values.data());
    labels.add(values);
    reason = metric.undefined(labels);
    if (reason.empty()) break;
  }
  return reason;
}

/// Data that has no such metric is an Error{data}.
void check_labels(const std::vector<MetricOfTerm>& metrics, const DataSource& source) {
  std::vector<Diagnostic> problems;
  for (const MetricOfTerm& m : metrics) {
    if (source.find_field(m.term->labels) < 0) continue;
    const std::string reason = undefined_reason(*m.metric, source, m.term->labels);
    if (reason.empty()) continue;
    Diagnostic d;
    d.path = "eval";
    const std::string name(m.kind->name);
    d.message = "eval.metrics: the held-out data has no " + name;
    d.expected = m.kind->labels;
    d.got = reason + " (field " + m.term->labels + ")";
    d.fix = "evaluate on other data, or leave \"" + name + "\" out";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

HostTensor view(const void* data, const TensorType& type) {
  return HostTensor(type, const_cast<void*>(data), nullptr);
}

}  // namespace

FieldTypes field_types(const DataSource& source, std::int64_t batch) {
  FieldTypes types;
  for (const DataField& field : source.fields()) {
    TensorType type{field.sample.dtype, {batch}};
    type.shape.insert(type.shape.end(), field.sample.shape.begin(), field.sample.shape.end());
    types[field.name] = std::move(type);
  }
  return types;
}

void check_metrics(const RunConfig& config) {
  std::vector<Diagnostic> problems;
  for (const std::string& metric : config.eval.metrics) {
    const MetricKind& kind = metric_kind(metric);
    if (kind.make == nullptr || term_for(config, kind) != nullptr) continue;
    Diagnostic d;
    d.file = config.file;
    d.message = "eval.metrics: \"" + metric + "\" needs a loss term that names logits and labels";
    d.expected = "a term of kind " + losses_with(kind.scores);
    d.got = config.loss.terms.empty() ? "no [loss] terms" : "none";
    d.fix = "give the loss in [loss] terms";
    problems.push_back(std::move(d));
  }
  if (!config.eval.best.empty() && metric_kind(config.eval.best).better == Better::neither) {
    Diagnostic d;
    d.file = config.file;
    d.message = "eval.best: \"" + config.eval.best + "\" is best near 1, not at an end";
    d.expected = "a metric that is better the larger or the smaller it is";
    d.got = config.eval.best;
    d.fix = "choose another one, such as log_loss";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

struct Evaluation::Impl {
  const RunConfig& config;
  std::shared_ptr<const DataSource> source;
  std::vector<std::string> names;
  std::vector<int> fields;
  std::map<std::int64_t, BoundProgram> programs;  // by micro-batch size
  std::map<std::string, double> denominators;     // by term, over all samples

  HostTensor fed(const BoundProgram& bound, const std::string& field, std::uint64_t ticket) const {
    const Graph& graph = bound.program->lowered().graph;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name == field) {
        return view(bound.program->input_slot(static_cast<int>(i), ticket),
                    graph.type(graph.inputs[i].value));
      }
    }
    return {};
  }
  HostTensor made(const BoundProgram& bound, const std::string& name, std::uint64_t ticket) const {
    const int index = bound.output(name);
    const Graph& graph = bound.program->lowered().graph;
    return view(bound.program->output(index, ticket), graph.type(graph.outputs[index].value));
  }
  void sum_denominators();
};

Evaluation::Evaluation(const RunConfig& config, const RunParts& parts,
                       std::shared_ptr<const DataSource> source, StateStore& states,
                       std::shared_ptr<Arenas> arenas)
    : impl_(new Impl{config, std::move(source), {}, {}, {}, {}}) {
  check_metrics(config);
  check_labels(metrics_of(config), *impl_->source);
  const std::int64_t samples = impl_->source->samples(), micro_batch = config.micro_batch_size();
  for (const DataField& field : impl_->source->fields()) impl_->names.push_back(field.name);
  for (const std::int64_t size : {std::min(micro_batch, samples), samples % micro_batch}) {
    if (size == 0 || impl_->programs.count(size) > 0) continue;
    TrainingRequest request;
    request.config = &config;
    request.fields = field_types(*impl_->source, size);
    request.algorithm = parts.algorithm_for(size, false);
    // A loss inside the model has its own reduction: whole micro-batches, weighted by their
    // samples.
    request.samples = {size, config.loss.terms.empty() ? size : samples};
    TrainingGraph evaluation;
    evaluation.graph =
        build_evaluation_graph(*parts.operators, parts.forward(size, false), request);
    for (const LossTerm& term : config.loss.terms) {
      evaluation.terms.push_back(term.name);
      const std::string input = "loss." + term.name + ".denominator";
      if (evaluation.graph.find_input(input) != nullptr)
        evaluation.denominators.push_back({term.name, input});
    }
    check_fed_inputs(evaluation, config, request.fields);
    impl_->programs.emplace(size, bind_program(evaluation, parts, states, arenas, impl_->names));
  }
  impl_->fields = fed_fields(impl_->programs.begin()->second);
  impl_->sum_denominators();
}

Evaluation::~Evaluation() = default;
std::int64_t Evaluation::samples() const { return impl_->source->samples(); }

void Evaluation::Impl::sum_denominators() {
  for (const auto& [size, bound] : programs) {
    for (const auto& [input, name] : bound.denominators) denominators[name] = 0;
  }
  for (auto& [name, sum] : denominators) {
    const LossTerm& term =
        *std::find_if(config.loss.terms.begin(), config.loss.terms.end(),
                      [&, wanted = name](const LossTerm& t) { return t.name == wanted; });
    std::vector<std::int64_t> samples(static_cast<std::size_t>(source->samples()));
    std::iota(samples.begin(), samples.end(), 0);
    sum = weight_sum(term, *source, samples);
  }
}

std::vector<std::pair<std::string, double>> Evaluation::run(
    const std::function<void(std::int64_t samples)>& after_micro_batch) {
  Impl& my = *impl_;
  const RunConfig& config = my.config;
  LoaderOptions options;
  options.fields = my.fields;
  options.micro_batch_size = options.batch_size = std::min(config.micro_batch_size(), samples());
  options.shuffle.kind = ShuffleConfig::Kind::none;
  options.augment = false;
  options.epochs = 1;
  options.threads = config.data ? config.data->workers : 1;
  Loader loader(my.source, options, [&](int field, const MicroBatch& micro_batch) -> void* {
    BoundProgram& bound = my.programs.at(micro_batch.count);
    return bound.program->input_slot(bound.data_inputs[my.fields[field]], micro_batch.ticket);
  });

  double loss = 0;
  std::int64_t done = 0;
  std::map<std::string, double> terms;
  const std::vector<MetricOfTerm> metrics = metrics_of(config);
  while (const std::optional<MicroBatch> micro_batch = loader.next()) {
    BoundProgram& bound = my.programs.at(micro_batch->count);
    for (const auto& [input, name] : bound.denominators) {
      *static_cast<float*>(bound.program->input_slot(input, micro_batch->ticket)) =
          static_cast<float>(my.denominators.at(name));
    }
    StepContext context;
    context.seed = config.seed;
    bound.program->run(context, micro_batch->ticket);
    refuse_reported(*bound.program, bound.program->errors(), " in the held-out data");
    const double share =
        config.loss.terms.empty() ? static_cast<double>(micro_batch->count) / samples() : 1;
    loss += share * *static_cast<const float*>(
                        bound.program->output(bound.loss_output, micro_batch->ticket));
    for (const auto& [output, name] : bound.term_outputs) {
      terms[name] += *static_cast<const float*>(bound.program->output(output, micro_batch->ticket));
    }
    for (const MetricOfTerm& m : metrics) {
      m.metric->add(my.made(bound, m.term->values[0], micro_batch->ticket),
                    my.fed(bound, m.term->labels, micro_batch->ticket),
                    m.term->integer("ignore_index"));
    }
    loader.release(micro_batch->ticket);
    done += micro_batch->count;
    if (after_micro_batch) after_micro_batch(done);
  }
  std::vector<std::pair<std::string, double>> values{{"loss", loss}};
  if (terms.size() > 1) values.insert(values.end(), terms.begin(), terms.end());
  for (const MetricOfTerm& m : metrics) values.emplace_back(m.kind->name, m.metric->value());
  return values;
}

}  // namespace tandem
