// The inner loops of embedding tables for the instruction set baseline.
#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/vector_rows.h"

#define TANDEM_NAMESPACE rows_baseline
#define TANDEM_VECTOR_WIDTH 4
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_base.inl"

#include "kernels/cpu/rows/vector_rows.inl"

const tandem::VectorRows tandem::vector_rows_base = rows_baseline::table;
