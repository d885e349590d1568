// Unpacks weights, one thread for a number.
#include "kernels/cuda/launching.h"
#include "kernels/cuda/products/packed_numbers.h"
#include "kernels/cuda/reductions/elements.h"
#include "kernels/shared/block/each_index.h"
#include "kernels/shared/packed_code.h"

namespace tandem::cuda {
namespace {

using reductions::Floats;

/// Zero points: bytes or floats.
struct ZeroPoints {
  Floats all;  // bytes or floats; null: `same` everywhere
  float same = 0;

  TANDEM_HOST_DEVICE float get(std::int64_t i) const {
    if (!all) return same;
    if (all.type == DType::uint8) return static_cast<const std::uint8_t*>(all.data)[i];
    if (all.type == DType::int8) return static_cast<const std::int8_t*>(all.data)[i];
    return all.get(i);
  }
};

struct UnpackNumbers {
  static constexpr int block_threads = 256;

  const std::uint8_t* data;
  Floats numbers;  // instead of codes; null: there are codes
  Floats scales;
  ZeroPoints zeros;
  CodeForm form;
  bool has_table;
  float table[16];
  std::int64_t row_bytes, all_columns, row_block, column_block, scale_columns;
  PackedPart part;
  float* to;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, part.rows * part.columns, [&](std::int64_t i) {
      const std::int64_t r = part.first_row + i / part.columns;
      const std::int64_t c = part.first_column + i % part.columns;
      to[i] = number(r, c);
    });
  }

  TANDEM_HOST_DEVICE float number(std::int64_t r, std::int64_t c) const {
    if (numbers) return numbers.get(r * all_columns + c);
    const int in_byte = form.in_byte();
    const int code = form.code(data[r * row_bytes + c / in_byte], static_cast<int>(c % in_byte));
    const std::int64_t at = r / row_block * scale_columns + c / column_block;
    const float scale = scales.get(at);
    return (has_table ? table[code] : static_cast<float>(code) - zeros.get(at)) * scale;
  }
};

}  // namespace

void unpack_numbers(GpuContext& gpu, const PackedMatrix& matrix, const PackedPart& part, float* to,
                    void* queue) noexcept {
  const std::int64_t count = part.rows * part.columns;
  if (count == 0) return;
  const PackedFormat& format = matrix.format;
  const Packing& packing = matrix.packing;
  UnpackNumbers body{};
  body.data = matrix.data;
  if (!format.has_codes()) body.numbers = Floats(matrix.data, format.data);
  body.scales = Floats(matrix.scales, matrix.scale_type);
  body.zeros = {Floats(matrix.zeros, matrix.zero_type), static_cast<float>(packing.zero)};
  body.form = {format.bits, format.is_signed, format.high_first};
  body.has_table = format.has_table;
  const std::array<float, 16>& table = packed_table(format.kind);
  std::copy(table.begin(), table.end(), body.table);
  body.row_bytes = packing.row_bytes;
  body.all_columns = packing.columns;
  body.row_block = packing.row_block;
  body.column_block = packing.column_block;
  body.scale_columns = packing.scale_columns();
  body.part = part;
  body.to = to;
  const LaunchShape shape =
      spread(count, gpu.properties.multiprocessors, UnpackNumbers::block_threads);
  gpu.launch(launch_of("unpack_numbers", shape, body), queue);
}

std::optional<std::string> refuse_packed(const KernelRequest& request) {
  for (const Operand& operand : request.inputs) {
    if (operand.present && operand.type.dtype == DType::float64) return "numbers of float64";
  }
  const DType y = request.outputs[0].type.dtype;
  if (y != DType::float32) return "computes float32, not " + std::string(name_of(y));
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> prepare_unpack(const KernelRequest& request, const Gpu& gpu) {
  return prepared([gpu, matrix = packed_operand(request, 0),
                   has_zeros = request.is_present(2)](const KernelArguments& x) {
    const PackedMatrix from = at_addresses(matrix, x, 0, has_zeros);
    unpack_numbers(*gpu, from, {0, from.packing.rows, 0, from.packing.columns},
                   static_cast<float*>(x.outputs[0]), x.queue);
  });
}

}  // namespace tandem::cuda
