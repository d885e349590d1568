#include "engine/training/evaluation.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>

#include "engine/graph/error.h"
#include "engine/training/data/subset_source.h"
#include "engine/training/divergence/reported_ids.h"
#include "engine/training/metrics.h"
#include "engine/training/ranks/gathered.h"
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

bool shares_parameters(const Shardings& shards) {
  return std::any_of(shards.begin(), shards.end(),
                     [](const auto& shard) { return shard.second != Sharding::state; });
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

/// What a rank adds to an evaluation.
struct EvaluatedPart {
  double loss = 0;
  std::map<std::string, double> terms;
  std::vector<MetricOfTerm> metrics;
  bool is_stopped = false;

  std::string text() const;
  void add(const std::string& text);
  Evaluation::Values values() const;
};

std::string EvaluatedPart::text() const {
  std::vector<double> numbers{is_stopped ? 1.0 : 0.0, loss};
  for (const auto& [name, sum] : terms) numbers.push_back(sum);
  std::string text(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  for (const MetricOfTerm& m : metrics) {
    const std::string sums = m.metric->sums();
    const std::uint64_t bytes = sums.size();
    text.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    text += sums;
  }
  return text;
}

void EvaluatedPart::add(const std::string& text) {
  std::size_t at = 0;
  const auto take = [&](auto number) {
    std::memcpy(&number, text.data() + at, sizeof number);
    at += sizeof number;
    return number;
  };
  is_stopped = take(0.0) != 0 || is_stopped;
  loss += take(0.0);
  for (auto& [name, sum] : terms) sum += take(0.0);
  for (const MetricOfTerm& m : metrics) {
    const auto bytes = static_cast<std::size_t>(take(std::uint64_t{0}));
    m.metric->add_sums(text.substr(at, bytes));
    at += bytes;
  }
}

Evaluation::Values EvaluatedPart::values() const {
  Evaluation::Values values{{"loss", loss}};
  if (terms.size() > 1) values.insert(values.end(), terms.begin(), terms.end());
  for (const MetricOfTerm& m : metrics) values.emplace_back(m.kind->name, m.metric->value());
  return values;
}

struct Evaluation::Impl {
  const RunConfig& config;
  std::shared_ptr<Rendezvous> ranks;              // null: one process
  std::shared_ptr<const DataSource> all_samples;  // of all ranks
  std::shared_ptr<const DataSource> source;       // this rank's part
  StateStore& states;
  std::int64_t micro_batch = 1;  // of this rank
  /// How often each rank runs a program where ranks exchange rows of tables in it; 0: it runs its
  /// own micro-batches and no others.
  std::int64_t rounds = 0;
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
  EvaluatedPart nothing() const;
  EvaluatedPart own_part(const std::function<bool(std::int64_t samples)>& stops);
  /// Adds the own micro-batches; `ran` counts programs that have run.
  void add_own(EvaluatedPart& part, std::int64_t& ran,
               const std::function<bool(std::int64_t samples)>& stops);
  void run_for_others();
  void share_statistics();
};

Evaluation::Evaluation(const RunConfig& config, const RunParts& parts,
                       std::shared_ptr<const DataSource> source, StateStore& states,
                       std::shared_ptr<Arenas> arenas)
    : impl_(new Impl{config, parts.ranks, std::move(source), {}, states, 1, 0, {}, {}, {}, {}}) {
  Impl& my = *impl_;
  check_metrics(config);
  check_labels(metrics_of(config), *my.all_samples);
  const std::int64_t all = my.all_samples->samples();
  const RankPlace place = place_of(parts);
  my.source = make_part_source(my.all_samples, share_of(all, place));
  const std::int64_t samples = my.source->samples();
  // As large as that of a training step on one rank, so that it takes no more memory.
  const std::int64_t most = share_of(config.micro_batch_size(), {0, place.ranks}).count;
  my.micro_batch = std::max<std::int64_t>(1, std::min(most, samples));
  const bool exchanges = place.ranks > 1 && shares_parameters(parts.shards);
  if (exchanges) {
    const std::int64_t largest = share_of(all, {0, place.ranks}).count;
    my.micro_batch = std::max<std::int64_t>(1, std::min(most, largest));
    my.rounds = (largest + my.micro_batch - 1) / my.micro_batch;
  }
  for (const DataField& field : my.source->fields()) my.names.push_back(field.name);
  std::vector<std::int64_t> sizes{std::min(my.micro_batch, samples), samples % my.micro_batch};
  if (my.rounds > 0 && samples == 0) sizes.push_back(1);
  for (const std::int64_t size : sizes) {
    if (size == 0 || my.programs.count(size) > 0) continue;
    TrainingRequest request;
    request.config = &config;
    request.fields = field_types(*my.source, size);
    request.algorithm = parts.algorithm_for(size, false);
    if (exchanges) {
      request.ranks = {place.ranks, size, my.micro_batch, place.rank};
      request.shards = parts.shards;
    }
    // A loss inside the model has its own reduction: whole micro-batches, weighted by their
    // samples.
    request.samples = {size, config.loss.terms.empty() ? size : all};
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
    my.programs.emplace(size, bind_program(evaluation, parts, states, arenas, my.names));
  }
  if (!my.programs.empty()) my.fields = fed_fields(my.programs.begin()->second);
  my.sum_denominators();
}

Evaluation::~Evaluation() = default;
std::int64_t Evaluation::samples() const { return impl_->all_samples->samples(); }
std::int64_t Evaluation::own_samples() const { return impl_->source->samples(); }

void Evaluation::Impl::sum_denominators() {
  for (const auto& [size, bound] : programs) {
    for (const auto& [input, name] : bound.denominators) denominators[name] = 0;
  }
  for (auto& [name, sum] : denominators) {
    const LossTerm& term =
        *std::find_if(config.loss.terms.begin(), config.loss.terms.end(),
                      [&, wanted = name](const LossTerm& t) { return t.name == wanted; });
    std::vector<std::int64_t> samples(static_cast<std::size_t>(all_samples->samples()));
    std::iota(samples.begin(), samples.end(), 0);
    sum = weight_sum(term, *all_samples, samples);
  }
}

EvaluatedPart Evaluation::Impl::nothing() const {
  EvaluatedPart part;
  for (const LossTerm& term : config.loss.terms) part.terms[term.name] = 0;
  part.metrics = metrics_of(config);
  return part;
}

// Each rank has seen samples of its own since the last time. One that has no programs, and so no
// states, takes part all the same.
void Evaluation::Impl::share_statistics() {
  std::vector<std::string> names;
  for (const std::string& name : states.names()) {
    if (states.kind(name) == StateKind::buffer) names.push_back(name);
  }
  std::string bytes;
  if (ranks->rank() == 0) {
    for (const std::string& name : names) {
      const HostTensor value = states.read(name);
      bytes.append(static_cast<const char*>(value.data()), value.bytes());
    }
  }
  const std::string of_rank_0 = std::move(gathered(*ranks, "running statistics", bytes)[0]);
  if (ranks->rank() == 0) return;
  std::size_t at = 0;
  for (const std::string& name : names) {
    HostTensor value(states.type(name));
    std::memcpy(value.data(), of_rank_0.data() + at, value.bytes());
    at += value.bytes();
    states.write(name, value);
  }
}

// Where ranks exchange rows, one that stops or fails goes on for the others, and tells them when
// all are done.
EvaluatedPart Evaluation::Impl::own_part(const std::function<bool(std::int64_t samples)>& stops) {
  EvaluatedPart part = nothing();
  std::int64_t ran = 0;
  std::exception_ptr problem;
  try {
    if (source->samples() > 0) add_own(part, ran, stops);
  } catch (...) {
    if (rounds == 0) throw;
    problem = std::current_exception();
  }
  try {
    for (; ran < rounds; ++ran) run_for_others();
  } catch (...) {
    if (!problem) throw;
  }
  if (problem) std::rethrow_exception(problem);
  return part;
}

// Zeros are ids and labels like any others; what comes of them does not count.
void Evaluation::Impl::run_for_others() {
  Program& program = *programs.begin()->second.program;
  const Graph& graph = program.lowered().graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::size_t bytes = graph.type(graph.inputs[i].value).bytes();
    if (bytes > 0) std::memset(program.input_slot(static_cast<int>(i), 0), 0, bytes);
  }
  program.run({}, 0);
  program.errors().packed = 0;
}

void Evaluation::Impl::add_own(EvaluatedPart& part, std::int64_t& ran,
                               const std::function<bool(std::int64_t samples)>& stops) {
  LoaderOptions options;
  options.fields = fields;
  options.micro_batch_size = options.batch_size = micro_batch;
  options.shuffle.kind = ShuffleConfig::Kind::none;
  options.augment = false;
  options.epochs = 1;
  options.threads = config.data ? config.data->workers : 1;
  Loader loader(source, options, [&](int field, const MicroBatch& loaded) -> void* {
    BoundProgram& bound = programs.at(loaded.count);
    return bound.program->input_slot(bound.data_inputs[fields[field]], loaded.ticket);
  });

  std::int64_t done = 0;
  while (const std::optional<MicroBatch> loaded = loader.next()) {
    BoundProgram& bound = programs.at(loaded->count);
    for (const auto& [input, name] : bound.denominators) {
      *static_cast<float*>(bound.program->input_slot(input, loaded->ticket)) =
          static_cast<float>(denominators.at(name));
    }
    StepContext context;
    context.seed = config.seed;
    bound.program->run(context, loaded->ticket);
    ++ran;
    refuse_reported(*bound.program, bound.program->errors(), " in the held-out data");
    const double share =
        config.loss.terms.empty() ? static_cast<double>(loaded->count) / all_samples->samples() : 1;
    part.loss += share * *static_cast<const float*>(
                             bound.program->output(bound.loss_output, loaded->ticket));
    for (const auto& [output, name] : bound.term_outputs) {
      part.terms[name] += *static_cast<const float*>(bound.program->output(output, loaded->ticket));
    }
    for (const MetricOfTerm& m : part.metrics) {
      m.metric->add(made(bound, m.term->values[0], loaded->ticket),
                    fed(bound, m.term->labels, loaded->ticket), m.term->integer("ignore_index"));
    }
    loader.release(loaded->ticket);
    done += loaded->count;
    part.is_stopped = stops && stops(done) && done < source->samples();
    if (part.is_stopped) break;
  }
}

std::optional<Evaluation::Values> Evaluation::run(
    const std::function<bool(std::int64_t samples)>& stops) {
  Impl& my = *impl_;
  if (my.ranks) my.share_statistics();
  EvaluatedPart part;
  on_all_ranks(my.ranks.get(), "evaluation", [&] { part = my.own_part(stops); });
  if (my.ranks) {  // added up in the order of the ranks on each of them: the same bits
    const std::vector<std::string> parts = gathered(*my.ranks, "metrics", part.text());
    part = my.nothing();
    for (const std::string& of_rank : parts) part.add(of_rank);
  }
  if (part.is_stopped) return std::nullopt;
  return part.values();
}

}  // namespace tandem
