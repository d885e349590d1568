#include "kernels/cuda/pointwise/fused/fused_source.h"

#include <algorithm>

#include "engine/graph/text.h"
#include "engine/operators/scalar_functions.h"
#include "kernels/cuda/pointwise/fused/fused_text.h"

namespace tandem::cuda {
namespace {

class Writer {
 public:
  Writer(const KernelRequest& request, const FusedBody& body, const FusedLayout& layout)
      : request_(request),
        body_(body),
        layout_(layout),
        inputs_(static_cast<int>(request.inputs.size())) {}

  std::string run() {
    write_head();
    write_reads();
    line("    TANDEM_UNROLL");
    line("    for (int i = 0; i < count; ++i) {");
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      if (!is_read(static_cast<int>(i))) continue;
      const int value = value_of_input(static_cast<int>(i));
      line("      const " + std::string(computed_name(body_.values[value].dtype)) + " " +
           name(value) + " = widened(x" + std::to_string(i) + "[i]);");
    }
    for (const FusedStep& step : body_.steps) {
      line("      const " + std::string(computed_name(body_.values[step.output].dtype)) + " " +
           name(step.output) + " = " + expression(step) + ";");
    }
    write_results();
    line("    }");
    for (int o = 0; o < static_cast<int>(body_.outputs.size()); ++o) {
      if (!is_written(o)) continue;
      const std::string k = std::to_string(inputs_ + o);
      line("    write(p.operands[" + k + "], at[" + place(inputs_ + o) + "], y" +
           std::to_string(o) + ");");
    }
    line("  }");
    line("};");
    write_tail();
    return std::move(text_);
  }

 private:
  void line(const std::string& text) {
    text_ += text;
    text_ += '\n';
  }

  bool is_read(int input) const { return body_.input_used[input] != 0; }
  bool is_written(int output) const {
    return body_.outputs[output] >= 0 && request_.outputs[output].present;
  }
  std::string place(int operand) const { return std::to_string(layout_.place_of[operand]); }

  int value_of_input(int input) const {
    for (std::size_t v = 0; v < body_.values.size(); ++v) {
      if (body_.values[v].input == input) return static_cast<int>(v);
    }
    return 0;
  }

  static std::string name(int value) { return "v" + std::to_string(value); }

  // A value, or its number.
  std::string operand(int value) const {
    const FusedValue& v = body_.values[value];
    return v.number ? number_text(v.dtype, *v.number) : name(value);
  }

  void write_head() {
    line("// Fused: " +
         joined(body_.steps, ", ", [](const FusedStep& step) { return step.node->op->name; }));
    line("#include \"kernels/cuda/pointwise/fused/fused_loops.h\"");
    line("");
    line("namespace tandem::cuda {");
    line("");
    line("struct Body {");
    line("  static constexpr int width = " + std::to_string(layout_.width) +
         ", places = " + std::to_string(layout_.places) + ";");
    std::string reduced = "float";
    if (body_.reduction) {
      const FusedReduction& r = *body_.reduction;
      const int operand = inputs_ + r.output;
      reduced = computed_name(body_.values[r.source].dtype);
      line("  static constexpr int result_operand = " + std::to_string(operand) +
           ", result_place = " + place(operand) + ";");
      line("  static constexpr bool maximum = " +
           std::string(r.kind == FusedReduction::Kind::maximum ? "true" : "false") + ";");
      line("  using Result = " + std::string(stored_name(request_.outputs[r.output].type.dtype)) +
           ";");
    }
    line("  using Reduced = " + reduced + ";");
    line("");
    line("  template <int count>");
    line("  TANDEM_HOST_DEVICE static void run(const FusedArguments& p,");
    line("                                     const std::int64_t (&at)[places],");
    line("                                     Reduced (&reduced)[count]) {");
  }

  void write_reads() {
    for (int i = 0; i < inputs_; ++i) {
      if (!is_read(i)) continue;
      const std::string x = "x" + std::to_string(i);
      line("    " + std::string(stored_name(request_.inputs[i].type.dtype)) + " " + x + "[count];");
      std::string stride = "p.space.inner[" + place(i) + "]";
      if (layout_.access[i] == FusedAccess::following) stride = "1";
      if (layout_.access[i] == FusedAccess::same) stride = "0";
      line("    read(" + x + ", p.operands[" + std::to_string(i) + "], at[" + place(i) + "], " +
           stride + ");");
    }
    for (int o = 0; o < static_cast<int>(body_.outputs.size()); ++o) {
      if (!is_written(o)) continue;
      line("    " + std::string(stored_name(request_.outputs[o].type.dtype)) + " y" +
           std::to_string(o) + "[count];");
    }
  }

  void write_results() {
    for (int o = 0; o < static_cast<int>(body_.outputs.size()); ++o) {
      if (!is_written(o)) continue;
      line("      y" + std::to_string(o) + "[i] = stored<" +
           std::string(stored_name(request_.outputs[o].type.dtype)) + ">(" +
           operand(body_.outputs[o]) + ");");
    }
    line(body_.reduction ? "      reduced[i] = " + operand(body_.reduction->source) + ";"
                         : "      (void)reduced;");
  }

  std::string expression(const FusedStep& step) const {
    const std::string a = operand(step.inputs[0]);
    switch (step.node->op->scalar) {
      case ScalarFunction::cast: {
        const DType to = body_.values[step.output].dtype;
        const std::string cast = "scalar::cast<" + std::string(computed_name(to)) + ">(" + a + ")";
        // Other results stay in float until they are stored.
        return is_half(to) ? "rounded<" + std::string(stored_name(to)) + ">(" + cast + ")" : cast;
      }
      case ScalarFunction::where:
        return a + " ? " + operand(step.inputs[1]) + " : " + operand(step.inputs[2]);
      case ScalarFunction::pow:
        return power(step, a, operand(step.inputs[1]));
      default:
        return call(step);
    }
  }

  // scalar::leaky_relu<float>(v0, 0.01): operands, then attributes.
  std::string call(const FusedStep& step) const {
    const ScalarRow& row = *scalar_row(step.node->op->scalar);
    const DType dtype = body_.values[step.inputs[0]].dtype;
    const std::string type = computed_name(dtype);
    std::string arguments = joined(step.inputs, ", ", [&](int input) { return operand(input); });
    const ScalarSettings settings = scalar_settings(*step.node);
    for (std::size_t i = 0; i < row.options.attributes.size(); ++i) {
      const bool is_cast = !is_float(dtype);
      const std::string number = number_text(is_cast ? DType::float64 : dtype, settings[i]);
      arguments += ", " + (is_cast ? "scalar::cast<" + type + ">(" + number + ")" : number);
    }
    return "scalar::" + std::string(row.code) + "<" + type + ">(" + arguments + ")";
  }

  // Known exponents that have a cheaper function, of floats.
  std::string power(const FusedStep& step, const std::string& a, const std::string& b) const {
    const FusedValue& base = body_.values[step.inputs[0]];
    const FusedValue& exponent = body_.values[step.inputs[1]];
    const std::string type = computed_name(base.dtype);
    if (is_float(base.dtype) && exponent.number) {
      const double e = *exponent.number;
      const std::string square = "scalar::mul<" + type + ">(" + a + ", " + a + ")";
      if (e == 2) return square;
      if (e == 3) return "scalar::mul<" + type + ">(" + square + ", " + a + ")";
      if (e == 1) return a;
      if (e == 0.5) return "scalar::power_of_half<" + type + ">(" + a + ")";
      if (e == -1) return "scalar::reciprocal<" + type + ">(" + a + ")";
    }
    return "scalar::pow<" + type + ", " + computed_name(exponent.dtype) + ">(" + a + ", " + b + ")";
  }

  void write_tail() {
    const char* loop = layout_.form == FusedForm::elements ? "FusedElements"
                       : layout_.form == FusedForm::rows   ? "FusedRows"
                                                           : "FusedColumns";
    line("");
    line("}  // namespace tandem::cuda");
    line("");
    line("using Kernel = tandem::cuda::" + std::string(loop) + "<tandem::cuda::Body>;");
    line("#if defined(__CUDACC_RTC__)");
    line("extern \"C\" __global__ void __launch_bounds__(tandem::cuda::fused_threads)");
    line("    fused(const __grid_constant__ Kernel kernel) {");
    line("  extern __shared__ __align__(16) unsigned char shared[];");
    line("  tandem::cuda::GpuBlock block(shared);");
    line("  kernel(block);");
    line("}");
    line("#else");
    line("extern \"C\" void fused(const tandem::cuda::LaunchShape& shape, const void* kernel) {");
    line("  tandem::cuda::emulate_on_host<Kernel>(shape, kernel);");
    line("}");
    line("#endif");
  }

  const KernelRequest& request_;
  const FusedBody& body_;
  const FusedLayout& layout_;
  int inputs_;
  std::string text_;
};

}  // namespace

int fused_width(const KernelRequest& request, const FusedBody& body) {
  std::size_t widest = 1;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if (body.input_used[i]) widest = std::max(widest, size_of(request.inputs[i].type.dtype));
  }
  for (std::size_t o = 0; o < request.outputs.size(); ++o) {
    if (body.outputs[o] >= 0 && request.outputs[o].present)
      widest = std::max(widest, size_of(request.outputs[o].type.dtype));
  }
  return widest <= 2 ? 8 : 4;
}

std::string fused_source(const KernelRequest& request, const FusedBody& body,
                         const FusedLayout& layout) {
  return Writer(request, body, layout).run();
}

}  // namespace tandem::cuda
