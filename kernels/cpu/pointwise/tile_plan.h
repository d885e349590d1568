// How a TileProgram walks its index space. A tile is a block of at most 1,024 elements: some
// indices of one axis (the cut) and all of the axes after it. Tiles are numbered by a unit and,
// within a reduction, by a step: the steps of a unit are summed.
#pragma once

#include "kernels/cpu/pointwise/tile_program.h"

namespace tandem {

constexpr int max_tile_axes = 8;
constexpr std::size_t register_bytes = tile_elements * sizeof(float);

// Where an operand's tile comes from.
enum class TileAccess : std::uint8_t {
  unused,
  direct,   // contiguous in memory: the address of the tile
  pattern,  // the same for all tiles: copied once
  staged,   // copied or converted for each tile
};

struct TileOperand {
  TileAccess access = TileAccess::unused;
  DType dtype = DType::float32;
  bool convert = false;   // bool: bytes to float32
  std::size_t bytes = 4;  // size of one element
  int staging = -1;       // register
  std::int64_t strides[max_tile_axes] = {};
};

// The axis that a digit of a unit's or step's number counts.
struct Digit {
  int axis = 0;
  std::int64_t count = 1;
  std::int64_t stride = 1;  // in indices of the axis
};

struct TilePlan {
  /// The request must not be refused by `compile_tiles`.
  explicit TilePlan(const KernelRequest& request);

  bool maximum() const {
    return program.reduction && program.reduction->kind == TileReduction::Kind::maximum;
  }
  std::size_t workspace_bytes() const;

  TileProgram program;
  std::vector<TileOperand> operands;
  std::int64_t elements = 0;
  int axes = 0;
  std::int64_t extents[max_tile_axes] = {};
  int groups[max_tile_axes] = {};
  std::int64_t result_strides[max_tile_axes] = {};
  int cut = 0;
  std::int64_t inner = 1, chunk = 1;
  std::vector<Digit> unit_digits, step_digits;
  std::int64_t units = 1, steps = 1;
  std::int64_t reduced = 1;     // elements that go into one result
  std::int64_t unit_width = 0;  // results of one unit
  std::int64_t row_width = 0;   // results in a row of a tile; 0 = all of it
  bool final_in_tile = false;   // a tile holds all that goes into its results
  bool by_steps = false;        // threads share each unit
  int staging = 0, convert_staging = 0;
  std::size_t part_bytes = 0;
  int parts = 1;

 private:
  void plan_axes(const KernelRequest& request);
  std::vector<std::int64_t> strides_of_result(const KernelRequest& request) const;
  std::vector<int> order_groups(std::vector<int>& order) const;
  void plan_tiles();
  void plan_operands();
  void plan_parts(const KernelRequest& request);
};

}  // namespace tandem
