// Session::evaluate: loss and metrics of what is fed, in inference form.
#include <string>
#include <utility>
#include <vector>

#include "api/train/check_feeds.h"
#include "api/train/host_tensors.h"
#include "api/train/moved_from.h"
#include "api/train/session/session_impl.h"
#include "engine/metrics/metric.h"

namespace tandem::api {

/// The samples of the present call; all calls have the same fields and number of samples.
class FedSamples final : public tandem::DataSource {
 public:
  explicit FedSamples(std::shared_ptr<const tandem::DataSource> first) : now_(std::move(first)) {}
  void replace(std::shared_ptr<const tandem::DataSource> next) { now_ = std::move(next); }

  const std::vector<tandem::DataField>& fields() const override { return now_->fields(); }
  std::int64_t samples() const override { return now_->samples(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    now_->fill(field, samples, augmentation, to);
  }
  std::string describe(int field, std::int64_t sample) const override {
    return now_->describe(field, sample);
  }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    now_->check_range(field, limit, ignore);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    now_->check_numbers(field, least, most, expected);
  }

 private:
  std::shared_ptr<const tandem::DataSource> now_;
};

namespace {

/// Data fields that metrics read besides what the loss reads.
std::vector<std::string> fields_of_metrics(const RunConfig& config) {
  std::vector<std::string> fields;
  for (const MetricConfig& metric : config.eval.metrics) {
    if (!metric.by.empty()) fields.push_back(metric.by);
    if (std::string group = group_field(metric); !group.empty()) fields.push_back(std::move(group));
  }
  return fields;
}

}  // namespace

std::map<std::string, double> Session::evaluate(const Tensors& feeds, const StopToken& stop) {
  Impl& my = held(impl_, session_handle);
  my.check_stop();
  refuse_stopped(stop);
  FieldTypes types;
  for (const auto& [name, tensor] : feeds) types[name] = checked_type(tensor, name);
  my.refuse_unknown(feeds, fields_of_metrics(my.config));
  const std::shared_ptr<const tandem::DataSource> source = source_of_feeds(feeds, types);
  if (source == nullptr)
    throw Error(ErrorKind::usage, Diagnostic{.message = "evaluate needs at least one fed tensor"});
  const std::int64_t samples = source->samples();
  my.check_fed_values(feeds, types, samples);
  FedEvaluation& fed = my.evaluations[samples];
  if (fed.evaluation == nullptr || fed.types != types) {
    fed.evaluation.reset();
    fed.samples = std::make_shared<FedSamples>(source);
    fed.evaluation =
        std::make_unique<Evaluation>(my.config, my.parts, fed.samples, my.states, my.arenas);
    fed.types = types;
    my.write_states();
  } else {
    fed.samples->replace(source);
    fed.evaluation->note_other_samples();
  }
  const SessionWeights in_use = my.weights_in_use();
  const auto values = fed.evaluation->run([&](std::int64_t) {
    my.check_stop();
    refuse_stopped(stop);
    return false;
  });
  return {values->begin(), values->end()};
}

}  // namespace tandem::api
