// The keys of optimizer.schedule.
#include "engine/training/config/key_visitor.h"

namespace tandem {
namespace {

/// Schedules know no times.
void refuse_time(const TableReader& table, std::string_view key,
                 const std::optional<Duration>& duration) {
  if (duration && duration->unit == Duration::Unit::seconds)
    table.report(table.find(key)->where, key, "a schedule counts steps or epochs");
}

void visit_final(KeyVisitor& v, double& final) {
  v.key("final", final, at_least(0), "learning rate at the end of the run");
}

}  // namespace

static void visit(KeyVisitor&, ConstantSchedule&) {}
static void visit(KeyVisitor& v, CosineSchedule& c) { visit_final(v, c.final); }
static void visit(KeyVisitor& v, LinearSchedule& c) { visit_final(v, c.final); }
static void visit(KeyVisitor& v, StepSchedule& c) {
  v.key("step_size", c.step_size, required, "how long one stair lasts");
  v.key("gamma", c.gamma, at_least(0), "factor from stair to stair");
  v.when_read([&](const TableReader& table) { refuse_time(table, "step_size", c.step_size); });
}

void visit(KeyVisitor& v, ScheduleConfig& c) {
  v.key("kind", c.kind, required, "the shape after the warm-up");
  v.key("warmup", c.warmup, "linear rise from 0");
  v.when_read([&](const TableReader& table) { refuse_time(table, "warmup", c.warmup); });
  v.of_kind(c.kind);
}

}  // namespace tandem
