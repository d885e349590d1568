// The parts of the extension module `tandem_train._tandem`.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tandem/error.h"

namespace tandem::python {

namespace nb = nanobind;

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
