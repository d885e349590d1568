#include "importer/file/adapter_operands.h"

namespace tandem {
namespace {

HostTensor transposed(const HostTensor& from) {
  const HostTensor source = from.converted(DType::float64);
  const std::int64_t rows = from.shape()[0], columns = from.shape()[1];
  HostTensor to(TensorType{DType::float64, {columns, rows}});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      to.as<double>()[static_cast<std::size_t>(c * rows + r)] =
          source.as<double>()[static_cast<std::size_t>(r * columns + c)];
  }
  return to.converted(from.dtype());
}

HostTensor scaled(const HostTensor& from, double scale) {
  HostTensor to = from.converted(DType::float64).clone();
  for (double& x : to.as<double>()) x *= scale;
  return to.converted(from.dtype());
}

}  // namespace

AdapterOperands adapter_operands(const WeightAdapters& adapters) {
  const bool turns = adapters.out_first && adapters.a.shape().size() == 2;
  AdapterOperands operands{adapters.weight + "/lora_a", adapters.weight + "/lora_b",
                           turns ? transposed(adapters.a) : adapters.a,
                           turns ? transposed(adapters.b) : adapters.b};
  if (adapters.are_inputs) operands.b = scaled(operands.b, adapters.scale);
  return operands;
}

}  // namespace tandem
