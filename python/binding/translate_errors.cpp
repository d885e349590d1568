// Raises the library's errors as Python exceptions with all their diagnostics.
#include <filesystem>
#include <new>
#include <system_error>

#include "python/binding/binding.h"

namespace tandem::python {
namespace {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::runtime:
      return "runtime";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::does_not_fit:
      return "does_not_fit";
    case ErrorKind::data:
      return "data";
    case ErrorKind::diverged:
      return "diverged";
  }
  return "runtime";
}

void raise_error(const Error& error) {
  try {
    const nb::module_ errors = nb::module_::import_("tandem_train._errors");
    nb::list diagnostics;
    for (const Diagnostic& d : error.diagnostics()) {
      diagnostics.append(errors.attr("Diagnostic")(
          text_object(d.message), text_object(d.file), d.line, d.column, text_object(d.path),
          text_object(d.expected), text_object(d.got), text_object(d.fix)));
    }
    const nb::object raised =
        errors.attr("error_of")(name_of(error.kind()), diagnostics, text_object(error.what()));
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  } catch (nb::python_error& failure) {  // such as MemoryError
    failure.restore();
  }
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise_error(error);
  } catch (const std::bad_alloc&) {
    raise_error(Error(ErrorKind::does_not_fit,
                      Diagnostic{.message = "out of memory", .fix = "use a smaller batch"}));
  } catch (const std::filesystem::filesystem_error& error) {
    raise_error(Error(ErrorKind::runtime,
                      Diagnostic{.message = "the system refused: " + error.code().message(),
                                 .file = error.path1().string()}));
  } catch (const std::system_error& error) {
    raise_error(Error(ErrorKind::runtime,
                      Diagnostic{.message = "the system refused: " + error.code().message()}));
  }
}

}  // namespace

void translate_errors() { nb::register_exception_translator(translate); }

nb::str text_object(const std::string& text) {
  PyObject* const object =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(object);
}

void refuse(Diagnostic diagnostic) { throw Error(ErrorKind::usage, std::move(diagnostic)); }

}  // namespace tandem::python
