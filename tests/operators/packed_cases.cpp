// Cases of packed weights: each kind, blocks along rows and columns, and products from both sides.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

struct Form {
  std::string name;
  std::string kind;
  std::int64_t bits;
  std::int64_t rows, columns, row_block, column_block;  // 0: all share
  std::string zeros;                                    // "", "bytes" or "floats"
};

CaseInput codes(const Form& form) {
  const std::int64_t bytes = (form.columns * form.bits + 7) / 8;
  const bool is_signed = form.kind == "int8";
  return typed(is_signed ? DType::int8 : DType::uint8, {form.rows, bytes}, is_signed ? -128 : 0,
               is_signed ? 128 : 256);
}

Shape scale_shape(const Form& form) {
  const auto blocks = [](std::int64_t extent, std::int64_t block) {
    return block == 0 ? 1 : (extent + block - 1) / block;
  };
  return {blocks(form.rows, form.row_block), blocks(form.columns, form.column_block)};
}

std::vector<CaseInput> operands(const Form& form, DType scale_type) {
  CaseInput scales = typed(scale_type, scale_shape(form), 0.01, 0.1);
  scales.differentiable = false;
  std::vector<CaseInput> inputs{codes(form), scales};
  if (form.zeros == "bytes")
    inputs.push_back(typed(DType::uint8, scale_shape(form), 0, std::int64_t{1} << form.bits));
  if (form.zeros == "floats") {
    inputs.push_back(uniform(scale_shape(form), 0, 8));
    inputs.back().differentiable = false;
  }
  return inputs;
}

Attributes settings(const Form& form) {
  return {{"kind", form.kind},
          {"columns", form.columns},
          {"row_block", form.row_block},
          {"column_block", form.column_block},
          {"zero", std::int64_t{form.kind == "uint4" ? 8 : 0}}};
}

std::vector<Form> all_forms() {
  std::vector<Form> forms;
  for (const auto& [kind, bits] : std::vector<std::pair<std::string, std::int64_t>>{{"uint8", 8},
                                                                                    {"int8", 8},
                                                                                    {"uint4", 4},
                                                                                    {"int4", 4},
                                                                                    {"uint2", 2},
                                                                                    {"nf4", 4},
                                                                                    {"fp4", 4}}) {
    const bool has_table = kind == "nf4" || kind == "fp4";
    forms.push_back({kind + " blocks of 32", kind, bits, 5, 96, 1, 32, ""});
    forms.push_back({kind + " blocks of 16, the last one short", kind, bits, 3, 40, 1, 16,
                     has_table ? "" : "bytes"});
    forms.push_back({kind + " one scale", kind, bits, 4, 72, 0, 0, has_table ? "" : "floats"});
    forms.push_back({kind + " a scale a row", kind, bits, 4, 34, 1, 0, ""});
    forms.push_back(
        {kind + " a scale a column", kind, bits, 6, 44, 0, 1, has_table ? "" : "bytes"});
    forms.push_back({kind + " blocks of 2 rows", kind, bits, 5, 36, 2, 1, ""});
  }
  forms.push_back({"uint4 large", "uint4", 4, 66, 4160, 1, 64, "bytes"});
  return forms;
}

}  // namespace

void add_packed_cases(std::vector<OperatorCase>& cases) {
  for (const Form& form : all_forms()) {
    cases.push_back(make_case("Unpack", form.name, operands(form, DType::float32), settings(form)));
    for (const std::int64_t transposed : {0, 1}) {
      Attributes attributes = settings(form);
      attributes.set("transposed", transposed);
      std::vector<CaseInput> inputs = operands(form, DType::float32);
      inputs.insert(inputs.begin(), uniform({2, 3, transposed != 0 ? form.columns : form.rows}));
      OperatorCase product =
          make_case("PackedMatMul", form.name + (transposed != 0 ? " transposed" : ""),
                    std::move(inputs), std::move(attributes));
      if (form.columns > 1000)
        product =
            without_gradient(std::move(product), "the gradient is the same product, tested above");
      cases.push_back(std::move(product));
    }
  }
  const Form halves{"scales of 16 bits", "uint4", 4, 5, 64, 1, 32, ""};
  for (const DType type : {DType::float16, DType::bfloat16}) {
    OperatorCase c = make_case("Unpack", halves.name + " " + std::string(name_of(type)),
                               operands(halves, type), settings(halves));
    c.check_gradient = false;
    c.why = "integers";
    cases.push_back(std::move(c));
  }
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const std::string kind(name_of(type));
    for (const Shape& shape : {Shape{5, 96}, Shape{3, 41}, Shape{66, 1120}}) {
      const Form form{kind + " " + to_string(shape), kind, 16, shape[0], shape[1], 1, 0, ""};
      CaseInput numbers = typed(type, shape, -1, 1);
      numbers.differentiable = false;
      cases.push_back(without_gradient(make_case("Unpack", form.name, {numbers}, settings(form)),
                                       "it is frozen"));
      for (const std::int64_t transposed : {0, 1}) {
        for (const std::int64_t rows : {2, 6}) {
          Attributes product = settings(form);
          product.set("transposed", transposed);
          const CaseInput x = uniform({rows, transposed != 0 ? form.columns : form.rows});
          cases.push_back(make_case("PackedMatMul",
                                    form.name + " by " + std::to_string(rows) + " rows" +
                                        (transposed != 0 ? ", transposed" : ""),
                                    {x, numbers}, std::move(product)));
          if (form.columns > 1000)
            cases.back() = without_gradient(std::move(cases.back()),
                                            "the gradient is the same product, tested above");
        }
      }
    }
  }
  const Form vector{"a vector", "int8", 8, 5, 48, 1, 16, ""};
  Attributes attributes = settings(vector);
  attributes.set("transposed", std::int64_t{1});
  std::vector<CaseInput> inputs = operands(vector, DType::float32);
  inputs.insert(inputs.begin(), uniform({48}));
  cases.push_back(make_case("PackedMatMul", vector.name, std::move(inputs), std::move(attributes)));
  // Codes 1, 2, 15 and 8 of 4 bits with zero point 8, and as two's complement (numbers by hand).
  const auto known = [&](const std::string& kind, std::vector<double> y) {
    const Form form{"known " + kind, kind, 4, 1, 4, 1, 0, ""};
    cases.push_back(
        expecting(make_case("Unpack", form.name,
                            {values({1, 2}, {0x21, 0x8f}, DType::uint8), values({1, 1}, {0.5})},
                            settings(form)),
                  std::move(y)));
    cases.back().inputs[1].differentiable = false;
  };
  known("uint4", {-3.5, -3, 3.5, 0});
  known("int4", {0.5, 1, -0.5, -4});
  // bitsandbytes' table of nf4 at codes 2, 1, 8 and 15: the upper half of a byte comes first.
  known("nf4", {-0.26253652572631836, -0.34809640049934387, 0.039790149778127670, 0.5});
}

}  // namespace tandem::testing
