#include "engine/training/step_runner.h"

#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/training/evaluation.h"
#include "engine/training/reported_ids.h"

namespace tandem {

struct StepRunner::Impl {
  const RunConfig& config;
  RunParts parts;
  std::shared_ptr<const DataSource> source;
  RunLength length;
  Schedule schedule;
  StateStore& states;
  std::shared_ptr<Arenas> arenas;

  std::vector<std::string> field_names;
  std::vector<int> fields;  // those that programs are fed
  std::map<PassShape, BoundProgram> programs;
  std::vector<bool> thawed;  // per freeze rule, as the programs were built
  const BoundProgram* main = nullptr;
  std::unique_ptr<Loader> loader;
  std::uint64_t steps_done = 0, base_ticket = 0, next_ticket = 0;
  bool whole = true;        // states are those between steps
  bool has_buffers = true;  // running statistics, which every pass of a step updates
  DataPosition position;
  ErrorWord errors;

  std::vector<bool> thawed_now() const;
  void build(std::vector<bool> rules);
  void build_where_due(std::vector<bool> rules);
  std::vector<PassShape> shapes() const;
  void open_loader();
  double denominator(const LossTerm& term, const Pass& first) const;
  RunParts parts_for(const PassShape& shape) const;
  void feed_scalars(BoundProgram& bound, const Pass& pass, double factor, const Pass& first);
  const LossTerm& term(const std::string& name) const;
};

StepRunner::StepRunner(const RunConfig& config, const RunParts& parts,
                       std::shared_ptr<const DataSource> source, const RunLength& length,
                       StateStore& states, std::shared_ptr<Arenas> arenas)
    : impl_(new Impl{config, parts, std::move(source), length,
                     Schedule(config.optimizer.schedule, config.optimizer.base.lr, length), states,
                     std::move(arenas)}) {
  for (const DataField& field : impl_->source->fields()) impl_->field_names.push_back(field.name);
  impl_->build(impl_->thawed_now());
}

namespace {
std::string name_of(const FreezeRule& rule) {
  return rule.at + (rule.until ? " until " + to_string(*rule.until) : "");
}
}  // namespace

StepRunner::~StepRunner() = default;
const BoundProgram& StepRunner::main_program() const { return *impl_->main; }
std::vector<const BoundProgram*> StepRunner::step_programs() const {
  const std::int64_t count = std::min(impl_->config.batch_size, impl_->source->samples());
  std::vector<const BoundProgram*> programs;
  for (const Pass& pass : passes_of_step(count, impl_->config.pass_size())) {
    programs.push_back(&impl_->programs.at(shape_of(pass)));
  }
  return programs;
}
bool StepRunner::states_are_whole() const { return impl_->whole; }
double StepRunner::waited_for_data() const { return impl_->loader ? impl_->loader->waited() : 0; }

std::vector<bool> StepRunner::Impl::thawed_now() const {
  std::vector<bool> result = thawed;
  const std::vector<FreezeRule>& rules = config.parameters.freeze;
  result.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    result[i] =
        result[i] || (rules[i].until &&
                      length.has_passed(*rules[i].until, static_cast<std::int64_t>(steps_done)));
  }
  return result;
}

// Rows are fetched for a step of the same shape alone: in the programs of full steps.
RunParts StepRunner::Impl::parts_for(const PassShape& shape) const {
  RunParts own = parts;
  own.options.lower.rows_ahead = shape.step == std::min(config.batch_size, source->samples()) &&
                                 (shape.kind == PassKind::whole || shape.kind == PassKind::last);
  return own;
}

std::vector<PassShape> StepRunner::Impl::shapes() const {
  const bool drop_last = config.data && config.data->drop_last;
  const auto needed_by = [&](std::int64_t samples) {
    return needed_shapes(samples, config.batch_size, config.pass_size(), drop_last);
  };
  std::vector<PassShape> all = needed_by(source->samples());
  // Resumed with another batch size, this epoch may end with a step of its own.
  for (const PassShape& shape :
       needed_by(std::max<std::int64_t>(0, source->samples() - position.sample))) {
    if (std::find(all.begin(), all.end(), shape) == all.end()) all.push_back(shape);
  }
  return all;
}

void StepRunner::Impl::build(std::vector<bool> rules) {
  thawed = std::move(rules);
  programs.clear();
  for (const PassShape& shape : shapes()) {
    TrainingRequest request;
    request.config = &config;
    request.fields = field_types(*source, shape.pass);
    request.kind = shape.kind;
    request.samples = {shape.pass, shape.step};
    request.evaluate = parts.evaluate;
    request.thawed = thawed;
    const TrainingGraph training =
        build_training_graph(*parts.operators, parts.forward(shape.pass, true), request);
    check_fed_inputs(training, config, request.fields);
    const auto made = programs.emplace(
        shape, bind_program(training, parts_for(shape), states, arenas, field_names));
    if (programs.size() == 1) main = &made.first->second;
  }
  // The update's program is the one people look at.
  for (const auto& [shape, bound] : programs) {
    if (shape.kind == PassKind::whole && shape.step == config.batch_size) main = &bound;
  }
  fields = fed_fields(*main);
}

void StepRunner::Impl::build_where_due(std::vector<bool> rules) {
  if (thawed != rules || programs.size() != shapes().size()) build(std::move(rules));
}

void StepRunner::prepare(std::uint64_t steps_done, const RunLength& length,
                         const std::map<std::string, bool>& thawed) {
  Impl& my = *impl_;
  my.length = length;
  my.schedule = Schedule(my.config.optimizer.schedule, my.config.optimizer.base.lr, length);
  my.steps_done = steps_done;
  std::vector<bool> then = my.thawed_now();
  for (std::size_t i = 0; i < then.size(); ++i) {
    const auto known = thawed.find(name_of(my.config.parameters.freeze[i]));
    if (known != thawed.end()) then[i] = known->second;
  }
  my.build_where_due(std::move(then));
}

std::map<std::string, bool> StepRunner::thawed() const {
  std::map<std::string, bool> rules;
  for (std::size_t i = 0; i < impl_->thawed.size(); ++i) {
    const FreezeRule& rule = impl_->config.parameters.freeze[i];
    if (rule.until) rules[name_of(rule)] = impl_->thawed[i];
  }
  return rules;
}

void StepRunner::Impl::open_loader() {
  loader.reset();
  LoaderOptions options;
  options.fields = fields;
  options.batch_size = config.batch_size;
  options.pass_size = config.pass_size();
  options.drop_last = config.data && config.data->drop_last;
  if (config.data) {
    options.shuffle = config.data->shuffle;
    options.threads = config.data->workers;
  }
  options.seed = config.seed;
  options.start = position;
  options.ahead = parts.options.input_slots;
  base_ticket = next_ticket;
  const std::uint64_t base = base_ticket;
  loader =
      std::make_unique<Loader>(source, options, [this, base](int field, const Pass& pass) -> void* {
        BoundProgram& bound = programs.at(shape_of(pass));
        return bound.program->input_slot(bound.data_inputs[fields[field]], base + pass.ticket);
      });
}

void StepRunner::start(std::uint64_t steps_done, const DataPosition& position) {
  impl_->steps_done = steps_done;
  impl_->position = position;
  impl_->build_where_due(impl_->thawed_now());
  const std::vector<std::string> names = impl_->states.names();
  impl_->has_buffers = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return impl_->states.kind(name) == StateKind::buffer;
  });
  impl_->open_loader();
}

void StepRunner::stop() { impl_->loader.reset(); }

const LossTerm& StepRunner::Impl::term(const std::string& name) const {
  for (const LossTerm& term : config.loss.terms) {
    if (term.name == name) return term;
  }
  assert(false);
  return config.loss.terms[0];
}

/// Sum of label weights over all samples of the step that starts with `first`.
double StepRunner::Impl::denominator(const LossTerm& term, const Pass& first) const {
  const ShuffleConfig shuffle = config.data ? config.data->shuffle : ShuffleConfig{};
  const std::vector<std::int64_t> order =
      epoch_order(source->samples(), shuffle, config.seed, first.start.epoch);
  const std::span<const std::int64_t> samples(order.data() + first.start.sample, first.step_count);
  HostTensor labels(field_types(*source, first.step_count).at(term.labels));
  source->fill(source->find_field(term.labels), samples, nullptr, labels.data());
  return label_weight_sum(term, labels);
}

void StepRunner::Impl::feed_scalars(BoundProgram& bound, const Pass& pass, double factor,
                                    const Pass& first) {
  Program& program = *bound.program;
  const std::uint64_t ticket = base_ticket + pass.ticket;
  if (bound.step_input >= 0) {
    *static_cast<std::int64_t*>(program.input_slot(bound.step_input, ticket)) =
        static_cast<std::int64_t>(steps_done + 1);
  }
  for (const auto& [input, rate] : bound.learning_rates) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(rate.base * factor);
  }
  for (const auto& [input, name] : bound.denominators) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(denominator(term(name), first));
  }
}

StepResult StepRunner::step(PassWatch* watch) {
  Impl& my = *impl_;
  if (std::vector<bool> now = my.thawed_now(); my.thawed != now) {
    my.loader.reset();
    my.build(std::move(now));
    my.open_loader();
  }
  StepResult result;
  result.step = my.steps_done + 1;
  const double factor = my.schedule.factor(static_cast<std::int64_t>(result.step));
  result.lr = my.config.optimizer.base.lr * factor;
  Pass first;
  for (;;) {
    const std::optional<Pass> pass = my.loader->next();
    assert(pass && "the loader of a training run never ends");
    if (pass->index == 0) first = *pass;
    BoundProgram& bound = my.programs.at(shape_of(*pass));
    const std::uint64_t ticket = my.base_ticket + pass->ticket;
    my.feed_scalars(bound, *pass, factor, first);
    if (!bound.next_inputs.empty()) {
      const std::optional<Pass> next = my.loader->peek();
      const bool alike = next && shape_of(*next) == shape_of(*pass);
      feed_next(bound, ticket, alike ? std::optional(my.base_ticket + next->ticket) : std::nullopt);
    }
    my.whole = false;
    StepContext context;
    context.seed = my.config.seed;
    context.step = result.step;
    context.micro_batch = static_cast<std::uint64_t>(pass->index);
    context.error = &my.errors;
    if (watch != nullptr) watch->before(*bound.program);
    bound.program->run(context, ticket);
    if (watch != nullptr) watch->after(*bound.program, ticket);
    my.next_ticket = ticket + 1;
    auto scalar = [&](int output) {
      return *static_cast<const float*>(bound.program->output(output, ticket));
    };
    result.loss += scalar(bound.loss_output);
    for (std::size_t i = 0; i < bound.term_outputs.size(); ++i) {
      if (pass->index == 0) result.terms.emplace_back(bound.term_outputs[i].second, 0);
      result.terms[i].second += scalar(bound.term_outputs[i].first);
    }
    if (bound.norm_output >= 0) result.gradient_norm = scalar(bound.norm_output);
    if (bound.scale_output >= 0) {
      result.loss_scale = scalar(bound.scale_output);
      result.skipped_steps =
          *static_cast<const std::int64_t*>(bound.program->output(bound.skipped_output, ticket));
    }
    my.loader->release(pass->ticket);
    if (my.errors.packed.load() != 0)
      refuse_reported(*bound.program, my.errors, " at step " + std::to_string(result.step));
    my.whole = pass->end_of_step || !my.has_buffers;
    if (!pass->end_of_step) continue;
    my.steps_done = result.step;
    my.position = result.end = pass->end;
    result.samples = pass->step_count;
    return result;
  }
}

}  // namespace tandem
