// `_tandem.Trainer`: a run of the library that reports to Python functions.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <exception>
#include <memory>

#include "api/program/fragments.h"
#include "python/binding/binding.h"
#include "python/binding/computing.h"
#include "python/binding/torch_threads.h"
#include "tandem/tandem.h"

namespace tandem::python {
namespace {

nb::dict numbers_by_name(const std::vector<std::pair<std::string, double>>& values) {
  nb::dict result;
  for (const auto& [name, value] : values) result[text_object(name)] = value;
  return result;
}

nb::dict fields_of(const api::Progress& p) {
  nb::dict fields;
  fields["step"] = p.step;
  fields["steps"] = p.steps;
  fields["epoch"] = p.epoch;
  fields["epochs"] = p.epochs;
  fields["evaluation"] = p.evaluation;
  fields["values"] = numbers_by_name(p.values);
  fields["norms"] = numbers_by_name(p.norms);
  fields["samples_per_second"] = p.samples_per_second;
  fields["seconds"] = p.seconds;
  fields["seconds_left"] = p.seconds_left;
  fields["data_wait"] = p.data_wait;
  return fields;
}

nb::dict fields_of(const api::MetricTable& table) {
  nb::list names, numbers;
  for (const std::string& name : table.names) names.append(text_object(name));
  for (const double number : table.numbers) numbers.append(number);
  nb::dict fields;
  fields["metric"] = text_object(table.metric);
  fields["names"] = names;
  fields["numbers"] = numbers;
  fields["is_matrix"] = table.is_matrix;
  fields["text"] = text_object(api::to_text(table));
  fields["html"] = text_object(api::metric_table_html(table));
  return fields;
}

nb::dict fields_of(const api::TrainResult& result) {
  nb::dict evaluation;
  for (const auto& [name, value] : result.evaluation) evaluation[text_object(name)] = value;
  nb::list tables, warnings;
  for (const api::MetricTable& table : result.tables) tables.append(fields_of(table));
  for (const std::string& warning : result.warnings) warnings.append(text_object(warning));
  nb::dict fields;
  fields["rank"] = result.rank;
  fields["run_dir"] = text_object(result.run_dir);
  fields["steps"] = result.steps;
  fields["loss"] = result.loss;
  fields["evaluation"] = evaluation;
  fields["tables"] = tables;
  fields["best_metric"] = text_object(result.best_metric);
  fields["best_value"] = result.best_value;
  fields["best_step"] = result.best_step;
  fields["interrupted"] = result.interrupted;
  fields["warnings"] = warnings;
  fields["html"] = text_object(api::train_result_html(result));
  return fields;
}

/// Calls the methods of a Python object (`on_progress`, `on_message`, `on_run_dir`) from threads
/// that do not have the GIL. The first exception that one of them raises stops the run; `raise`
/// raises it again. The listener refers to the object only during a call of the Trainer: a
/// reference that lasted longer could form a cycle that Python's garbage collector cannot free.
class Listener {
 public:
  explicit Listener(api::StopToken stop) : stop_(std::move(stop)) {}

  void begin(nb::handle object) {
    object_ = object;
    failure_ = nullptr;
  }
  void end() { object_ = nb::handle(); }
  template <class Arguments>
  void call(const char* method, const Arguments& arguments) {
    const nb::gil_scoped_acquire held;
    if (!object_.is_valid() || failure_) return;
    try {
      object_.attr(method)(arguments());
    } catch (nb::python_error&) {
      failure_ = std::current_exception();
      stop_.request_stop();
    }
  }
  /// Raises what was kept.
  void raise() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  api::StopToken stop_;
  nb::handle object_;
  std::exception_ptr failure_;
};

/// Computes what reports to `object` meanwhile.
template <class Function>
auto compute_listening(Listener& listener, nb::handle object, const api::StopToken& stop,
                       Function&& function) {
  listener.begin(object);
  struct End {
    Listener& listener;
    ~End() { listener.end(); }
  };
  const End end{listener};
  try {
    auto result = compute_stoppable(stop, std::forward<Function>(function));
    listener.raise();
    return result;
  } catch (const Error&) {
    listener.raise();
    throw;
  } catch (const nb::python_error&) {
    listener.raise();
    throw;
  }
}

class PythonTrainer {
 public:
  PythonTrainer(const std::string& config, api::TrainOptions options, nb::handle listener)
      : listener_(stop_) {
    options.stop = stop_;
    options.on_progress = [this](const api::Progress& p) {
      listener_.call("on_progress", [&] { return fields_of(p); });
    };
    options.on_message = [this](const std::string& text) {
      listener_.call("on_message", [&] { return text_object(text); });
    };
    options.on_run_dir = [this](const std::string& path) {
      listener_.call("on_run_dir", [&] { return text_object(path); });
    };
    trainer_.hold(compute_listening(listener_, listener, stop_, [&] {
      return std::make_unique<api::Trainer>(config, std::move(options));
    }));
  }

  Named run(nb::handle listener) {
    const Turn turn(is_taken_, "Trainer");
    return fields_of(compute_listening(listener_, listener, stop_, [&] {
      const WithCores cores;
      return trainer_->run();
    }));
  }

  nb::str summary() {
    const Turn turn(is_taken_, "Trainer");
    return text_object(trainer_->summary());
  }

  void stop() const { stop_.request_stop(); }

 private:
  api::StopToken stop_;  // one for each Trainer, also where several get the same options
  Listener listener_;
  std::atomic<bool> is_taken_{false};
  Held<api::Trainer> trainer_;
};

}  // namespace

void add_trainer(nb::module_& module) {
  nb::class_<PythonTrainer>(module, "Trainer")
      .def(nb::init<const std::string&, api::TrainOptions, nb::handle>(), nb::arg("config"),
           nb::arg("options"), nb::arg("listener"))
      .def("run", &PythonTrainer::run, nb::arg("listener"))
      .def("summary", &PythonTrainer::summary)
      .def("stop", &PythonTrainer::stop);
}

}  // namespace tandem::python
