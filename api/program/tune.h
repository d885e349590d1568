// Searching settings of a run: many short trainings, and a sweep of the learning rate. Standard
// types only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace tandem::api {

struct TuneOptions {
  /// What varies: "optimizer.lr=log(1e-5,1e-1)" (even in the logarithm), "x=uniform(a,b)", or
  /// "batch_size=[32,64]" (one of these values, as train.toml has them). Numbers of keys that take
  /// whole numbers are whole. At least one.
  std::vector<std::string> over;
  std::int64_t trials = 20;  // 1 to 10000; fewer where lists have fewer combinations
  /// Successive halving by this factor: all trials run for a part of the length, then one in
  /// `halving` continues to `halving` times that length, and so on up to the whole. 0: all run
  /// whole; else 2 to 16.
  int halving = 0;
  std::uint64_t seed = 0;
  /// "loss", or one of eval.metrics that is one number; "": eval.best, else loss. On held-out data
  /// where there is any, else the loss of the last step.
  std::string metric;
  std::string to;  // the folder of the trials; "": runs/NAME next to the configuration
  std::vector<std::string> overrides;                  // for all trials
  std::vector<std::string> place, devices;             // as in TrainOptions
  std::function<void(const std::string&)> on_message;  // a line a trial, and messages of trials
  /// On request the trial under way saves and ends, and the report covers what there is.
  StopToken stop;
};

struct TuneReport : Report {
  std::string folder;   // has tune.json, tune.csv, tune.svg, trial-01, trial-02, ...
  std::string command;  // trains with the best settings; "" where no trial has a value
  int finished = 0, failed = 0;
  bool interrupted = false;
};
/// Random search, one trial after the other. Trials that the folder has from an earlier search with
/// the same settings are not run again, interrupted ones continue. A trial that fails is a row of
/// the table. Throws Error{usage} with everything that is wrong before anything runs.
TuneReport tune(const std::string& config_path, const TuneOptions& options);

struct LrRangeOptions {
  double from = 1e-7, to = 10;  // range of optimizer.lr; groups follow in proportion
  std::int64_t steps = 100;
  std::string folder;  // for lr_range.csv and lr_range.svg; "": the configuration's
  std::vector<std::string> overrides;
  std::vector<std::string> place, devices;
  std::function<void(const Progress&)> on_progress;
  std::function<void(const std::string&)> on_message;
  StopToken stop;  // on request the report covers the steps so far
};
struct LrRangeReport : Report {
  double steepest = 0;  // the rate at which the smoothed loss falls fastest; NaN: it does not
  double diverged = 0;  // the rate at which it was 4 times its least; NaN: up to `to` it was not
  bool interrupted = false;
};
/// The learning-rate range test (Smith 2015): the rate rises from step to step in equal factors.
/// Nothing is left but the two files. Throws what a Trainer throws.
LrRangeReport lr_range(const std::string& config_path, const LrRangeOptions& options);

}  // namespace tandem::api
