// The parts of the extension module `tandem_train._tandem`.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tandem/error.h"

namespace tandem::python {

namespace nb = nanobind;

/// What signatures call dict[str, Any] and Any: the stub of the module is made from them.
using Named = nb::typed<nb::dict, nb::str, nb::any>;
using AnyObject = nb::typed<nb::object, nb::any>;

/// Errors of the library become exceptions of `tandem_train._errors`.
void translate_errors();

void add_session(nb::module_& module);
void add_trainer(nb::module_& module);
void add_options(nb::module_& module);
void add_tools(nb::module_& module);

/// Text of the library as a str; bytes that are no UTF-8 become \xNN.
nb::str text_object(const std::string& text);

/// Throws Error{usage}.
[[noreturn]] void refuse(Diagnostic diagnostic);

}  // namespace tandem::python
