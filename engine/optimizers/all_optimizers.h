// The list of optimizers, from which everything that depends on their kinds follows.
#pragma once

#include "engine/optimizers/adadelta.h"
#include "engine/optimizers/adafactor.h"
#include "engine/optimizers/adagrad.h"
#include "engine/optimizers/adam.h"
#include "engine/optimizers/adam8bit.h"
#include "engine/optimizers/adamax.h"
#include "engine/optimizers/ftrl.h"
#include "engine/optimizers/group_ftrl.h"
#include "engine/optimizers/lamb.h"
#include "engine/optimizers/lion.h"
#include "engine/optimizers/momentum.h"
#include "engine/optimizers/muon.h"
#include "engine/optimizers/nadam.h"
#include "engine/optimizers/radam.h"
#include "engine/optimizers/rmsprop.h"
#include "engine/optimizers/rowwise_adagrad.h"
#include "engine/optimizers/schedule_free.h"
#include "engine/optimizers/sgd.h"

namespace tandem {

template <class... Kinds>
struct OptimizerList {};

using Optimizers =
    OptimizerList<Sgd, Adam, Adagrad, RowwiseAdagrad, Ftrl, GroupFtrl, Lamb, Momentum, Rmsprop,
                  Adadelta, Adamax, Nadam, Radam, Lion, Adafactor, Muon, ScheduleFree, Adam8bit>;

}  // namespace tandem
