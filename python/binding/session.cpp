// `_tandem.Session`: a Session of the library for one thread at a time.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>

#include "python/binding/arrays.h"
#include "python/binding/binding.h"
#include "python/binding/computing.h"
#include "python/binding/torch_threads.h"
#include "tandem/tandem.h"

namespace tandem::python {
namespace {

class PythonSession {
 public:
  PythonSession(const std::string& model, std::int64_t batch_size,
                const std::vector<std::string>& settings, const api::Policy* policy) {
    session_.hold(compute(
        [&] { return std::make_unique<api::Session>(model, batch_size, settings, policy); }));
  }

  double step(const Named& feeds) {
    const Turn turn(is_taken_, name);
    const auto arrays = arrays_of(feeds);
    return compute([&] {
      const WithCores cores;
      return session_->step(arrays);
    });
  }

  Named predict(const Named& feeds) {
    const Turn turn(is_taken_, name);
    const auto arrays = arrays_of(feeds);
    const api::StopToken stop;
    return numpy_of(compute_stoppable(stop, [&] {
      const WithCores cores;
      return session_->predict(arrays, stop);
    }));
  }

  Named evaluate(const Named& feeds) {
    const Turn turn(is_taken_, name);
    const auto arrays = arrays_of(feeds);
    const api::StopToken stop;
    const auto values = compute_stoppable(stop, [&] {
      const WithCores cores;
      return session_->evaluate(arrays, stop);
    });
    nb::dict result;
    for (const auto& [metric, value] : values) result[text_object(metric)] = value;
    return result;
  }

  std::vector<std::string> parameter_names() {
    const Turn turn(is_taken_, name);
    std::vector<std::string> names;
    for (auto& [parameter, array] : read()) names.push_back(parameter);
    return names;
  }

  Named parameters() {
    const Turn turn(is_taken_, name);
    return numpy_of(read());
  }

  /// None where there is no such parameter.
  AnyObject parameter(const std::string& parameter) {
    const Turn turn(is_taken_, name);
    const auto all = read();
    const auto found = all.find(parameter);
    if (found == all.end()) return nb::none();
    return numpy_of(parameter, found->second);
  }

  void set_parameter(const std::string& parameter, nb::handle value) {
    const Turn turn(is_taken_, name);
    const api::Tensor array = array_of(parameter, value);
    compute([&] { session_->set_parameter(parameter, array); });
  }

  void set_learning_rate(double lr) {
    const Turn turn(is_taken_, name);
    compute([&] { session_->set_learning_rate(lr); });
  }
  double learning_rate() {
    const Turn turn(is_taken_, name);
    return session_->learning_rate();
  }
  std::uint64_t steps() {
    const Turn turn(is_taken_, name);
    return session_->steps();
  }
  void save_state(const std::string& path) {
    const Turn turn(is_taken_, name);
    compute([&] { session_->save_state(path); });
  }
  void restore_state(const std::string& path) {
    const Turn turn(is_taken_, name);
    compute([&] { session_->restore_state(path); });
  }
  void save(const std::string& path) {
    const Turn turn(is_taken_, name);
    compute([&] { session_->save(path); });
  }

 private:
  static constexpr const char* name = "Session";

  api::Tensors read() {
    return compute([&] { return session_->parameters(); });
  }

  std::atomic<bool> is_taken_{false};
  Held<api::Session> session_;
};

/// A copy; refused as an array for a Session is.
AnyObject to_numpy(const std::string& name, nb::handle array) {
  return numpy_of(name, array_of(name, array));
}

}  // namespace

void add_session(nb::module_& module) {
  module.def("to_numpy", &to_numpy, nb::arg("name"), nb::arg("array").none());
  nb::class_<PythonSession>(module, "Session")
      .def(nb::init<const std::string&, std::int64_t, const std::vector<std::string>&,
                    const api::Policy*>(),
           nb::arg("model"), nb::arg("batch_size"), nb::arg("settings"), nb::arg("policy").none())
      .def("step", &PythonSession::step, nb::arg("feeds"))
      .def("predict", &PythonSession::predict, nb::arg("feeds"))
      .def("evaluate", &PythonSession::evaluate, nb::arg("feeds"))
      .def("parameter_names", &PythonSession::parameter_names)
      .def("parameters", &PythonSession::parameters)
      .def("parameter", &PythonSession::parameter, nb::arg("name"))
      .def("set_parameter", &PythonSession::set_parameter, nb::arg("name"), nb::arg("value").none())
      .def("set_learning_rate", &PythonSession::set_learning_rate, nb::arg("lr"))
      .def("learning_rate", &PythonSession::learning_rate)
      .def("steps", &PythonSession::steps)
      .def("save_state", &PythonSession::save_state, nb::arg("path"))
      .def("restore_state", &PythonSession::restore_state, nb::arg("path"))
      .def("save", &PythonSession::save, nb::arg("path"));
}

}  // namespace tandem::python
