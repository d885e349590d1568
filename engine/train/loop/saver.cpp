#include "engine/train/loop/saver.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/train/checkpoints/checkpoint_room.h"
#include "engine/train/checkpoints/rank_checkpoint.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/group/gathered.h"
#include "engine/train/group/row_exchange.h"

namespace tandem {

void Saver::resume(bool is_behind, std::vector<NamedTensor> carried) {
  step_ = run_.position.step;
  is_behind_ = is_behind;
  carried_ = std::move(carried);
}

void Saver::warn_of_room(const std::string& folder) {
  const CheckpointSources checkpoint = sources();
  std::uint64_t bytes = 0;
  for (const std::vector<TensorSource>* tensors : {&checkpoint.model, &checkpoint.optimizer}) {
    for (const TensorSource& tensor : *tensors) bytes += tensor.type.bytes();
  }
  const std::int64_t kept = std::max<std::int64_t>(run_.config.checkpoint.keep, 1);
  const std::string warning = room_warning(free_bytes(folder), bytes, kept);
  if (!warning.empty()) log_.say("warning    " + warning);
}

void Saver::save(bool finished, bool keep_all) {
  const bool was_saved = is_saved();
  if (was_saved && !is_behind_) return;
  run_.position.finished = finished;
  guard_.refuse_bad_states();
  CheckpointOptions options;
  options.shard_bytes = static_cast<std::uint64_t>(run_.config.checkpoint.shard_mib) << 20;
  const std::string folder = run_.directory->checkpoints();
  const CheckpointSources all = sources();
  if (!all.shards.empty()) {
    RowExchange exchange(run_.states, *run_.parts.devices[0]);
    write_rank_checkpoint(folder, all, options, run_.ranks(), exchange);
  }
  on_all_ranks(run_.ranks(), "checkpoint", [&] {
    if (run_.rank() > 0) return;
    if (all.shards.empty()) write_checkpoint(folder, all, options);
    if (best_.is_now()) best_.write();  // before the one that it names goes
    prune_checkpoints(folder, keep_all ? 0 : run_.config.checkpoint.keep, run_.position.best_step);
  });
  step_ = run_.position.step;
  is_behind_ = false;
  log_.report_saved(folder + "/" + checkpoint_name(step_));
  if (!run_.config.log.histograms_every && !was_saved) log_.log_histograms();
}

CheckpointSources Saver::sources() const {
  CheckpointSources sources = sources_of(run_.states);
  sources.position = run_.position;
  const FrozenSoFar frozen = run_.runner->frozen_so_far();
  sources.position.thawed = frozen.thawed;
  sources.position.missed_steps = frozen.missed_steps;
  sources.position.plateaus = run_.runner->schedules().plateaus();
  sources.aliases = run_.parts.model->loading_parts().aliases;
  std::set<std::string> held;
  for (const TensorSource& source : sources.model) held.insert(source.name);
  std::erase_if(sources.aliases, [&](const auto& alias) { return !held.contains(alias.second); });
  leave_out_fixed_loss_scale(sources, run_.config.precision);
  for (TensorSource& source : sources_of(carried_)) sources.optimizer.push_back(std::move(source));
  return sources;
}

}  // namespace tandem
