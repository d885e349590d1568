// The extension module `tandem_train._tandem`: the public C++ library for the package's Python
// files.
#include <nanobind/stl/string.h>

#include "python/binding/binding.h"
#include "python/binding/computing.h"
#include "python/binding/torch_threads.h"
#include "tandem/tandem.h"

NB_MODULE(_tandem, module) {
  using namespace tandem::python;
  // The interpreter may end while other modules still hold a Session.
  nb::set_leak_warnings(false);
  module.doc() = "The extension module: the public C++ library, one to one.";
  translate_errors();
  watch_forks();
  module.def("version", &tandem::api::version);
  module.def("end", &end_computing);
  module.def("set_core_sharing", &set_core_sharing, nb::arg("is_on"));
  add_options(module);
  add_session(module);
  add_trainer(module);
  add_tools(module);
}
