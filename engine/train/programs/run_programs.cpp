#include "engine/train/programs/run_programs.h"

#include <algorithm>

namespace tandem {
namespace {

std::vector<MicroBatchShape> shapes_of(const RunConfig& config, const RunCounts& counts) {
  const std::int64_t micro_batch = config.micro_batch_size();
  const auto needed_by = [&](std::int64_t samples) {
    const bool drop_last = config.data && config.data->drop_last;
    return needed_shapes(samples, config.batch_size, micro_batch, drop_last, counts.place);
  };
  if (counts.samples == 0) return needed_by(config.batch_size);
  std::vector<MicroBatchShape> shapes = needed_by(counts.samples);
  if (counts.samples_read == 0) return shapes;
  // Resumed with another batch size, this epoch may end with a step of its own.
  for (const MicroBatchShape& shape :
       needed_by(std::max<std::int64_t>(0, counts.samples - counts.samples_read))) {
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

std::vector<StepProgram> step_programs(const RunConfig& config, const RunCounts& counts) {
  const std::int64_t full =
      counts.samples == 0 ? config.batch_size : std::min(config.batch_size, counts.samples);
  const std::int64_t longest = counts.lengths.empty() ? 0 : counts.lengths.back();
  const std::vector<MicroBatch> of_full_step =
      micro_batches_of_step(full, config.micro_batch_size(), counts.place);
  const auto program_of = [&](MicroBatchShape shape, std::int64_t length) {
    StepProgram program;
    if (length == longest) {
      program.times = std::count_if(of_full_step.begin(), of_full_step.end(),
                                    [&](const MicroBatch& one) { return shape_of(one) == shape; });
    }
    // Rows are fetched ahead only for a step of the same shape, since the states that hold them are
    // as long as the ids of one program. With several ranks each updates the rows of all, which the
    // rows that one of them looks up next do not include.
    program.takes_rows_ahead =
        counts.place.ranks == 1 && length == longest && shape.step == full &&
        (shape.kind == MicroBatchKind::whole || shape.kind == MicroBatchKind::last);
    shape.length = length;
    program.shape = shape;
    return program;
  };
  const std::vector<MicroBatchShape> shapes = shapes_of(config, counts);
  std::vector<StepProgram> programs;
  for (const MicroBatchShape& shape : shapes) programs.push_back(program_of(shape, longest));
  // The last step of an epoch has the longest samples.
  for (std::size_t i = counts.lengths.size(); i-- > 1;) {
    for (const MicroBatchShape& shape : shapes) {
      if (shape.step == config.batch_size)
        programs.push_back(program_of(shape, counts.lengths[i - 1]));
    }
  }
  return programs;
}

bool shares_parameters(const Shardings& shards) {
  return std::any_of(shards.begin(), shards.end(),
                     [](const auto& shard) { return !keeps_parameter_whole(shard.second); });
}

SampleShare evaluated_share(const RunConfig& config, std::int64_t samples, const RankPlace& place) {
  if (!config.loss.compares_samples()) return share_of(samples, place);
  const std::int64_t batch = config.batch_size;
  const SampleShare batches = share_of((samples + batch - 1) / batch, place);
  const std::int64_t first = std::min(samples, batches.first * batch);
  return {first, std::min(samples - first, batches.count * batch)};
}

EvaluationPrograms evaluation_programs(const RunConfig& config, const RunCounts& counts,
                                       bool exchanges) {
  const RankPlace first{0, counts.place.ranks};  // no rank has more samples than rank 0
  const std::int64_t samples = evaluated_share(config, counts.eval_samples, counts.place).count;
  // As large as a training step's micro-batch on one rank, so that it takes no more memory; but a
  // loss that compares samples has the batches that one process has.
  const std::int64_t most = config.loss.compares_samples()
                                ? config.batch_size
                                : share_of(config.micro_batch_size(), first).count;
  EvaluationPrograms result;
  result.micro_batch = std::max<std::int64_t>(1, std::min(most, samples));
  if (exchanges) {
    const std::int64_t largest = evaluated_share(config, counts.eval_samples, first).count;
    result.micro_batch = std::max<std::int64_t>(1, std::min(most, largest));
    result.rounds = (largest + result.micro_batch - 1) / result.micro_batch;
  }
  const auto add = [&](std::int64_t size) {
    if (size > 0 && std::find(result.sizes.begin(), result.sizes.end(), size) == result.sizes.end())
      result.sizes.push_back(size);
  };
  add(std::min(result.micro_batch, samples));
  add(samples % result.micro_batch);
  if (result.rounds > 0 && samples == 0) add(1);
  return result;
}

RunPrograms programs_of(const RunConfig& config, const RunCounts& counts, const RunLength& length,
                        bool exchanges) {
  RunPrograms programs;
  programs.steps = step_programs(config, counts);
  if (counts.eval_samples > 0) programs.evaluation = evaluation_programs(config, counts, exchanges);
  programs.phases = freeze_phases(config.parameters.freeze, length);
  return programs;
}

}  // namespace tandem
