// Models of the C library.
#include "tandem/model.h"

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/c/guarded.h"
#include "api/c/structs.h"
#include "api/c/texts.h"
#include "tandem/c.h"

namespace tandem::c_library {

/// What a TandemPort points to.
struct PortText {
  const api::ModelPort* port;
  std::vector<std::int64_t> shape;
  std::vector<const char*> dimensions;
};

namespace {

std::vector<PortText> port_texts(const std::vector<api::ModelPort>& ports) {
  std::vector<PortText> texts;
  for (const api::ModelPort& port : ports) {
    PortText& text = texts.emplace_back(PortText{&port, {}, {}});
    for (const auto& dim : port.dims) {
      const auto* const extent = std::get_if<std::int64_t>(&dim);
      text.shape.push_back(extent != nullptr ? *extent : -1);
      text.dimensions.push_back(extent != nullptr ? nullptr : std::get<std::string>(dim).c_str());
    }
  }
  return texts;
}

template <class T>
const T& element(const std::vector<T>& all, std::size_t index, const char* what) {
  if (index < all.size()) return all[index];
  throw bad_argument("index", std::string("there is no such ") + what,
                     "less than " + std::to_string(all.size()), std::to_string(index));
}

void write_port(const PortText& text, TandemPort* to, const char* name) {
  TandemPort written{};
  written.name = text.port->name.c_str();
  written.shape = text.shape.data();
  written.dimensions = text.dimensions.data();
  written.dtype = text.port->dtype ? static_cast<std::int32_t>(*text.port->dtype) : -1;
  written.rank = static_cast<std::int32_t>(text.shape.size());
  write_struct(written, to, name);
}

}  // namespace
}  // namespace tandem::c_library

struct TandemModel {
  explicit TandemModel(tandem::api::Model opened)
      : model(std::move(opened)),
        inputs(tandem::c_library::port_texts(model.inputs())),
        outputs(tandem::c_library::port_texts(model.outputs())) {}

  tandem::api::Model model;
  std::vector<tandem::c_library::PortText> inputs, outputs;
};

using namespace tandem::c_library;

TandemStatus tandem_model_open(const char* path, const TandemModelOptions* options,
                               TandemModel** model) {
  return guarded([&] {
    TandemModel*& result = made(model, "model");
    tandem::api::ModelOptions wanted;
    if (options != nullptr) {
      const TandemModelOptions given = read_struct(options, "options");
      wanted.bind = sizes_of(given.bind, "options.bind");
      if (given.batch_norm != nullptr) wanted.batch_norm = given.batch_norm;
    }
    result = new TandemModel(tandem::api::Model(&required(path, "path"), wanted));
  });
}

TandemStatus tandem_model_info(const TandemModel* model, TandemModelInfo* info) {
  return guarded([&] {
    const tandem::api::Model& my = required(model, "model").model;
    TandemModelInfo written{};
    written.inputs = my.inputs().size();
    written.outputs = my.outputs().size();
    written.parameters = my.parameters().size();
    written.problems = my.problems().size();
    written.text = my.text().c_str();
    written.json = my.json().c_str();
    write_struct(written, info, "info");
  });
}

TandemStatus tandem_model_input(const TandemModel* model, size_t index, TandemPort* input) {
  return guarded([&] {
    write_port(element(required(model, "model").inputs, index, "input"), input, "input");
  });
}

TandemStatus tandem_model_output(const TandemModel* model, size_t index, TandemPort* output) {
  return guarded([&] {
    write_port(element(required(model, "model").outputs, index, "output"), output, "output");
  });
}

TandemStatus tandem_model_parameter(const TandemModel* model, size_t index,
                                    TandemParameter* parameter) {
  return guarded([&] {
    const tandem::api::ModelParameter& from =
        element(required(model, "model").model.parameters(), index, "parameter");
    TandemParameter written{};
    written.name = from.name.c_str();
    written.path = from.path.c_str();
    written.reason = from.reason.c_str();
    written.shape = from.shape.data();
    written.dtype = static_cast<int32_t>(from.dtype);
    written.rank = static_cast<int32_t>(from.shape.size());
    written.trains = from.trains ? 1 : 0;
    written.is_buffer = from.is_buffer ? 1 : 0;
    write_struct(written, parameter, "parameter");
  });
}

TandemStatus tandem_model_problem(const TandemModel* model, size_t index,
                                  TandemDiagnostic* problem) {
  return guarded([&] {
    write_diagnostic(element(required(model, "model").model.problems(), index, "problem"), problem,
                     "problem");
  });
}

void tandem_model_close(TandemModel** model) {
  if (model == nullptr) return;
  delete *model;
  *model = nullptr;
}
