// Training on tensors that the caller feeds step by step.
#pragma once

#include "tandem/error.h"
#include "tandem/stop.h"
#include "tandem/tensor.h"

namespace tandem::api::inline v1 {

class Model;           // tandem/model.h
class Policy;          // tandem/policy.h
struct SessionConfig;  // tandem/session_config.h

/// A model in training, fed by the caller: `step` runs forward, backward and update. The rules for threads and for
/// moved-from objects are those of a Trainer.
class Session {
 public:
  /// `settings` are keys of train.toml: "optimizer.kind=adamw", "seed=1". Those of the model, its parameters, loss,
  /// optimizer, precision, policy and device are honoured, with durations in steps; `steps` is the length of a cosine
  /// or linear schedule, `eval.metrics` is for `evaluate`. `policy`: one that is no file; null: the key's. Throws
  /// Error{usage} with everything that is wrong, and by name for each key that a Session does not honour.
  Session(const std::string& model_path, std::int64_t batch_size, const std::vector<std::string>& settings,
          const Policy* policy = nullptr);
  explicit Session(const SessionConfig& config);             ///< structs in place of texts; else as above
  Session(const Model& model, const SessionConfig& config);  ///< throws as the Trainer of a Model
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// One tensor per fed input of the model and the loss, by name, batch on axis 0: batch_size samples or fewer, over
  /// which the loss is a mean. A program is kept for each batch size. Returns the loss. Throws Error{usage} for other
  /// feeds; no step was taken then. Throws Error{data} for ids and labels out of range, and Error{diverged} naming the
  /// step for a loss that is not finite or a loss scale that does not help: that step counts, and its update was made,
  /// unless the loss scale left it out, which is no error; the session continues from there.
  double step(const Tensors& feeds);
  /// Outputs of the model in inference form; inputs that only the loss takes are ignored. More than batch_size samples
  /// are computed in parts, unless samples interact in the model; a program is kept for each batch size. Throws as
  /// `step`, and Error{runtime} where `stop` is requested before or between parts; the session can go on.
  Tensors predict(const Tensors& feeds, const StopToken& stop = {});
  /// Loss, its named terms and `eval.metrics` that are one number, by name, in inference form, exact over all samples
  /// of the feeds, which may be more than batch_size. Nothing is trained. Throws the errors of `predict`.
  std::map<std::string, double> evaluate(const Tensors& feeds, const StopToken& stop = {});
  /// Parameters by the file's initializer names, with the values that `predict` uses; before the first step those of the
  /// file, or as [parameters] init and load say.
  Tensors parameters() const;
  /// Throws Error{usage} for an unknown name, another shape or another type.
  void set_parameter(const std::string& name, const Tensor& value);
  /// From the next step on `lr` replaces optimizer.lr: groups keep their ratio to it, and schedules multiply it. Throws
  /// Error{usage} where it is negative or no number, or where the model's own training_info says how it trains.
  void set_learning_rate(double lr);
  /// What was set, else optimizer.lr; schedules multiply it. Throws as `set_learning_rate`.
  double learning_rate() const;
  std::uint64_t steps() const;  ///< steps that were taken, those before a restored state included
  /// Saves all that the next steps depend on as one .safetensors file, which appears once it is whole: parameters and
  /// statistics, states of optimizers and averages, loss scale, number of steps, the learning rate that was set.
  void save_state(const std::string& path) const;
  /// Continues from a saved state, bit by bit like the session that saved it. Throws Error{usage|data} where the file
  /// is not one, or one of another model, optimizer or seed; nothing has changed then.
  void restore_state(const std::string& path);
  /// Saves the model as .onnx, .safetensors or .npz, which appears once it is whole. Else throws Error{usage|runtime}.
  void save(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::api::inline v1
