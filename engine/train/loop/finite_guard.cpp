#include "engine/train/loop/finite_guard.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "engine/data/number_text.h"
#include "engine/graph/error.h"
#include "engine/train/divergence/divergence_cause.h"
#include "engine/train/group/gathered.h"
#include "engine/train/loop/divergence_origin.h"

namespace tandem {

void FiniteGuard::record_start() {
  for (NotFiniteState& state : not_finite_states(run_.states, {})) {
    if (state.worst == Finiteness::infinite)
      infinite_.insert(state.name);
    else
      nan_at_start_.push_back(std::move(state));
  }
}

void FiniteGuard::share_infinite() {
  std::string own;
  for (const std::string& name : infinite_) own += name + '\n';
  for (const std::string& of_rank : gathered(run_.ranks(), "states with infinities", own)) {
    std::istringstream lines(of_rank);
    for (std::string name; std::getline(lines, name);) infinite_.insert(name);
  }
}

void FiniteGuard::begin() {
  const auto refuse = [&] { refuse_nan_at_start(); };
  if (run_.first_step == 0) {
    if (run_.shards_states())
      on_all_ranks(run_.ranks(), "states before the first step", refuse);
    else
      refuse();
  }
  watch_.start(run_.states, infinite_, run_.place(), run_.shards_states() && run_.rank() > 0);
}

void FiniteGuard::refuse_nan_at_start() const {
  if (nan_at_start_.empty()) return;
  std::vector<Diagnostic> problems;
  for (const NotFiniteState& state : nan_at_start_)
    problems.push_back(diagnostic_of(state, " before the first step"));
  problems[0].fix =
      "it comes from the model file or from parameters.load; parameters.init gives new values";
  throw Error(ErrorKind::diverged, std::move(problems));
}

MayBeInfinite may_be_infinite(const StateStore& states, const std::set<std::string>& infinite) {
  return [&](const std::string& name) { return !states.has(name) || infinite.contains(name); };
}

bool FiniteGuard::look_on_all_ranks() {
  const std::uint64_t copied = run_.copied_bytes();
  const bool looks = run_.rank() == 0 || run_.shards_states();
  bool is_finite = !looks || look();
  if (run_.shards_states()) is_finite = is_on_all_ranks(run_, "what is finite", is_finite);
  run_.other_bytes += run_.copied_bytes() - copied;
  return is_finite;
}

void FiniteGuard::refuse_bad_states() {
  if (run_.shards_states())
    on_all_ranks(run_.ranks(), "states", [&] { refuse_own_bad_states(); });
  else if (run_.rank() == 0)
    refuse_own_bad_states();
}

FiniteWatch::Place FiniteGuard::finite_until(const std::vector<NotFiniteState>& bad) const {
  FiniteWatch::Place good = run_.place();
  for (const NotFiniteState& state : bad) {
    const FiniteWatch::Place since = watch_.finite_at(state.name);
    if (since.step < good.step) good = since;
  }
  return good;
}

void FiniteGuard::refuse_own_bad_states() {
  const std::vector<NotFiniteState> bad = watch_.look_at_all(run_.place());
  if (bad.empty()) return;
  std::vector<Diagnostic> problems;
  for (const NotFiniteState& state : bad) {
    problems.push_back(
        diagnostic_of(state, fmt::format(" at step {}; it was finite at step {}",
                                         run_.position.step, watch_.finite_at(state.name).step)));
  }
  std::vector<Diagnostic> causes = bad_data(finite_until(bad).data, run_.position.data);
  if (causes.empty()) causes = origin_of(run_, infinite_, std::nullopt, problems[0].fix);
  append(problems, std::move(causes));
  throw Error(ErrorKind::diverged, std::move(problems));
}

void FiniteGuard::refuse_bad_metrics(const std::vector<std::pair<std::string, double>>& values) {
  std::vector<Diagnostic> problems;
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) continue;
    Diagnostic d;
    d.path = "eval";
    d.message =
        "the evaluation's " + name + " is not finite at step " + std::to_string(run_.position.step);
    d.expected = "a number";
    d.got = number_text(value);
    problems.push_back(std::move(d));
  }
  if (problems.empty()) return;
  refuse_bad_states();
  const DataSource& source = *run_.data.eval;
  std::vector<std::int64_t> samples(static_cast<std::size_t>(source.samples()));
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<Diagnostic> causes = not_finite_samples(source, fed(source), samples, nullptr);
  append(causes, weightless_means(run_.config, source, samples, "all held-out labels"));
  data_is_the_cause_ = !causes.empty();
  if (causes.empty()) problems[0].fix = with_float16_advice(run_, lower_rate);
  append(problems, std::move(causes));
  throw Error(ErrorKind::diverged, std::move(problems));
}

std::vector<Diagnostic> FiniteGuard::causes_before(const StepResult& result, std::string& fix) {
  // What made the states so may lie further back.
  const FiniteWatch::Place good = finite_until(watch_.look_at_all(run_.place()));
  std::vector<Diagnostic> causes = bad_data(good.data, result.start);
  if (causes.empty()) causes = origin_of(run_, infinite_, result.step, fix);
  return causes;
}

std::vector<int> FiniteGuard::fed(const DataSource& source) const {
  std::vector<int> fields;
  for (const int field : fed_fields(run_.runner->main_program())) {
    const auto index = static_cast<std::size_t>(field);
    const int own = source.find_field(run_.data.train->fields()[index].name);
    if (own >= 0) fields.push_back(own);
  }
  return fields;
}

std::vector<Diagnostic> FiniteGuard::bad_data(const DataPosition& from,
                                              const DataPosition& to) const {
  const std::int64_t samples = run_.epochs->count();
  DataPosition at = from;  // at most an epoch before `to`
  const DataPosition earliest{to.epoch - 1, to.sample};
  if (at.epoch < earliest.epoch || (at.epoch == earliest.epoch && at.sample < earliest.sample))
    at = earliest;
  const DataSource& source = *run_.data.train;
  std::vector<Diagnostic> found;
  for (; at.epoch <= to.epoch && found.empty(); at = {at.epoch + 1, 0}) {
    if (at.epoch < 0) continue;
    const std::int64_t end = at.epoch == to.epoch ? to.sample : samples;
    if (at.sample >= end) continue;
    const std::shared_ptr<const EpochSamples> epoch = run_.epochs->of(at.epoch);
    const auto first = static_cast<std::size_t>(at.sample);
    const auto count = static_cast<std::size_t>(end - at.sample);
    const Augmentation augmentation =
        Augmentation{run_.config.seed, at.epoch, epoch->repeats}.part(first, count);
    found = not_finite_samples(source, fed(source), std::span(epoch->samples).subspan(first, count),
                               &augmentation);
  }
  return found;
}

std::string with_float16_advice(const Run& run, const char* fix) {
  const Graph& graph = run.runner->main_program().program->lowered().graph;
  const bool computes_in_float16 =
      std::any_of(graph.values.begin(), graph.values.end(),
                  [](const Value& value) { return value.type.dtype == DType::float16; });
  if (!computes_in_float16) return fix;
  return std::string(
             "float16 ends at 65504: name operators in precision.keep_float32, or set "
             "precision.compute = \"bfloat16\"; where float32 fails as well, ") +
         fix;
}

bool is_on_all_ranks(const Run& run, const char* name, bool is_so) {
  const std::vector<std::string> all = gathered(run.ranks(), name, is_so ? "yes" : "no");
  return std::count(all.begin(), all.end(), "no") == 0;
}

}  // namespace tandem
