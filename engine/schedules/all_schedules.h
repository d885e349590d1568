// The list of schedules, in the order of messages and docs. Each is a struct of one file: its name,
// its keys (`visit`), whether it depends on the length of the run, and the factor of a step.
#pragma once

#include <variant>

#include "engine/schedules/constant.h"
#include "engine/schedules/cosine.h"
#include "engine/schedules/cosine_restarts.h"
#include "engine/schedules/exponential.h"
#include "engine/schedules/inverse_square_root.h"
#include "engine/schedules/linear.h"
#include "engine/schedules/multistep.h"
#include "engine/schedules/one_cycle.h"
#include "engine/schedules/plateau.h"
#include "engine/schedules/polynomial.h"
#include "engine/schedules/step.h"

namespace tandem {

template <class... More>
using SchedulesAnd =
    std::variant<ConstantSchedule, CosineSchedule, StepSchedule, LinearSchedule, MultistepSchedule,
                 ExponentialSchedule, PolynomialSchedule, InverseSquareRootSchedule,
                 CosineRestartsSchedule, OneCycleSchedule, More...>;

using ScheduleKind = SchedulesAnd<PlateauSchedule>;
/// Kinds that may be parts of a sequence: none that looks at evaluations, since it would have to
/// know which of them are its own.
using SchedulePartKind = SchedulesAnd<>;

}  // namespace tandem
