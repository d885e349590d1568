#include "engine/train/evaluation/evaluation.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>

#include "engine/data/subset_source.h"
#include "engine/graph/error.h"
#include "engine/logs/log_members.h"
#include "engine/train/divergence/reported_ids.h"
#include "engine/train/evaluation/evaluated_metrics.h"
#include "engine/train/evaluation/metric_fields.h"
#include "engine/train/graph/weight_sums.h"
#include "engine/train/group/gathered.h"
#include "engine/train/programs/run_programs.h"
#include "engine/train/staged/programs.h"

namespace tandem {
namespace {

TensorType made_type(const BoundProgram& bound, const std::string& name) {
  const Graph& graph = bound.program->lowered().graph;
  return graph.type(graph.outputs[static_cast<std::size_t>(bound.output(name))].value);
}

TensorType fed_type(const BoundProgram& bound, const std::string& field) {
  const Graph& graph = bound.program->lowered().graph;
  return graph.type(graph.find_input(field)->value);
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

/// What a rank adds to an evaluation.
struct EvaluatedPart {
  double loss = 0;
  std::map<std::string, double> terms;
  MetricSums metrics;
  bool is_stopped = false;

  std::string text() const;
  void add(const std::string& text);
  Evaluation::Values values() const;
};

std::string EvaluatedPart::text() const {
  std::vector<double> numbers{is_stopped ? 1.0 : 0.0, loss};
  for (const auto& [name, sum] : terms) numbers.push_back(sum);
  std::string text(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  return text + metrics.text();
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
  metrics.add(text.substr(at));
}

Evaluation::Values EvaluatedPart::values() const {
  Evaluation::Values values{{"loss", loss}};
  if (terms.size() > 1) {
    for (const auto& [name, value] : terms) values.emplace_back(logged_term(name), value);
  }
  const Evaluation::Values measured = metrics.values();
  values.insert(values.end(), measured.begin(), measured.end());
  return values;
}

struct Evaluation::Impl {
  const RunConfig& config;
  std::shared_ptr<Rendezvous> ranks;
  std::shared_ptr<const DataSource> all_samples;  // those of all ranks
  std::shared_ptr<const DataSource> source;       // this rank's part
  StateStore& states;
  EvaluationPrograms needed;  // on this rank
  std::vector<std::string> names;
  std::vector<int> fields;
  std::map<std::int64_t, BoundProgram> programs;  // by micro-batch size
  std::map<std::string, double> denominators;     // by term, over all samples
  std::vector<EvaluatedMetric> metrics;
  std::vector<MetricTable> tables;   // those of the last run
  const RunParts* staged = nullptr;  // the parts, for a model in stages
  std::shared_ptr<Arenas> arenas;
  StagedPrograms staged_programs;
  FieldWords words;

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
  void sum_denominators(const BoundProgram& bound);
  void feed_denominators(const BoundProgram& bound, std::uint64_t ticket) const;
  /// Adds the loss of samples that a program has run.
  void add_losses(EvaluatedPart& part, const BoundProgram& bound, std::uint64_t ticket,
                  std::int64_t count) const;
  /// Graph with the losses of a forward graph.
  TrainingGraph with_losses(const RunParts& parts, Graph forward,
                            const TrainingRequest& request) const;
  /// Instead of `add_own` where the model runs in stages.
  void add_own_in_stages(EvaluatedPart& part, FunctionRef<bool(std::int64_t samples)> stops);
  StagedPrograms::Entry& staged_program(StagedGraph graph, const BatchTensors& batch,
                                        std::int64_t count);
  EvaluatedPart nothing() const;
  EvaluatedPart own_part(FunctionRef<bool(std::int64_t samples)> stops);
  /// Adds this rank's micro-batches; `ran` counts programs that have run.
  void add_own(EvaluatedPart& part, std::int64_t& ran,
               FunctionRef<bool(std::int64_t samples)> stops);
  /// Adds `count` own samples from `first` on, which a program has run.
  void add_metrics(EvaluatedPart& part, const BoundProgram& bound, std::uint64_t ticket,
                   std::int64_t first, std::int64_t count) const;
  void run_for_others();
  void share_statistics();
};

Evaluation::Evaluation(const RunConfig& config, const RunParts& parts,
                       std::shared_ptr<const DataSource> source, StateStore& states,
                       std::shared_ptr<Arenas> arenas)
    : impl_(new Impl{config,
                     parts.ranks,
                     std::move(source),
                     {},
                     states,
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     nullptr,
                     {},
                     {},
                     {}}) {
  Impl& my = *impl_;
  my.words = parts.words;
  my.metrics = evaluated_metrics(config, *my.all_samples, my.words);
  const std::int64_t all = my.all_samples->samples();
  const RankPlace place = place_of(parts);
  my.source = make_part_source(my.all_samples, evaluated_share(config, all, place));
  const bool exchanges = place.ranks > 1 && shares_parameters(parts.shards);
  RunCounts counts;
  counts.eval_samples = all;
  counts.place = place;
  my.needed = evaluation_programs(config, counts, exchanges);
  for (const DataField& field : my.source->fields()) my.names.push_back(field.name);
  if (parts.staged != nullptr) {
    my.staged = &parts;
    my.arenas = std::move(arenas);
    return;
  }
  for (const std::int64_t size : my.needed.sizes) {
    TrainingRequest request;
    request.config = &config;
    request.fields = field_types(*my.source, size);
    request.algorithm = parts.model->algorithm({size, false});
    if (exchanges) {
      request.ranks = {place.ranks, size, my.needed.micro_batch, place.rank};
      request.shards = parts.shards;
    }
    // A loss inside the model has its own reduction: whole micro-batches, weighted by their
    // samples.
    request.samples = {size, config.loss.terms.empty() ? size : all};
    const TrainingGraph evaluation =
        my.with_losses(parts, parts.model->forward({size, false}), request);
    const auto [program, is_new] =
        my.programs.emplace(size, bind_program(evaluation, parts, states, arenas, my.names));
    my.sum_denominators(program->second);
  }
  if (!my.programs.empty()) {
    const BoundProgram& any = my.programs.begin()->second;
    my.fields = fed_fields(any);
    for (const EvaluatedMetric& metric : my.metrics) {
      check_types(metric, made_type(any, metric.term->values[0]),
                  fed_type(any, metric.term->labels), config.file);
    }
  }
}

TrainingGraph Evaluation::Impl::with_losses(const RunParts& parts, Graph forward,
                                            const TrainingRequest& request) const {
  TrainingGraph evaluation;
  evaluation.graph = build_evaluation_graph(*parts.operators, std::move(forward), request);
  for (const LossTerm& term : config.loss.terms) {
    evaluation.terms.push_back(term.name);
    const std::string input = "loss." + term.name + ".denominator";
    if (evaluation.graph.find_input(input) != nullptr)
      evaluation.denominators.push_back({term.name, input});
  }
  check_fed_inputs(evaluation, config, request.fields);
  return evaluation;
}

Evaluation::~Evaluation() = default;
std::int64_t Evaluation::samples() const { return impl_->all_samples->samples(); }
std::int64_t Evaluation::own_samples() const { return impl_->source->samples(); }
std::vector<const BoundProgram*> Evaluation::programs() const {
  std::vector<const BoundProgram*> all;
  for (const auto& [size, bound] : impl_->programs) all.push_back(&bound);
  return all;
}
const std::vector<MetricTable>& Evaluation::tables() const { return impl_->tables; }
void Evaluation::note_other_samples() {
  Impl& my = *impl_;
  my.metrics = evaluated_metrics(my.config, *my.all_samples, my.words);
  my.denominators.clear();
  for (const auto& [size, bound] : my.programs) my.sum_denominators(bound);
}

void Evaluation::Impl::sum_denominators(const BoundProgram& bound) {
  for (const auto& [input, name] : bound.denominators) {
    if (denominators.contains(name)) continue;
    const LossTerm& term =
        *std::find_if(config.loss.terms.begin(), config.loss.terms.end(),
                      [&, wanted = name](const LossTerm& t) { return t.name == wanted; });
    std::vector<std::int64_t> samples(static_cast<std::size_t>(all_samples->samples()));
    std::iota(samples.begin(), samples.end(), 0);
    denominators[name] = weight_sum(term, *all_samples, samples);
  }
}

void Evaluation::Impl::feed_denominators(const BoundProgram& bound, std::uint64_t ticket) const {
  for (const auto& [input, name] : bound.denominators) {
    *static_cast<float*>(bound.program->input_slot(input, ticket)) =
        static_cast<float>(denominators.at(name));
  }
}

void Evaluation::Impl::add_losses(EvaluatedPart& part, const BoundProgram& bound,
                                  std::uint64_t ticket, std::int64_t count) const {
  const double share =
      config.loss.terms.empty() ? static_cast<double>(count) / all_samples->samples() : 1;
  const auto number = [&](int output) {
    return *static_cast<const float*>(bound.program->output(output, ticket));
  };
  part.loss += share * number(bound.loss_output);
  for (const auto& [output, name] : bound.term_outputs) part.terms[name] += number(output);
}

EvaluatedPart Evaluation::Impl::nothing() const {
  EvaluatedPart part;
  for (const LossTerm& term : config.loss.terms) part.terms[term.name] = 0;
  part.metrics.start(metrics);
  return part;
}

// Each rank has seen samples of its own since the last time. A rank that has no programs, and so no
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

// Where ranks exchange rows, a rank that stops or fails still runs its programs for the others, and
// throws after all are done.
EvaluatedPart Evaluation::Impl::own_part(FunctionRef<bool(std::int64_t samples)> stops) {
  EvaluatedPart part = nothing();
  std::int64_t ran = 0;
  std::exception_ptr problem;
  try {
    if (source->samples() > 0 && staged != nullptr) add_own_in_stages(part, stops);
    if (source->samples() > 0 && staged == nullptr) add_own(part, ran, stops);
  } catch (...) {
    if (needed.rounds == 0) throw;
    problem = std::current_exception();
  }
  try {
    for (; ran < needed.rounds; ++ran) run_for_others();
  } catch (...) {
    if (!problem) throw;
  }
  if (problem) std::rethrow_exception(problem);
  return part;
}

// Runs the program on zeros, which are valid ids and labels; the results do not count.
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

void Evaluation::Impl::add_metrics(EvaluatedPart& part, const BoundProgram& bound,
                                   std::uint64_t ticket, std::int64_t first,
                                   std::int64_t count) const {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const EvaluatedMetric& metric = metrics[i];
    const auto of_samples = [&](int field) {
      return field < 0 ? std::vector<std::int64_t>() : field_values(*source, field, first, count);
    };
    const std::vector<std::int64_t> groups = of_samples(metric.group_field);
    const std::vector<std::int64_t> slices = of_samples(metric.slice_field);
    const HostTensor values = made(bound, metric.term->values[0], ticket);
    const HostTensor labels = fed(bound, metric.term->labels, ticket);
    part.metrics.metrics[i]->add(
        {values, labels, class_options(*metric.term).ignore_index, groups, slices});
  }
}

void Evaluation::Impl::add_own(EvaluatedPart& part, std::int64_t& ran,
                               FunctionRef<bool(std::int64_t samples)> stops) {
  LoaderOptions options;
  options.fields = fields;
  options.micro_batch_size = options.batch_size = needed.micro_batch;
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
    feed_denominators(bound, loaded->ticket);
    StepContext context;
    context.seed = config.seed;
    bound.program->run(context, loaded->ticket);
    ++ran;
    refuse_reported(*bound.program, bound.program->errors(), " in the held-out data");
    add_losses(part, bound, loaded->ticket, loaded->count);
    add_metrics(part, bound, loaded->ticket, done, loaded->count);
    loader.release(loaded->ticket);
    done += loaded->count;
    part.is_stopped = stops && stops(done) && done < source->samples();
    if (part.is_stopped) break;
  }
}

namespace {

// A loss compares an entry for each sample with its labels.
void check_counts_samples(const Graph& graph, const RunConfig& config, std::int64_t samples) {
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& name : term.values) {
      const NamedValue* output = graph.find_output(name);
      if (term.labels.empty() || output == nullptr) continue;
      const TensorType& type = graph.type(output->value);
      if (!type.shape.empty() && type.shape[0] == samples) continue;
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "data decides how long axis 0 of this value is, which loss "
                                        "and metrics compare with labels sample by sample",
                             .file = config.file,
                             .path = name,
                             .expected = std::to_string(samples) + " entries, one a sample",
                             .got = to_string(type),
                             .fix = "name another value in loss.terms, or predict and compare"});
    }
  }
}

}  // namespace

StagedPrograms::Entry& Evaluation::Impl::staged_program(StagedGraph graph,
                                                        const BatchTensors& batch,
                                                        std::int64_t count) {
  return staged_programs.get(graph.key, [&] {
    check_counts_samples(graph.graph, config, count);
    TrainingRequest request;
    request.config = &config;
    request.fields = types_of({&batch, &graph.fed});
    request.samples = {count, config.loss.terms.empty() ? count : all_samples->samples()};
    const TrainingGraph evaluation = with_losses(*staged, std::move(graph.graph), request);
    BoundProgram bound =
        bind_program(evaluation, with_single_slots(*staged), states, arenas, names);
    for (const EvaluatedMetric& metric : metrics) {
      check_types(metric, made_type(bound, metric.term->values[0]),
                  fed_type(bound, metric.term->labels), config.file);
    }
    sum_denominators(bound);
    return bound;
  });
}

void Evaluation::Impl::add_own_in_stages(EvaluatedPart& part,
                                         FunctionRef<bool(std::int64_t samples)> stops) {
  for (std::int64_t done = 0; done < source->samples() && !part.is_stopped;) {
    const std::int64_t count = std::min(needed.micro_batch, source->samples() - done);
    const BatchTensors batch = batch_of(*source, done, count);
    StagedGraph graph = staged->staged->graph_for(count, batch);
    const BatchTensors fed = graph.fed;
    StagedPrograms::Entry& entry = staged_program(std::move(graph), batch, count);
    const std::uint64_t ticket = entry.ticket++;
    feed_inputs(*entry.bound.program, {&batch, &fed}, ticket);
    feed_denominators(entry.bound, ticket);
    StepContext context;
    context.seed = config.seed;
    entry.bound.program->run(context, ticket);
    refuse_reported(*entry.bound.program, entry.bound.program->errors(), " in the held-out data");
    add_losses(part, entry.bound, ticket, count);
    add_metrics(part, entry.bound, ticket, done, count);
    done += count;
    part.is_stopped = stops && stops(done) && done < source->samples();
  }
}

std::optional<Evaluation::Values> Evaluation::run(FunctionRef<bool(std::int64_t samples)> stops) {
  Impl& my = *impl_;
  const bool has_others = my.ranks->ranks() > 1;
  if (has_others) my.share_statistics();
  EvaluatedPart part;
  on_all_ranks(*my.ranks, "evaluation", [&] { part = my.own_part(stops); });
  if (has_others) {  // added up in the order of the ranks on each of them: the same bits
    const std::vector<std::string> parts = gathered(*my.ranks, "metrics", part.text());
    part = my.nothing();
    for (const std::string& of_rank : parts) part.add(of_rank);
  }
  if (part.is_stopped) return std::nullopt;
  my.tables = part.metrics.tables();
  return part.values();
}

}  // namespace tandem
